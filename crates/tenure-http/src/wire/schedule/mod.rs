//! Schedules as clients see them: a timer of the library is called a schedule over HTTP.

mod ask;
mod calendar;
mod document;
mod hours;
mod rule;
mod slot;

pub use ask::{
    BackfillAsk, CatchUpName, JobPatch, OnEditName, OverlapName, PauseAsk, PreviewAsk, SchedulePatch,
    ScheduleSpec, TriggerAsk,
};
pub use calendar::{CalendarDocument, ComingDocument, ComingSlot, GroupDocument, ZoneChangeDocument};
pub use document::{
    LastRun, LastSkip, PauseDocument, ScheduleDocument, ScheduleLinks, SchedulePage, ScheduledJob,
};
pub use hours::{CalendarHoursDocument, ScheduleHours};
pub use rule::{DialectName, RuleSpec};
pub(crate) use slot::origin;
pub use slot::{
    BackfillAnswer, BackfillPreview, NextRuns, PreviewAnswer, RunDocument, RunPage, SlotDocument,
};
