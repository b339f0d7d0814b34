//! The core types and state transitions of Tenure, a durable job queue, scheduler and lock service.
//!
//! Most programs use the crate `tenure`, which re-exports the types of this one.
//!
//! A job or lease is held through a row with an expiry time and a fencing token ([`Fence`]). This crate decides
//! which states such a row may enter. It has no async code, no I/O, no clock and no randomness. Stores ask it for
//! a [`Transition`] and write the result, guarded by the fence.
//!
//! ```
//! use std::time::Duration;
//! use tenure_core::{Backoff, RetryPolicy};
//!
//! let policy = RetryPolicy { backoff: Backoff::Fixed(Duration::from_secs(5)), ..RetryPolicy::default() };
//! assert_eq!(policy.delay(3, 0.5), Duration::from_secs(5));
//! ```

mod app;
mod attempt;
mod cancel;
mod condition;
mod due;
mod edit;
mod explain;
mod fence;
mod gates;
mod ids;
mod invalid;
mod job;
mod json;
mod keys;
mod lapse;
mod lease;
mod limit;
pub mod limits;
mod name;
mod progress;
mod queue;
mod queue_terms;
mod record;
mod retention;
mod retry;
pub mod schedule;
mod serving;
mod settle;
mod share;
mod span;
mod state;
mod terms;
mod time;
mod timer;
mod transition;
mod unique;

pub use app::{AppId, AppUse, check_program, claim_app};
pub use attempt::{Attempt, AttemptEnd, Cause, Failure};
pub use cancel::{Cancel, CancelRequest};
pub use condition::{Candidate, Condition, SoughtText, SoughtValue};
pub use due::Due;
pub use edit::Edit;
pub use explain::{Hindrance, Limited, Ordered, Reason, Standing, claimable, explain};
pub use fence::{Epoch, Fence};
pub use gates::{Block, Gates};
pub use ids::{HostId, IdSequence, JobId};
pub use invalid::Invalid;
pub use job::{Args, Job, NewJob, Output};
pub use json::{check_portable, depth_of, json_value};
pub use keys::{AfterJobs, Head, IfFailed, Key, LimitKey, Noticed, OrderingKey};
pub use lapse::{lapse, redo};
pub use lease::{
    Access, Holder, Holding, Late, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal,
    LeaseState, LedgerEntry, LedgerNote, Line, Ownership, Phase, Stepped, Ticket, Ttl, Unfit, What, holding,
    holdings, may_use, step,
};
pub use limit::{Bucket, Limit, Meter, Rate};
pub use name::{Kind, Name, OWN, QueueName};
pub use progress::{LogLine, Progress};
pub use queue::Priority;
pub use queue_terms::{QueueAgreed, QueueTerms};
pub use record::{Document, JournalEntry, Record, RecordKey, Subject};
pub use retention::{Keep, Retention};
pub use retry::{Backoff, RetryPolicy};
pub use schedule::Schedule;
pub use serving::{AtWork, Room, Serves, Serving};
pub use settle::{Next, Reserved, Settlement, Verdict};
pub use share::round_of;
pub use span::{delay_of, seconds};
pub use state::{End, State, StateName, Why};
pub use terms::Terms;
pub use time::Timestamp;
pub use timer::{
    CatchUp, Edited, Fate, Firing, NewTimer, OnEdit, Open, Origin, Overlap, Past, Pause, Policies, Refused,
    Skipped, SlotRecord, Timer, TimerJob, TimerReason, TimerSlot, backfill, edit, explain_timer, fire,
    fire_within, past_slots, pause, remove, resume, start, trigger,
};
pub use transition::Transition;
pub use unique::{OnConflict, Unique, UniqueKey, Window};
