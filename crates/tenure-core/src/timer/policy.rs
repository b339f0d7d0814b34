//! What a timer does when it is late, when its last job still runs, and when somebody changes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, delay_of, limits};

/// The policy for runs that are due together because no host fired them in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// Skip those that are more than a minute late, and enqueue a job for each of the others.
    Skip,
    /// Enqueue one job, for the latest of them, even if they are only seconds late.
    #[default]
    One,
    /// Enqueue a job for each of the latest of them; skip earlier ones.
    All {
        /// Maximum number of runs to catch up.
        most: u32,
    },
}

/// The policy for a run that is due while jobs of earlier runs are unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Skip the run.
    #[default]
    Skip,
    /// Start the job after the running one has ended. If one is waiting already, skip the run.
    QueueOne,
    /// Start the job after all earlier ones have ended.
    QueueAll,
    /// Ask the earlier jobs to stop, and start the job after they have ended.
    CancelPrevious,
    /// Run the jobs concurrently, up to a maximum; beyond it, skip the run.
    Allow {
        /// Maximum number of concurrent jobs.
        most: u32,
    },
}

/// The policy for past, undecided runs when the schedule changes. If only other settings change, such as policies or
/// arguments, they are decided by the old settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEdit {
    /// Decide them by the old policies.
    #[default]
    Keep,
    /// Skip them.
    Drop,
}

/// The policies of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policies {
    /// Policy for missed runs.
    #[serde(skip_serializing_if = "is_default")]
    pub catch_up: CatchUp,
    /// A run that is later than this is skipped, whatever the other policies say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lateness: Option<Duration>,
    /// Policy for overlapping runs.
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// Policy for past runs when the schedule changes.
    #[serde(skip_serializing_if = "is_default")]
    pub on_edit: OnEdit,
    /// `true` if a program that starts enqueues a job, unless one was enqueued within the last minute by the
    /// schedule, another start, a trigger or a backfill.
    #[serde(skip_serializing_if = "is_default")]
    pub run_on_start: bool,
}

impl CatchUp {
    fn check(self) -> Result<(), Invalid> {
        match self {
            Self::Skip | Self::One => Ok(()),
            Self::All { most } => within("catch_up", u64::from(most), limits::CATCH_UP),
        }
    }
}

impl Overlap {
    /// How many jobs of the timer run at once, if not one at a time in their order.
    #[must_use]
    pub fn at_once(self) -> Option<u32> {
        match self {
            Self::Skip | Self::QueueOne | Self::QueueAll | Self::CancelPrevious => None,
            Self::Allow { most } => Some(most),
        }
    }

    /// How many jobs of the timer may be there before a slot is skipped.
    #[must_use]
    pub fn room(self) -> usize {
        match self {
            Self::Skip => 1,
            Self::QueueOne => 2,
            Self::QueueAll | Self::CancelPrevious => limits::OPEN_JOBS,
            Self::Allow { most } => {
                usize::try_from(most).map_or(limits::OPEN_JOBS, |most| most.min(limits::OPEN_JOBS))
            }
        }
    }

    fn check(self) -> Result<(), Invalid> {
        match self {
            Self::Skip | Self::QueueOne | Self::QueueAll | Self::CancelPrevious => Ok(()),
            Self::Allow { most } => within("overlap", u64::from(most), limits::OPEN_JOBS as u64),
        }
    }
}

impl Policies {
    /// Accepts policies within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        self.catch_up.check()?;
        self.overlap.check()?;
        if let Some(late) = self.max_lateness {
            delay_of("max_lateness", late)?;
        }
        Ok(())
    }
}

impl Policies {
    /// Accepts what can be agreed about a timer that waits after each run: its slots cannot be missed or overlap.
    pub(super) fn check_of_wait(&self) -> Result<(), Invalid> {
        let given = Self::default();
        let said = [
            ("catch_up", self.catch_up != given.catch_up),
            ("max_lateness", self.max_lateness != given.max_lateness),
            ("overlap", self.overlap != given.overlap),
            ("on_edit", self.on_edit != given.on_edit),
        ];
        let Some((field, _)) = said.into_iter().find(|(_, is_said)| *is_said) else { return Ok(()) };
        let allowed = "none for a delay, whose next run is counted from the end of the last job";
        Err(Invalid::new(field, "a policy", allowed))
    }
}

fn within(field: &str, found: u64, most: u64) -> Result<(), Invalid> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(Invalid::new(field, found, format_args!("1 to {most}")))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policies_are_written_as_nothing() {
        assert_eq!(serde_json::to_string(&Policies::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<Policies>("{}").unwrap(), Policies::default());
    }

    #[test]
    fn a_policy_beyond_its_limit_is_refused_by_name() {
        let field = |policies: Policies| policies.check().unwrap_err().field;
        let given = Policies::default();
        assert_eq!(field(Policies { catch_up: CatchUp::All { most: 0 }, ..given }), "catch_up");
        assert_eq!(field(Policies { catch_up: CatchUp::All { most: 1_001 }, ..given }), "catch_up");
        assert_eq!(field(Policies { overlap: Overlap::Allow { most: 0 }, ..given }), "overlap");
        assert_eq!(field(Policies { max_lateness: Some(Duration::MAX), ..given }), "max_lateness");
    }
}
