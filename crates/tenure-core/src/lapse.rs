//! What becomes of a job without its holder: by time alone ([`lapse`]) and by request ([`redo`]).

use crate::transition::end_transition;
use crate::{AttemptEnd, Cause, End, Epoch, Failure, Job, State, Timestamp, Transition, Why, cancel};

/// What becomes of a running job by time alone; `None` while its holder has until later.
///
/// A holder that fell silent past its lease loses the job. That has counted as an attempt, and an
/// attempt above the limit is not started: a job that kills its host is bounded.
#[must_use]
pub fn lapse(job: &Job, epoch: Epoch, now: Timestamp) -> Option<Transition> {
    let State::Running { holder, until, due } = job.state else { return None };
    if let Some(request) = &job.cancel
        && (request.deadline <= now || until <= now)
    {
        return Some(cancel::take(job, until, request, epoch, now));
    }
    if until > now {
        return None;
    }
    let failure =
        Failure::new(Cause::Lost, &format!("host {holder} stopped responding; its lease ended at {until}"));
    let taken = !cfg!(mutant = "lapse-keeps-fence");
    let fence = if taken { job.fence.next(epoch) } else { job.fence };
    let spent = job.attempt >= job.terms.max_attempts() || job.delivery >= job.terms.max_deliveries();
    if spent {
        return Some(Transition {
            ended: Some(AttemptEnd::Lost),
            fence,
            ..end_transition(job, End::Failed, now, Some(failure))
        });
    }
    Some(Transition {
        state: State::Waiting { due, why: Why::Lost },
        attempt: job.attempt,
        fence,
        ended: Some(AttemptEnd::Lost),
        failure: Some(failure),
        output: None,
        expires: None,
    })
}

/// What doing a finished job again comes to; `None` if it has not finished.
///
/// It has all its attempts again. Its deliveries go on counting, since they number its attempts on
/// record: a job whose deliveries are spent gets one grant, and fails with it if it is put off again.
#[must_use]
pub fn redo(job: &Job, now: Timestamp) -> Option<Transition> {
    let State::Finished { .. } = job.state else { return None };
    Some(Transition {
        state: State::Waiting { due: now, why: Why::Asked },
        attempt: 0,
        fence: job.fence,
        ended: None,
        failure: None,
        output: None,
        expires: None,
    })
}
