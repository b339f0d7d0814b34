//! How a handler says that it did not succeed.

use std::fmt;
use std::time::Duration;

use tenure_core::{Cause, Due, Failure, Timestamp, Verdict};

/// How long a job rests that its handler gave back.
const RELEASED_FOR: Duration = Duration::from_secs(1);

/// The error of a handler, with what to do about it.
///
/// `?` converts any error into one that means: retry by the policy.
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
    /// Fails this attempt and retries by the policy.
    #[must_use]
    pub fn retry(why: impl fmt::Display) -> Self {
        Self::again(why, None)
    }

    /// Fails this attempt and retries after a delay.
    #[must_use]
    pub fn retry_after(why: impl fmt::Display, delay: Duration) -> Self {
        Self::again(why, Some(Due::In(delay.min(tenure_core::limits::LONGEST))))
    }

    /// Fails this attempt and retries at a given time.
    #[must_use]
    pub fn retry_at(why: impl fmt::Display, due: Timestamp) -> Self {
        Self::again(why, Some(Due::At(due)))
    }

    /// Fails the job for good, without another attempt.
    #[must_use]
    pub fn for_good(why: impl fmt::Display) -> Self {
        Self { verdict: Verdict::Failed(Failure::new(Cause::Error, &why.to_string())) }
    }

    /// Snoozes the job: the handler is called again after a delay. No attempt is spent.
    #[must_use]
    pub fn snooze(delay: Duration) -> Self {
        Self { verdict: Verdict::Snoozed(Due::In(delay.min(tenure_core::limits::LONGEST))) }
    }

    /// Snoozes the job: the handler is called again at a given time. No attempt is spent.
    #[must_use]
    pub fn snooze_until(due: Timestamp) -> Self {
        Self { verdict: Verdict::Snoozed(Due::At(due)) }
    }

    /// Releases the job for another worker. No attempt is spent. The job becomes available after one second, so that
    /// a job which no worker wants does not circulate without pause.
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
            Verdict::Snoozed(_) => f.write_str("snoozed"),
            Verdict::Released => f.write_str("released"),
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
