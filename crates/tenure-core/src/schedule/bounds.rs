//! From when until when, and how often.

use super::BadSchedule;
use crate::Timestamp;

/// The bounds of a schedule, all inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// No run before this time.
    pub starts_at: Option<Timestamp>,
    /// No run after this time.
    pub ends_at: Option<Timestamp>,
    /// Maximum number of runs. The caller counts the runs and asks [`Bounds::are_spent`].
    pub most_runs: Option<u64>,
}

impl Bounds {
    /// Returns `true` if the maximum number of runs is reached.
    #[must_use]
    pub fn are_spent(&self, runs: u64) -> bool {
        self.most_runs.is_some_and(|most| runs >= most)
    }

    pub(crate) fn check(&self) -> Result<(), BadSchedule> {
        if let (Some(start), Some(end)) = (self.starts_at, self.ends_at)
            && end < start
        {
            let wrong = format_args!("{end} is before the start");
            return Err(BadSchedule::new("ends_at", wrong).instead(format_args!("{start} or later")));
        }
        if self.most_runs == Some(0) {
            return Err(BadSchedule::new("most_runs", "0 runs").instead("1 or more"));
        }
        Ok(())
    }

    /// What to ask a rule instead of "after `after`", so that it answers nothing before the start.
    pub(crate) fn after(&self, after: Timestamp) -> Timestamp {
        match self.starts_at {
            Some(start) => after.max(start.before(std::time::Duration::from_micros(1))),
            None => after,
        }
    }

    pub(crate) fn have_ended(&self, slot: Timestamp) -> bool {
        self.ends_at.is_some_and(|end| slot > end)
    }
}
