//! Durable jobs for software that runs as more than one instance.
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
//! let tenure = Tenure::open("memory:").await?;         // or sqlite://jobs.db
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
//! A [`Tenure`] is a handle on a store. It enqueues ([`Tenure::enqueue`]), looks ([`Tenure::jobs`]),
//! and explains ([`Tenure::explain`]). A [`Worker`] runs jobs. [`testing`] runs them in tests without
//! waiting.

mod draft;
mod enqueue;
mod error;
mod failed;
mod job;
mod jobs;
mod limit_keys;
mod open;
mod queues;
mod run;
mod signal;
mod tender;
mod tenure;
pub mod testing;
mod unique;
mod wait;
mod worker;

pub use draft::Draft;
pub use enqueue::Enqueue;
pub use error::Error;
pub use failed::Failed;
pub use job::Job;
pub use jobs::{Jobs, Tally};
pub use limit_keys::Limits;
pub use open::OpenOptions;
pub use queues::Queues;
pub use run::{CutShort, Run, Stopping};
pub use signal::shutdown_signal;
pub use unique::Only;
pub use wait::Ended;
pub use worker::{QueueOrder, Stopped, UnknownKinds, Worker};

pub use crate::tenure::Tenure;

pub use tenure_core::{
    AfterJobs, Attempt, AttemptEnd, Backoff, Block, Cause, End, Failure, Fence, Head, HostId, IfFailed,
    Invalid, Job as JobRecord, JobId, Keep, Key, Kind, Limit, LimitKey, LogLine, Meter, Name, OrderingKey,
    Output, Priority, Progress, QueueName, Rate, Reason, Retention, RetryPolicy, State, StateName, Terms,
    Timestamp, Verdict, Why, limits, seconds,
};
pub use tenure_sqlite::{Durability, Options as SqliteOptions, SqliteStore};
pub use tenure_store::{
    Accepted, Chance, ChangeOutcome, Clock, Count, Cursor, Event, Fault, Faults, FaultyStore, Filter,
    Happening, Host, Kinds, LimitInfo, LimitPage, ManualClock, MemoryStore, Order, Page, PageAsk, QueueInfo,
    Refusal, Reserve, Store, SystemClock, Want,
};
