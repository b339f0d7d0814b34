//! How long an ended job is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{End, Invalid, Timestamp, delay_of, limits};

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
        match self.keep(end) {
            Keep::For(span) => Some(at.after(span)),
            Keep::Forever => None,
        }
    }

    /// See [`Job::expiry_while_needed`](crate::Job::expiry_while_needed).
    pub(crate) fn expiry_while_needed(&self, end: End, now: Timestamp) -> Timestamp {
        let span = match self.keep(end) {
            Keep::For(span) => span.clamp(limits::NEEDED_LEAST, limits::NEEDED_MOST),
            Keep::Forever => limits::NEEDED_MOST,
        };
        now.after(span)
    }

    fn keep(&self, end: End) -> Keep {
        match end {
            End::Succeeded => self.succeeded,
            End::Failed | End::Cancelled => self.failed,
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

    #[test]
    fn a_needed_job_is_kept_for_its_retention_again_within_bounds() {
        let again = |keep| {
            let until = Retention::always(keep).expiry_while_needed(End::Succeeded, Timestamp::EPOCH);
            until.since(Timestamp::EPOCH)
        };
        let minutes = |count: u32| Keep::For(Duration::from_secs(60) * count);
        assert_eq!(again(minutes(0)), limits::NEEDED_LEAST);
        assert_eq!(again(minutes(7)), Duration::from_secs(420));
        assert_eq!([again(minutes(1440)), again(Keep::Forever)], [limits::NEEDED_MOST; 2]);
    }
}
