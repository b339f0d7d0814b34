//! How things went, minute by minute: how many jobs came and ended, how long they waited and ran.
//!
//! Every program counts what goes through it in memory, and writes what is past once a minute to the journal `stats`, an entry
//! for each queue in which anything happened. Nothing is written for a job, and an idle program writes nothing. What a program
//! has not written when it is killed is not in the numbers: they tell how things go, and decide nothing.

mod heap;
mod kept;
mod series;
mod spans;
mod totals;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::Timestamp;

pub(crate) use heap::Heap;
pub(crate) use kept::write;
pub use series::Stats;
pub use spans::SpanCounts;
pub use totals::{JobTotals, Totals};

/// The grain of the numbers.
const MINUTE: Duration = Duration::from_secs(60);
/// The numbers are kept for so long.
const KEPT: Duration = Duration::from_secs(8 * 24 * 3600);
/// The journal.
const JOURNAL: &str = "stats";
/// Kinds of a queue that are told apart in a minute; what comes beyond that is counted together.
const KINDS: usize = 50;
/// As which kind.
const OTHER: &str = "(other)";

/// What happened in a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Went {
    /// Jobs that were enqueued.
    #[serde(skip_serializing_if = "is_none")]
    pub enqueued: u64,
    /// Jobs that have succeeded.
    #[serde(skip_serializing_if = "is_none")]
    pub succeeded: u64,
    /// Jobs that have failed for good.
    #[serde(skip_serializing_if = "is_none")]
    pub failed: u64,
    /// Jobs that were cancelled while they ran.
    #[serde(skip_serializing_if = "is_none")]
    pub cancelled: u64,
    /// Attempts that failed, and are made again.
    #[serde(skip_serializing_if = "is_none")]
    pub retried: u64,
    /// Attempts that were given back or put off.
    #[serde(skip_serializing_if = "is_none")]
    pub released: u64,
    /// How long jobs that ended an attempt had been due before it began.
    #[serde(skip_serializing_if = "SpanCounts::is_empty")]
    pub waited: SpanCounts,
    /// How long those attempts took.
    #[serde(skip_serializing_if = "SpanCounts::is_empty")]
    pub ran: SpanCounts,
}

/// What happened in one step of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When it began.
    pub at: Timestamp,
    /// What happened.
    pub went: Went,
}

impl Went {
    /// Adds what happened elsewhere or later.
    pub fn join(&mut self, more: &Self) {
        self.enqueued += more.enqueued;
        self.succeeded += more.succeeded;
        self.failed += more.failed;
        self.cancelled += more.cancelled;
        self.retried += more.retried;
        self.released += more.released;
        self.waited.join(&more.waited);
        self.ran.join(&more.ran);
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
