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

/// Statistics of a time span.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Went {
    /// Jobs enqueued.
    #[serde(skip_serializing_if = "is_none")]
    pub enqueued: u64,
    /// Jobs succeeded.
    #[serde(skip_serializing_if = "is_none")]
    pub succeeded: u64,
    /// Jobs failed for good.
    #[serde(skip_serializing_if = "is_none")]
    pub failed: u64,
    /// Jobs cancelled while running.
    #[serde(skip_serializing_if = "is_none")]
    pub cancelled: u64,
    /// Attempts that failed and will be retried.
    #[serde(skip_serializing_if = "is_none")]
    pub retried: u64,
    /// Attempts released or snoozed.
    #[serde(skip_serializing_if = "is_none")]
    pub released: u64,
    /// Wait between due time and start, of attempts that ended.
    #[serde(skip_serializing_if = "SpanCounts::is_empty")]
    pub waited: SpanCounts,
    /// Run time of those attempts.
    #[serde(skip_serializing_if = "SpanCounts::is_empty")]
    pub ran: SpanCounts,
}

/// Statistics of one step of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Start of the step.
    pub at: Timestamp,
    /// The statistics.
    pub went: Went,
}

impl Went {
    /// Adds other statistics.
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
