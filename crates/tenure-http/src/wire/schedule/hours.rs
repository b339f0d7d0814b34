//! The calendar by the hour.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::{CalendarHours, TimerHours};

use super::ZoneChangeDocument;

/// A page of the hourly calendar.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CalendarHours")]
pub struct CalendarHoursDocument {
    /// Current time of the store's clock; it divides past runs from coming ones.
    pub now: String,
    /// Schedules by name. The first page contains the past runs of all schedules, including those on later pages.
    pub items: Vec<ScheduleHours>,
    /// Past runs before this time are not counted completely because there are too many; omitted if all are counted.
    pub cut_before: Option<String>,
    /// Clock changes (DST) within the range, in the time zones of the schedules on this page.
    pub clock_changes: Vec<ZoneChangeDocument>,
    /// Value of `after_schedule` for the next page; omitted at the end.
    pub next_schedule: Option<String>,
}

/// Runs of a schedule per hour.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduleHours {
    /// Schedule name.
    pub name: String,
    /// The rule as text; empty if the schedule is on a later page or was deleted.
    pub schedule: String,
    /// First coming run in the range.
    pub next_at: Option<String>,
    /// Coming runs per hour; null where counting would take too long. Empty if there are none.
    pub coming: Vec<Option<u64>>,
    /// Past runs per hour, as pairs of hour number (from 0) and count. Hours without runs are left out. Runs decided
    /// together are spread evenly, and count as 1000 if there are too many to count.
    pub past: Vec<[u64; 2]>,
    /// Number of past runs that got a job.
    pub ran: u64,
}

impl CalendarHoursDocument {
    /// What there is to tell of a page.
    #[must_use]
    pub fn of(calendar: &CalendarHours) -> Self {
        let of = |(name, hours): (&tenure::Name, &TimerHours)| ScheduleHours {
            name: name.to_string(),
            schedule: hours.schedule.clone(),
            next_at: hours.next.map(|next| next.to_string()),
            coming: hours.coming.clone(),
            past: hours.past.iter().map(|(hour, slots)| [*hour as u64, *slots]).collect(),
            ran: hours.ran,
        };
        Self {
            now: calendar.now.to_string(),
            items: calendar.timers.iter().map(of).collect(),
            cut_before: calendar.cut_before.map(|before| before.to_string()),
            clock_changes: calendar.changes.iter().map(ZoneChangeDocument::of).collect(),
            next_schedule: calendar.next_timer.as_ref().map(ToString::to_string),
        }
    }
}
