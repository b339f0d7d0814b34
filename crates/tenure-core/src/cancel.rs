//! Cancelling a job.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::transition::end_transition;
use crate::{
    AttemptEnd, Cause, End, Epoch, Failure, Invalid, Job, State, Timestamp, Transition, invalid, limits,
};

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
    /// A wish at `now`; an overlong reason is cut and marked, an absurd grace is shortened.
    #[must_use]
    pub fn new(now: Timestamp, grace: Duration, reason: &str) -> Self {
        let deadline = now.after(grace.min(limits::LONGEST));
        Self { at: now, deadline, reason: invalid::storable(reason, limits::REASON_BYTES) }
    }

    /// Accepts what a person gives for one.
    ///
    /// # Errors
    /// Refuses a reason or a grace beyond the limits.
    pub fn check(grace: Duration, reason: &str) -> Result<(), Invalid> {
        invalid::at_most_bytes("reason", reason.len(), limits::REASON_BYTES)?;
        crate::delay_of("grace", grace).map(drop)
    }
}

impl Cancel {
    /// Decides what a wish to cancel `job` comes to.
    #[must_use]
    pub fn decide(job: &Job, request: CancelRequest) -> Self {
        match job.state {
            State::Waiting { .. } | State::Blocked { .. } => {
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

/// Takes a running job from a holder whose lease ended at `until`.
///
/// A holder that fell silent before its grace was over is not called deaf: whoever looks for the
/// handler that would not stop must not find the host that died.
pub(crate) fn take(
    job: &Job,
    until: Timestamp,
    request: &CancelRequest,
    epoch: Epoch,
    now: Timestamp,
) -> Transition {
    let silent = until <= request.deadline;
    let (ended, cause) =
        if silent { (AttemptEnd::Lost, Cause::Cancelled) } else { (AttemptEnd::Cancelled, Cause::Deaf) };
    let failure = Failure::new(cause, &request.reason);
    Transition {
        ended: Some(ended),
        fence: job.fence.next(epoch),
        ..end_transition(job, End::Cancelled, now, Some(failure))
    }
}
