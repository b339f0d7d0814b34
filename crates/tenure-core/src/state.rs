//! The state of a job: an enum with data, not a word beside options.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Block, HostId, Invalid, Timestamp};

/// The stored state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// The job waits and can be claimed from `due` on.
    Waiting {
        /// Time from which workers can claim it.
        due: Timestamp,
        /// Reason for waiting.
        why: Why,
    },
    /// The job waits for something other than time.
    Blocked {
        /// What it waits for.
        on: Block,
        /// Time from which it would have been due.
        due: Timestamp,
        /// Earlier reason for waiting.
        why: Why,
    },
    /// A host owns the job.
    Running {
        /// The host.
        holder: HostId,
        /// Expiry of its lease, unless renewed.
        until: Timestamp,
        /// Original due time, which is its place in line if it is released.
        due: Timestamp,
    },
    /// The job has ended. This state is final unless the job is retried by request.
    Finished {
        /// End time.
        at: Timestamp,
        /// How it ended.
        end: End,
    },
}

/// The reason for which a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was enqueued and has not run yet.
    Enqueued,
    /// An attempt failed and the policy allows a retry.
    Retry,
    /// Its handler snoozed it.
    Snoozed,
    /// Its worker released it, for example at shutdown.
    Released,
    /// Its worker stopped responding and the lease expired.
    Lost,
    /// It had finished and was retried by request.
    Asked,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The handler succeeded.
    Succeeded,
    /// The job failed for good, or no attempts are left.
    Failed,
    /// The job was cancelled.
    Cancelled,
}

/// The state of a job as shown to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Waiting for a time in the future.
    Scheduled,
    /// Due, waiting for a worker.
    Queued,
    /// Waiting for something other than time.
    Blocked,
    /// Owned by a worker.
    Running,
    /// Ended successfully.
    Succeeded,
    /// Ended with a failure.
    Failed,
    /// Ended by cancellation.
    Cancelled,
}

impl StateName {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::Queued,
        Self::Blocked,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for StateName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let names = Self::ALL.map(Self::as_str).join(", ");
        let found = crate::invalid::cut(text, 64);
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| Invalid::new("state", format_args!("{found:?}"), format_args!("one of {names}")))
    }
}

impl State {
    /// Returns the end time; `None` while the job has not ended.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        match self {
            Self::Finished { at, .. } => Some(*at),
            Self::Waiting { .. } | Self::Blocked { .. } | Self::Running { .. } => None,
        }
    }

    /// Returns the state shown to users at `now`.
    #[must_use]
    pub fn name(&self, now: Timestamp) -> StateName {
        match self {
            Self::Waiting { due, .. } if *due > now => StateName::Scheduled,
            Self::Waiting { .. } => StateName::Queued,
            Self::Blocked { .. } => StateName::Blocked,
            Self::Running { .. } => StateName::Running,
            Self::Finished { end, .. } => end.name(),
        }
    }

    /// Returns `true` if the job has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished { .. })
    }

    /// Returns the current or last due time; `None` once the job has ended.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due, .. } | Self::Blocked { due, .. } | Self::Running { due, .. } => Some(*due),
            Self::Finished { .. } => None,
        }
    }

    /// Returns how long the job has been waiting since it became due.
    #[must_use]
    pub fn overdue(&self, now: Timestamp) -> Duration {
        match self {
            Self::Waiting { due, .. } | Self::Blocked { due, .. } => now.since(*due),
            Self::Running { .. } | Self::Finished { .. } => Duration::ZERO,
        }
    }
}

impl End {
    /// Returns the state shown to users.
    #[must_use]
    pub fn name(self) -> StateName {
        match self {
            Self::Succeeded => StateName::Succeeded,
            Self::Failed => StateName::Failed,
            Self::Cancelled => StateName::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_seen_under_one_name_at_each_instant() {
        let at = |second| Timestamp::EPOCH.after(Duration::from_secs(second));
        let waiting = State::Waiting { due: at(10), why: Why::Enqueued };
        assert_eq!((waiting.name(at(9)), waiting.overdue(at(9))), (StateName::Scheduled, Duration::ZERO));
        assert_eq!(
            (waiting.name(at(10)), waiting.overdue(at(15))),
            (StateName::Queued, Duration::from_secs(5))
        );
        let running = State::Running { holder: HostId::from_bytes([1; 16]), until: at(20), due: at(10) };
        assert_eq!((running.name(at(99)), running.overdue(at(99))), (StateName::Running, Duration::ZERO));
        for end in [End::Succeeded, End::Failed, End::Cancelled] {
            assert_eq!(State::Finished { at: at(20), end }.name(at(30)), end.name());
        }
    }

    #[test]
    fn every_name_reads_back_and_no_other_is_taken_for_one() {
        for name in StateName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        let complaint = "Running".parse::<StateName>().unwrap_err();
        assert!(complaint.allowed.contains("scheduled, queued, blocked, running"), "{complaint}");
    }
}
