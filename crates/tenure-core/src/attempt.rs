//! One try of a job, and how it went.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Fence, HostId, Timestamp, invalid, limits};

/// The record of one delivery of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Attempt number: 1, 2, … An attempt that was released does not count and keeps its number.
    pub attempt: u32,
    /// Delivery number: 1, 2, … Every grant counts.
    pub delivery: u32,
    /// Fencing token of this delivery.
    pub fence: Fence,
    /// The host.
    pub holder: HostId,
    /// Start time.
    pub started: Timestamp,
    /// End time and outcome; `None` while it is running.
    pub ended: Option<(Timestamp, AttemptEnd)>,
    /// The error.
    pub failure: Option<Failure>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The job succeeded.
    Succeeded,
    /// The job failed for good.
    Failed,
    /// The attempt failed and the job is retried.
    Retried,
    /// The handler snoozed the job.
    Snoozed,
    /// The worker released the job.
    Released,
    /// The worker stopped responding and its lease expired.
    Lost,
    /// The job was cancelled.
    Cancelled,
}

impl AttemptEnd {
    /// Returns `true` if the outcome spends the attempt. Snoozed and released attempts are not spent.
    #[must_use]
    pub fn spends(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Retried | Self::Lost | Self::Cancelled => true,
            Self::Snoozed | Self::Released => false,
        }
    }

    /// Returns the name.
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

/// The error of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The category.
    pub cause: Cause,
    /// The message, limited in length.
    pub message: String,
}

/// The category of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The handler returned an error.
    Error,
    /// The handler panicked.
    Panic,
    /// The attempt exceeded its timeout.
    TimedOut,
    /// The args could not be parsed as the type of the kind.
    Undecodable,
    /// The output could not be stored.
    Unstorable,
    /// A worker that refuses unknown kinds has no handler for the kind.
    UnknownKind,
    /// The worker stopped responding and its lease expired.
    Lost,
    /// The job was cancelled.
    Cancelled,
    /// The job was cancelled and its handler did not stop within the grace period.
    Deaf,
    /// The job was delivered more often than its policy allows.
    Deliveries,
}

impl Cause {
    /// Returns the name, such as `timed_out`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::TimedOut => "timed_out",
            Self::Undecodable => "undecodable",
            Self::Unstorable => "unstorable",
            Self::UnknownKind => "unknown_kind",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
            Self::Deaf => "deaf",
            Self::Deliveries => "deliveries",
        }
    }
}

impl Failure {
    /// Creates an error. A long message is truncated and marked, and NUL characters are replaced.
    #[must_use]
    pub fn new(cause: Cause, message: &str) -> Self {
        Self { cause, message: invalid::storable(message, limits::FAILURE_BYTES) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = match self.cause {
            Cause::Error if self.message.is_empty() => "an error without a message",
            Cause::Error => return f.write_str(&self.message),
            Cause::Panic => "panic",
            Cause::TimedOut => "timed out",
            Cause::Undecodable => "invalid args",
            Cause::Unstorable => "output cannot be stored",
            Cause::UnknownKind => "unknown kind",
            Cause::Lost => "lost",
            Cause::Cancelled => "cancelled",
            Cause::Deaf => "cancelled, but did not stop",
            Cause::Deliveries => "too many deliveries",
        };
        if self.message.is_empty() {
            return f.write_str(label);
        }
        write!(f, "{label}: {}", self.message)
    }
}
