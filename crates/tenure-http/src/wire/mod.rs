//! What travels: one type for each thing, in the words of the contract. Nothing of it is kept, and nothing of what is
//! kept travels as it is.

mod attempt;
mod job;
mod lease;
mod limit;
mod page;
mod queue;
mod queue_terms;
mod reason;
mod reserved;
mod schedule;
pub(crate) mod shape;
mod submit;

pub use attempt::AttemptDocument;
pub use job::{ErrorDocument, JobDocument, LeaseDocument, Links, ProgressDocument};
pub use lease::{
    AcquireAsk, BreakAsk, GiveBackAsk, HeldAt, HolderDocument, LeaseBreaks, LeaseEntryDocument, LeaseGranted,
    LeaseHistory, LeaseRenewed, NamedLease, NamedLeasePage, RenewAsk,
};
pub use limit::{LimitDocument, LimitPage, LimitSpec};
pub use page::{JobPage, LogLineDocument, LogPage, UnreadableDocument};
pub use queue::{
    KindList, KindStats, LaneStats, QueueDocument, QueueLinks, QueueList, QueuePatch, QueueSpec, QueueStats,
    RateDocument, Stats, StepDocument,
};
pub use queue_terms::RetainDocument;
pub use reason::{ReasonDocument, Reasons};
pub(crate) use reserved::{check_kind, check_queue, not_own};
pub(crate) use schedule::origin;
pub use schedule::{
    BackfillAnswer, BackfillAsk, BackfillPreview, CalendarDocument, CalendarHoursDocument, CatchUpName,
    ComingDocument, ComingSlot, DialectName, GroupDocument, JobPatch, LastRun, LastSkip, NextRuns,
    OnEditName, OverlapName, PauseAsk, PauseDocument, PreviewAnswer, PreviewAsk, RuleSpec, RunDocument,
    RunPage, ScheduleDocument, ScheduleHours, ScheduleLinks, SchedulePage, SchedulePatch, ScheduleSpec,
    ScheduledJob, SlotDocument, TriggerAsk, ZoneChangeDocument,
};
pub(crate) use submit::{BODY_BYTES, CALLBACK, instant};
pub use submit::{CallbackSpec, OnConflict, RetrySpec, Submit, UniqueScope, UniqueSpec};
