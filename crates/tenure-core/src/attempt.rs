//! One try of a job, and how it went.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Fence, HostId, Timestamp, invalid, limits};

/// The record of one delivery of a job to a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which try of the job this is: 1, 2, … Given back ones do not count and repeat their number.
    pub attempt: u32,
    /// Which grant of the job this is: 1, 2, … Every one counts.
    pub delivery: u32,
    /// The fence of this ownership.
    pub fence: Fence,
    /// Who had it.
    pub holder: HostId,
    /// When it was granted.
    pub started: Timestamp,
    /// When and how it ended; `None` while it runs.
    pub ended: Option<(Timestamp, AttemptEnd)>,
    /// What went wrong.
    pub failure: Option<Failure>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The job is done.
    Succeeded,
    /// The job failed for good.
    Failed,
    /// It failed and the job is tried again.
    Retried,
    /// The handler asked to be called later.
    Snoozed,
    /// The holder gave the job back.
    Released,
    /// The holder fell silent past its lease.
    Lost,
    /// The job was cancelled.
    Cancelled,
}

impl AttemptEnd {
    /// Whether an attempt that ends so is spent. What was given back is not.
    #[must_use]
    pub fn spends(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Retried | Self::Lost | Self::Cancelled => true,
            Self::Snoozed | Self::Released => false,
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Snoozed => "snoozed",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What went wrong in an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of trouble.
    pub cause: Cause,
    /// What the handler, or Tenure in its place, said of it. Bounded.
    pub message: String,
}

/// The kind of trouble an attempt met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The handler returned an error.
    Error,
    /// The handler panicked.
    Panic,
    /// The attempt took longer than its timeout.
    TimedOut,
    /// The arguments could not be read as the kind's type.
    Undecodable,
    /// The output could not be stored.
    Unstorable,
    /// No handler of this kind is known to a worker that was told to refuse such jobs.
    UnknownKind,
    /// The holder fell silent past its lease.
    Lost,
    /// Somebody cancelled the job.
    Cancelled,
    /// Somebody cancelled the job and its handler did not stop within the grace.
    Deaf,
    /// The job was granted more often than its policy allows.
    Deliveries,
}

impl Failure {
    /// A failure of this cause; a long message is cut and marked, and NUL in it replaced.
    #[must_use]
    pub fn new(cause: Cause, message: &str) -> Self {
        Self { cause, message: invalid::storable(message, limits::FAILURE_BYTES) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = match self.cause {
            Cause::Error if self.message.is_empty() => "an error that says nothing",
            Cause::Error => return f.write_str(&self.message),
            Cause::Panic => "panic",
            Cause::TimedOut => "timed out",
            Cause::Undecodable => "undecodable args",
            Cause::Unstorable => "unstorable output",
            Cause::UnknownKind => "unknown kind",
            Cause::Lost => "lost",
            Cause::Cancelled => "cancelled",
            Cause::Deaf => "cancelled, deaf",
            Cause::Deliveries => "delivered too often",
        };
        if self.message.is_empty() {
            return f.write_str(label);
        }
        write!(f, "{label}: {}", self.message)
    }
}
