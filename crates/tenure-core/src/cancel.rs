//! Cancelling a job.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settle::{Transition, end_transition};
use crate::{AttemptEnd, Cause, End, Epoch, Failure, Invalid, Job, State, Timestamp, invalid, limits};

/// A recorded wish that a running job stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// When it was asked.
    pub at: Timestamp,
    /// When the job is taken from a holder that has not stopped.
    pub deadline: Timestamp,
    /// Why. Bounded.
    pub reason: String,
}

/// What cancelling a job comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Cancel {
    /// It was waiting: it ends now.
    Ends(Box<Transition>),
    /// It runs: its holder is told, and the job is taken from it at the deadline.
    Asks(CancelRequest),
    /// Its holder has been told already; the first wish stands.
    AlreadyAsked,
    /// It has ended and stays as it is.
    AlreadyEnded(End),
}

impl CancelRequest {
    /// Accepts a wish at `now`.
    ///
    /// # Errors
    /// Refuses a reason or a grace beyond the limits.
    pub fn new(now: Timestamp, grace: Duration, reason: &str) -> Result<Self, Invalid> {
        invalid::at_most_bytes("reason", reason.len(), limits::REASON_BYTES)?;
        let grace = crate::delay_of("grace", grace)?;
        Ok(Self { at: now, deadline: now.after(grace), reason: reason.to_owned() })
    }
}

impl Cancel {
    /// Decides what a wish to cancel `job` comes to.
    #[must_use]
    pub fn decide(job: &Job, request: CancelRequest) -> Self {
        match job.state {
            State::Waiting { .. } => {
                let failure = Failure::new(Cause::Cancelled, &request.reason);
                Self::Ends(Box::new(Transition {
                    ended: None,
                    ..end_transition(job, End::Cancelled, request.at, Some(failure))
                }))
            }
            State::Running { .. } if job.cancel.is_some() => Self::AlreadyAsked,
            State::Running { .. } => Self::Asks(request),
            State::Finished { end, .. } => Self::AlreadyEnded(end),
        }
    }
}

/// Takes a running job from a holder that did not stop within the grace, or fell silent meanwhile.
pub(crate) fn take(job: &Job, request: &CancelRequest, epoch: Epoch, now: Timestamp) -> Transition {
    let failure = Failure::new(Cause::Deaf, &request.reason);
    Transition {
        ended: Some(AttemptEnd::Cancelled),
        fence: job.fence.next(epoch),
        ..end_transition(job, End::Cancelled, now, Some(failure))
    }
}
