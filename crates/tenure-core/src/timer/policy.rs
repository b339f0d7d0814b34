//! What a timer does when it is late, when its last job still runs, and when somebody changes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, delay_of, limits};

/// What becomes of slots for which nobody was there in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are skipped. A slot is missed when it could not be enqueued within a minute.
    Skip,
    /// The latest gets one job, which stands for the earlier ones.
    #[default]
    One,
    /// The latest get a job each; earlier ones are skipped.
    All {
        /// How many at most.
        most: u32,
    },
}

/// What becomes of a slot while jobs of earlier slots have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is skipped.
    #[default]
    Skip,
    /// Its job waits for the end of the one that runs. While one waits already, it is skipped.
    QueueOne,
    /// Its job waits for the end of all earlier ones.
    QueueAll,
    /// Earlier ones are asked to stop; its job waits for their end.
    CancelPrevious,
    /// Its job runs beside them. While there are so many already, it is skipped.
    Allow {
        /// How many at most.
        most: u32,
    },
}

/// What becomes of slots that have passed without a decision when somebody changes the schedule. If only something
/// else is changed, such as policies or arguments, they are decided by what was agreed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEdit {
    /// They are decided by the policies of before.
    #[default]
    Keep,
    /// They are skipped.
    Drop,
}

/// All that was agreed about the slots of a timer besides when they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policies {
    /// What becomes of missed slots.
    #[serde(skip_serializing_if = "is_default")]
    pub catch_up: CatchUp,
    /// A slot that is later than this is skipped, whatever else is agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lateness: Option<Duration>,
    /// What becomes of slots that come too soon.
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// What becomes of passed slots when the schedule is changed.
    #[serde(skip_serializing_if = "is_default")]
    pub on_edit: OnEdit,
    /// Whether a program that starts brings one more job, unless one was brought within the last minute: by the
    /// schedule, by another start, by a trigger or a backfill.
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
        let allowed = "none for a delay: its next slot is counted from the end of its last job";
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
