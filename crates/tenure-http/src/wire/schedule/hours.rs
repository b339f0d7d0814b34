//! The calendar by the hour.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::{CalendarHours, TimerHours};

use super::ZoneChangeDocument;

/// A page of the calendar by the hour.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CalendarHours")]
pub struct CalendarHoursDocument {
    /// What the store's clock showed: what is before is past, what is after will come.
    pub now: String,
    /// The schedules, by name. What passed is told on the first page, also of schedules that are on later ones.
    pub items: Vec<ScheduleHours>,
    /// What passed up to this instant is not counted, or not all of it, because so much has passed since; none if all is.
    pub cut_before: Option<String>,
    /// The changes of the clocks in the range, in the zones of the schedules of this page.
    pub clock_changes: Vec<ZoneChangeDocument>,
    /// What to give as `after_schedule` for the schedules behind; none at the end.
    pub next_schedule: Option<String>,
}

/// How often a schedule fires in each hour, and did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduleHours {
    /// Its name.
    pub name: String,
    /// It, as a line of text; empty if it is on a later page, or gone.
    pub schedule: String,
    /// Its first slot in the range that will come.
    pub next_at: Option<String>,
    /// Its slots that will come, hour by hour; none where they are not counted, because that would take too many looks.
    /// Empty if none come.
    pub coming: Vec<Option<u64>>,
    /// Its slots that have passed, whatever became of them: the number of the hour, from 0, and how many. Hours without any
    /// are left out. Those that were decided together are taken as evenly spread from the first to the last, and as 1,000 if
    /// they were too many to be counted.
    pub past: Vec<[u64; 2]>,
    /// How many of those got a job.
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
