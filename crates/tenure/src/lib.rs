//! Tenure is a durable job queue, scheduler and lock service for Rust, on SQLite or PostgreSQL.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tenure::{Failed, Job, Run, Tenure, Worker};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Hello { name: String }
//! impl Job for Hello { const KIND: &'static str = "hello"; type Output = String; }
//!
//! async fn hello(_run: Run<()>, job: Hello) -> Result<String, Failed> {
//!     Ok(format!("Hello, {}!", job.name))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tenure::Error> {
//! let tenure = Tenure::open("memory:").await?;         // or sqlite://jobs.db, postgres://…
//! let id = tenure.enqueue(Hello { name: "world".into() }).await?.id();
//!
//! let said = tenure.clone();
//! Worker::new(&tenure, ()).queue("default", 8).job(hello).run(async move {
//!     let greeting = said.wait_for::<Hello>(id).await;  // in real life: tenure::shutdown_signal()
//!     assert_eq!(greeting.unwrap(), "Hello, world!");
//! }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | open a store | [`Tenure::open`], [`OpenOptions`] |
//! | enqueue a job, alone or in a batch | [`Tenure::enqueue`], [`Tenure::enqueue_all`] |
//! | run jobs | [`Worker`], [`Run`], [`Failed`] |
//! | wait for a result | [`Tenure::wait_for`] |
//! | find, cancel and retry jobs, or learn why one does not run | [`Tenure::jobs`], [`Tenure::explain`] |
//! | run jobs on a schedule | [`Worker::timer`], [`when`], [`Tenure::timers`] |
//! | hold a lease with a fencing token | [`Tenure::leases`], [`Held`], [`FenceGate`] |
//! | run something on one host at a time | [`Worker::singleton`], [`Job::singleton`] |
//! | apply messages in order, one writer at a time | [`Worker::writer`], [`Tenure::writer`] |
//! | test without waiting | [`testing::Lab`] |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod app;
pub mod apps;
mod bulk;
mod commands;
mod copying;
mod draft;
mod enqueue;
mod error;
mod failed;
mod holding;
mod job;
mod jobs;
#[cfg(feature = "postgres")]
mod joint;
mod limit_keys;
mod open;
mod operate;
mod position;
mod queues;
pub mod records;
mod remote;
mod reserving;
mod rotation;
mod run;
mod sealed;
mod search;
mod signal;
mod singleton;
mod stats;
mod tender;
mod tenure;
pub mod testing;
mod timer;
mod trace;
mod unique;
mod until_known;
mod wait;
mod worker;
mod writer;

pub use bulk::{Bulk, BulkAct, Meant};
pub use commands::{WorkerCommand, WorkerCommands};
pub use draft::Draft;
pub use enqueue::Enqueue;
pub use error::Error;
pub use failed::Failed;
pub use holding::{FENCE_HEADER, FenceGate, Held, Hold, LeaseLost, LeaseTally, Leases, Loss, Pass, Stale};
pub use job::Job;
pub use jobs::{Jobs, Tally};
#[cfg(feature = "postgres")]
pub use joint::Within;
pub use limit_keys::Limits;
pub use open::OpenOptions;
pub use queues::Queues;
pub use remote::{Claimed, Ending, LeaseGrant, Leased, Remote, held};
pub use reserving::{Reservation, Reservations, Roster};
pub use rotation::{Reseal, Resealed};
pub use run::{CutShort, Run, Stopping};
pub use sealed::{Keyring, SealedStore};
pub use search::{BadSearch, FIELDS as SEARCH_FIELDS, search};
pub use signal::shutdown_signal;
pub use singleton::{Duty, Lock, Mode, Scope, Singleton, SingletonOptions, Singletons};
pub use stats::{JobTotals, SpanCounts, Stats, Step as StatsStep, Totals, Went};
pub use timer::{
    Backfill, BackfillStep, Calendar, CalendarAsk, CalendarHours, Coming, Group, Heartbeat, Past, Slots,
    TimerDraft, TimerHours, TimerWhy, Timers, Trigger, ZoneChange, webjobs, when,
};
pub use trace::TraceContext;
pub use unique::Only;
pub use wait::Ended;
pub use worker::{QueueOrder, Stopped, UnknownKinds, Worker};
pub use writer::{AtLast, Full, Mailbox, MailboxInfo, Message, Writer};

pub use crate::tenure::Tenure;

pub use tenure_core::{
    AfterJobs, AppId, AppUse, Args, Attempt, AttemptEnd, Backoff, Block, Candidate, CatchUp, Cause,
    Condition, Due, Edit, End, Failure, Fate, Fence, Head, Holder, Holding, HostId, IfFailed, Invalid,
    Job as JobRecord, JobId, Keep, Key, Kind, LeaseId, LeaseName, LeaseRefusal, LeaseState, LedgerEntry,
    LedgerNote, Limit, LimitKey, LogLine, Meter, Name, NewTimer, OWN, OnEdit, OrderingKey, Origin, Output,
    Overlap, Pause, Policies, Priority, Progress, QueueAgreed, QueueName, QueueTerms, Rate, Reason,
    Retention, RetryPolicy, Schedule, Serves, Skipped, SlotRecord, SoughtText, SoughtValue, State, StateName,
    Terms, Timer, TimerJob, TimerReason, TimerSlot, Timestamp, Ttl, Verdict, What, Why, check_portable,
    depth_of, json_value, limits, schedule, seconds,
};
#[cfg(feature = "postgres")]
pub use tenure_postgres::{Asking, InTransaction, NotDone, Options as PostgresOptions, PostgresStore};
pub use tenure_sqlite::{CheckInError, Durability, Options as SqliteOptions, SqliteStore, rusqlite};
pub use tenure_store::{
    Accepted, Call, CallMeasure, Caution, Chance, ChangeOutcome, ClaimMeasure, Clock, Copied, CopyRefusal,
    Count, Cursor, Event, Fault, FaultCause, Faults, FaultyStore, Filter, Finding, Happening, Hearing,
    Histogram, Host, InTheWay, KeyCounts, KeyCursor, Kinds, LeaseInfo, LeaseMeasure, LeasePage, LeasesAsk,
    LedgerAsk, LedgerPage, LimitInfo, LimitPage, ListedBy, LostHost, ManualClock, MeasuredStore, Measures,
    MemoryStore, Migration, Moment, Oldest, Order, Page, PageAsk, Quarantined, QueueEdit, QueueEdited,
    QueueInfo, QueueRemoved, QueueSeen, Refusal, Renewal, Repaired, Report, Reported, Reserve, Settled,
    Sizes, SlotCursor, SlotPage, SlotsAsk, Status, Store, SystemClock, TimerAct, TimerOutcome, TimerPage,
    TimerSeen, TimerSet, TimersAsk, Totals as CopyTotals, UnreadableJob, Values, Want,
};
