//! How a handler says that it did not succeed.

use std::fmt;
use std::time::Duration;

use tenure_core::{Cause, Due, Failure, Timestamp, Verdict};

/// How long a job rests that its handler gave back.
const RELEASED_FOR: Duration = Duration::from_secs(1);

/// Why a handler did not succeed, and what shall come of it.
///
/// Any error becomes one with `?` and means: try again by the policy.
///
/// ```
/// use tenure::Failed;
///
/// fn address(user: u64) -> Result<String, Failed> {
///     if user == 0 {
///         return Err(Failed::for_good("no such user"));
///     }
///     let number: u32 = "7".parse()?;
///     Ok(format!("{number} Main Street"))
/// }
/// # assert!(address(7).is_ok());
/// ```
#[derive(Debug)]
pub struct Failed {
    verdict: Verdict,
}

impl Failed {
    /// This attempt failed; try again when the policy says.
    #[must_use]
    pub fn retry(why: impl fmt::Display) -> Self {
        Self::again(why, None)
    }

    /// This attempt failed; try again so long from now.
    #[must_use]
    pub fn retry_after(why: impl fmt::Display, delay: Duration) -> Self {
        Self::again(why, Some(Due::In(delay.min(tenure_core::limits::LONGEST))))
    }

    /// This attempt failed; try again at this instant.
    #[must_use]
    pub fn retry_at(why: impl fmt::Display, due: Timestamp) -> Self {
        Self::again(why, Some(Due::At(due)))
    }

    /// No attempt will help: the job has failed.
    #[must_use]
    pub fn for_good(why: impl fmt::Display) -> Self {
        Self { verdict: Verdict::Failed(Failure::new(Cause::Error, &why.to_string())) }
    }

    /// Nothing to do yet: call again so long from now. No attempt is spent.
    #[must_use]
    pub fn snooze(delay: Duration) -> Self {
        Self { verdict: Verdict::Snoozed(Due::In(delay.min(tenure_core::limits::LONGEST))) }
    }

    /// Nothing to do yet: call again at this instant. No attempt is spent.
    #[must_use]
    pub fn snooze_until(due: Timestamp) -> Self {
        Self { verdict: Verdict::Snoozed(Due::At(due)) }
    }

    /// Not here, not now: give the job back. No attempt is spent. It is handed out again a second later
    /// at the earliest, so that a job which nobody wants does not go round in circles.
    #[must_use]
    pub fn release() -> Self {
        Self::snooze(RELEASED_FOR)
    }

    fn again(why: impl fmt::Display, due: Option<Due>) -> Self {
        Self { verdict: Verdict::Retry { failure: Failure::new(Cause::Error, &why.to_string()), due } }
    }

    pub(crate) fn into_verdict(self) -> Verdict {
        self.verdict
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Failed(failure) | Verdict::Cancelled(failure) | Verdict::Retry { failure, .. } => {
                failure.fmt(f)
            }
            Verdict::Snoozed(_) => f.write_str("nothing to do yet"),
            Verdict::Released => f.write_str("given back"),
            Verdict::Succeeded(_) => f.write_str("done"),
        }
    }
}

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::retry(Chain(&error))
    }
}

/// An error with all its sources on one line.
struct Chain<'a>(&'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        for _ in 0..16 {
            let Some(cause) = source else { break };
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
