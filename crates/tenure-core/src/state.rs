//! The state of a job: an enum with data, not a word beside options.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Block, HostId, Invalid, Timestamp};

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It waits to be reserved, from `due` on.
    Waiting {
        /// When it becomes visible to workers.
        due: Timestamp,
        /// What it waits for.
        why: Why,
    },
    /// It waits for something else than time.
    Blocked {
        /// What.
        on: Block,
        /// When it was to become visible.
        due: Timestamp,
        /// What it waited for before.
        why: Why,
    },
    /// A holder owns it.
    Running {
        /// Who owns it.
        holder: HostId,
        /// Until when, unless the holder renews.
        until: Timestamp,
        /// When it had been due: where it returns to in line if it is given back.
        due: Timestamp,
    },
    /// It has ended; this never changes, except that somebody may ask for it to be done again.
    Finished {
        /// When it ended.
        at: Timestamp,
        /// How it ended.
        end: End,
    },
}

/// Why a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was enqueued and has not run.
    Enqueued,
    /// An attempt failed and the policy allows another.
    Retry,
    /// Its handler asked to be called again later.
    Snoozed,
    /// Its holder gave it back, for example because it stopped.
    Released,
    /// Its holder fell silent past its lease.
    Lost,
    /// It had finished and somebody asked for it to be done again.
    Asked,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Its handler was done.
    Succeeded,
    /// It failed for good, or its attempts are spent.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// The name under which people see a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Waiting for an instant in the future.
    Scheduled,
    /// Due, waiting for a worker.
    Queued,
    /// Waiting for something else than time.
    Blocked,
    /// Owned by a holder.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Ended because somebody asked.
    Cancelled,
}

impl StateName {
    /// Every name, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::Queued,
        Self::Blocked,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name as text.
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
    /// When it ended; `None` while it has not.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        match self {
            Self::Finished { at, .. } => Some(*at),
            Self::Waiting { .. } | Self::Blocked { .. } | Self::Running { .. } => None,
        }
    }

    /// The name people see at `now`.
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

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished { .. })
    }

    /// When it is or was last due; `None` once it has ended.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due, .. } | Self::Blocked { due, .. } | Self::Running { due, .. } => Some(*due),
            Self::Finished { .. } => None,
        }
    }

    /// For how long it has been waiting beyond its due instant.
    #[must_use]
    pub fn overdue(&self, now: Timestamp) -> Duration {
        match self {
            Self::Waiting { due, .. } | Self::Blocked { due, .. } => now.since(*due),
            Self::Running { .. } | Self::Finished { .. } => Duration::ZERO,
        }
    }
}

impl End {
    /// The name people see.
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
