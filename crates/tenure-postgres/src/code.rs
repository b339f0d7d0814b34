//! The numbers under which the database keeps states and reasons.

use tenure_core::{AttemptEnd, End, State, Why};
use tenure_store::Fault;

use crate::fault::unreadable;

pub(crate) const WAITING: i16 = 0;
pub(crate) const RUNNING: i16 = 1;
pub(crate) const SUCCEEDED: i16 = 2;
pub(crate) const FAILED: i16 = 3;
pub(crate) const CANCELLED: i16 = 4;

/// Where a job with keys is.
pub(crate) const AT_DIARY: i16 = 0;
pub(crate) const AT_LINE: i16 = 1;
pub(crate) const AT_JOBS: i16 = 2;
pub(crate) const AT_ORDER: i16 = 3;
pub(crate) const AT_LIMIT: i16 = 4;
pub(crate) const AT_WORK: i16 = 5;

pub(crate) fn of_state(state: &State) -> i16 {
    match state {
        State::Waiting { .. } | State::Blocked { .. } => WAITING,
        State::Running { .. } => RUNNING,
        State::Finished { end, .. } => of_end(*end),
    }
}

pub(crate) fn of_end(end: End) -> i16 {
    match end {
        End::Succeeded => SUCCEEDED,
        End::Failed => FAILED,
        End::Cancelled => CANCELLED,
    }
}

/// How a job ended; `None` if it was removed before it had.
pub(crate) fn end(code: Option<i16>) -> Result<Option<End>, Fault> {
    match code {
        None => Ok(None),
        Some(SUCCEEDED) => Ok(Some(End::Succeeded)),
        Some(FAILED) => Ok(Some(End::Failed)),
        Some(CANCELLED) => Ok(Some(End::Cancelled)),
        Some(other) => Err(unreadable(format_args!("end of a job {other}"))),
    }
}

pub(crate) fn of_why(why: Why) -> i16 {
    match why {
        Why::Enqueued => 0,
        Why::Retry => 1,
        Why::Snoozed => 2,
        Why::Released => 3,
        Why::Lost => 4,
        Why::Asked => 5,
    }
}

pub(crate) fn why(code: i16) -> Result<Why, Fault> {
    match code {
        0 => Ok(Why::Enqueued),
        1 => Ok(Why::Retry),
        2 => Ok(Why::Snoozed),
        3 => Ok(Why::Released),
        4 => Ok(Why::Lost),
        5 => Ok(Why::Asked),
        other => Err(unreadable(format_args!("reason to wait {other}"))),
    }
}

pub(crate) fn of_attempt_end(end: AttemptEnd) -> i16 {
    match end {
        AttemptEnd::Succeeded => 0,
        AttemptEnd::Failed => 1,
        AttemptEnd::Retried => 2,
        AttemptEnd::Snoozed => 3,
        AttemptEnd::Released => 4,
        AttemptEnd::Lost => 5,
        AttemptEnd::Cancelled => 6,
    }
}

pub(crate) fn attempt_end(code: i16) -> Result<AttemptEnd, Fault> {
    match code {
        0 => Ok(AttemptEnd::Succeeded),
        1 => Ok(AttemptEnd::Failed),
        2 => Ok(AttemptEnd::Retried),
        3 => Ok(AttemptEnd::Snoozed),
        4 => Ok(AttemptEnd::Released),
        5 => Ok(AttemptEnd::Lost),
        6 => Ok(AttemptEnd::Cancelled),
        other => Err(unreadable(format_args!("end of an attempt {other}"))),
    }
}
