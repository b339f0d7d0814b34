//! The calendar: what became of slots between two instants, and which will come.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::{Calendar, Coming, Group, Past, Slots, ZoneChange};

use super::RunDocument;
use super::slot::clock_change;

/// A page of the calendar. Schedules and records go on by themselves: either may end before the other.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Calendar")]
pub struct CalendarDocument {
    /// What the store's clock showed: what is before is past, what is after will come.
    pub now: String,
    /// What will come of each schedule, by name.
    pub coming: Vec<ComingDocument>,
    /// What became of slots, the oldest first.
    pub past: Vec<RunDocument>,
    /// Records of many slots that reach beyond the range.
    pub beyond: Vec<RunDocument>,
    /// The changes of the clocks in the range, in the zones of the schedules of this page.
    pub clock_changes: Vec<ZoneChangeDocument>,
    /// What to give as `after_schedule` for the schedules behind; none at the end.
    pub next_schedule: Option<String>,
    /// What to give as `after_run` for the records behind; none at the end.
    pub next_run: Option<String>,
}

/// What will come of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Coming")]
pub struct ComingDocument {
    /// Its name.
    pub name: String,
    /// It, as a line of text.
    pub schedule: String,
    /// Since when it is paused: then nothing comes before it goes on.
    pub paused_since: Option<String>,
    /// Its slots, if they are few.
    pub slots: Option<Vec<ComingSlot>>,
    /// Its slots in groups, if they are many.
    pub groups: Option<Vec<GroupDocument>>,
}

/// A slot that will come.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComingSlot {
    /// When.
    pub at: String,
    /// What a change of the clocks does to it.
    pub clock_change: Option<&'static str>,
}

/// Some slots that follow one another.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SlotGroup")]
pub struct GroupDocument {
    /// From this instant on.
    pub from: String,
    /// Until before this one.
    pub to: String,
    /// How many; none if they are too many to be counted.
    pub count: Option<u64>,
    /// What a change of the clocks does to one of them.
    pub clock_change: Option<&'static str>,
}

/// The clocks of a zone change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ZoneChange")]
pub struct ZoneChangeDocument {
    /// The zone.
    pub time_zone: String,
    /// The first instant of the new offset.
    pub at: String,
    /// Seconds east of Greenwich until then.
    pub offset_seconds_before: i64,
    /// Seconds east of Greenwich from then on.
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
