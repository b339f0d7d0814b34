//! The numbers under which the file keeps states and reasons.

use rusqlite::Result;
use tenure_core::{AttemptEnd, End, State, Why};

use crate::fault::unreadable;

pub(crate) const WAITING: i64 = 0;
pub(crate) const RUNNING: i64 = 1;
pub(crate) const SUCCEEDED: i64 = 2;
pub(crate) const FAILED: i64 = 3;
pub(crate) const CANCELLED: i64 = 4;

pub(crate) fn of_state(state: &State) -> i64 {
    match state {
        State::Waiting { .. } | State::Blocked { .. } => WAITING,
        State::Running { .. } => RUNNING,
        State::Finished { end, .. } => of_end(*end),
    }
}

/// How a state has ended; `None` if it has not.
pub(crate) fn end(code: i64) -> Option<End> {
    match code {
        SUCCEEDED => Some(End::Succeeded),
        FAILED => Some(End::Failed),
        CANCELLED => Some(End::Cancelled),
        _ => None,
    }
}

pub(crate) fn of_end(end: End) -> i64 {
    match end {
        End::Succeeded => SUCCEEDED,
        End::Failed => FAILED,
        End::Cancelled => CANCELLED,
    }
}

pub(crate) fn of_why(why: Why) -> i64 {
    match why {
        Why::Enqueued => 0,
        Why::Retry => 1,
        Why::Snoozed => 2,
        Why::Released => 3,
        Why::Lost => 4,
        Why::Asked => 5,
    }
}

pub(crate) fn why(code: i64) -> Result<Why> {
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

pub(crate) fn of_attempt_end(end: AttemptEnd) -> i64 {
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

pub(crate) fn attempt_end(code: i64) -> Result<AttemptEnd> {
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
