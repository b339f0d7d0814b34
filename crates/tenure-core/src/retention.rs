//! How long an ended job is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{End, Invalid, Timestamp, delay_of};

/// How long a job is kept after it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// For a job that succeeded.
    pub succeeded: Keep,
    /// For a job that failed or was cancelled.
    pub failed: Keep,
}

/// A retention time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// For this time; zero means until the next pruning.
    For(Duration),
    /// Until it is deleted.
    Forever,
}

impl Default for Retention {
    /// A day for what succeeded, two weeks for the rest.
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self { succeeded: Keep::For(DAY), failed: Keep::For(DAY.saturating_mul(14)) }
    }
}

impl Retention {
    /// Keeps the job for the same time however it ends.
    #[must_use]
    pub fn always(keep: Keep) -> Self {
        Self { succeeded: keep, failed: keep }
    }

    /// When a job that ended so at `at` may be removed; `None` is never.
    #[must_use]
    pub fn expiry(&self, end: End, at: Timestamp) -> Option<Timestamp> {
        let keep = match end {
            End::Succeeded => self.succeeded,
            End::Failed | End::Cancelled => self.failed,
        };
        match keep {
            Keep::For(span) => Some(at.after(span)),
            Keep::Forever => None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        for keep in [self.succeeded, self.failed] {
            if let Keep::For(span) = keep {
                delay_of("retention", span)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T144: days beyond what fits 32 bits of milliseconds, beyond thirty days, and zero.
    #[test]
    fn long_zero_and_endless_retention_mean_what_they_say() {
        let day = Duration::from_secs(24 * 3600);
        for days in [0, 1, 31, 50, 400, 36_500] {
            let keep = Retention::always(Keep::For(day * days));
            assert_eq!(keep.expiry(End::Failed, Timestamp::EPOCH), Some(Timestamp::EPOCH.after(day * days)));
        }
        assert_eq!(Retention::always(Keep::Forever).expiry(End::Succeeded, Timestamp::EPOCH), None);
        assert!(Retention::always(Keep::For(Duration::MAX)).check().is_err());
    }
}
