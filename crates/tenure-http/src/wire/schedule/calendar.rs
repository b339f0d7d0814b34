//! The calendar: what became of slots between two instants, and which will come.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::{Calendar, Coming, Group, Past, Slots, ZoneChange};

use super::RunDocument;
use super::slot::clock_change;

/// A page of the calendar. Schedules and history are paged independently; either may end first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Calendar")]
pub struct CalendarDocument {
    /// Current time of the store's clock; it divides past runs from coming ones.
    pub now: String,
    /// Coming runs by schedule.
    pub coming: Vec<ComingDocument>,
    /// Run history, oldest first.
    pub past: Vec<RunDocument>,
    /// History records of many runs that extend beyond the range.
    pub beyond: Vec<RunDocument>,
    /// Clock changes (DST) within the range, in the time zones of the schedules on this page.
    pub clock_changes: Vec<ZoneChangeDocument>,
    /// Value of `after_schedule` for the next page; omitted at the end.
    pub next_schedule: Option<String>,
    /// Value of `after_run` for the next page; omitted at the end.
    pub next_run: Option<String>,
}

/// Coming runs of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Coming")]
pub struct ComingDocument {
    /// Schedule name.
    pub name: String,
    /// The rule as text.
    pub schedule: String,
    /// Time at which the schedule was paused; it does not run until resumed.
    pub paused_since: Option<String>,
    /// Individual runs, if there are few.
    pub slots: Option<Vec<ComingSlot>>,
    /// Groups of runs, if there are many.
    pub groups: Option<Vec<GroupDocument>>,
}

/// A coming run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComingSlot {
    /// Time of the run.
    pub at: String,
    /// Effect of a clock change on the run.
    pub clock_change: Option<&'static str>,
}

/// A group of consecutive runs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SlotGroup")]
pub struct GroupDocument {
    /// Start of the group, inclusive.
    pub from: String,
    /// End of the group, exclusive.
    pub to: String,
    /// Number of runs; omitted if too many to count.
    pub count: Option<u64>,
    /// Effect of a clock change on one of the runs.
    pub clock_change: Option<&'static str>,
}

/// A clock change of a time zone.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ZoneChange")]
pub struct ZoneChangeDocument {
    /// Time zone.
    pub time_zone: String,
    /// Start of the new offset.
    pub at: String,
    /// UTC offset before the change, in seconds east.
    pub offset_seconds_before: i64,
    /// UTC offset after the change, in seconds east.
    pub offset_seconds_after: i64,
}

impl CalendarDocument {
    /// What there is to tell of a page. How its cursor is written is for whoever reads it again.
    #[must_use]
    pub fn of(calendar: &Calendar, next_run: Option<String>) -> Self {
        let told = |past: &[Past]| past.iter().map(|past| RunDocument::of(&past.record)).collect();
        Self {
            now: calendar.now.to_string(),
            coming: calendar.coming.iter().map(ComingDocument::of).collect(),
            past: told(&calendar.past),
            beyond: told(&calendar.beyond),
            clock_changes: calendar.changes.iter().map(ZoneChangeDocument::of).collect(),
            next_schedule: calendar.next_timer.as_ref().map(ToString::to_string),
            next_run,
        }
    }
}

impl ComingDocument {
    fn of(coming: &Coming) -> Self {
        let (slots, groups) = match &coming.slots {
            Slots::Each(slots) => {
                let of = |slot: &tenure::schedule::Slot| ComingSlot {
                    at: slot.at.to_string(),
                    clock_change: slot.change.map(clock_change),
                };
                (Some(slots.iter().map(of).collect()), None)
            }
            Slots::Groups(groups) => (None, Some(groups.iter().map(GroupDocument::of).collect())),
        };
        Self {
            name: coming.timer.to_string(),
            schedule: coming.schedule.clone(),
            paused_since: coming.paused.map(|since| since.to_string()),
            slots,
            groups,
        }
    }
}

impl GroupDocument {
    fn of(group: &Group) -> Self {
        Self {
            from: group.from.to_string(),
            to: group.to.to_string(),
            count: group.count,
            clock_change: group.change.map(clock_change),
        }
    }
}

impl ZoneChangeDocument {
    pub(super) fn of(changed: &ZoneChange) -> Self {
        Self {
            time_zone: changed.zone.clone(),
            at: changed.change.at.to_string(),
            offset_seconds_before: changed.change.before,
            offset_seconds_after: changed.change.after,
        }
    }
}
