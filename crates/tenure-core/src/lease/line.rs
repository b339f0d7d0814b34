//! Who waits for a lease, and whose turn it is.

use std::time::Duration;

use crate::Timestamp;

/// How long a lease that became free is left to the first in line before the second may take it, and so
/// on. Somebody in line may have died.
const HEAD_START: Duration = Duration::from_millis(250);
/// Nobody is kept back for longer than that many starts.
const MOST_STARTS: u32 = 8;

/// The line before a lease, as somebody who wants it meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// How many came before: all who wait, if this one has no place in line.
    pub ahead: u32,
    /// How many others wait.
    pub waiting: u32,
}

impl Line {
    /// When it is the turn of this one to take what has been free since then; `now` or earlier if it is.
    ///
    /// The first in line is kept back by nobody. A clock that was put back keeps nobody back for longer
    /// than the line alone would.
    #[must_use]
    pub fn turn(&self, free_since: Timestamp, now: Timestamp) -> Timestamp {
        free_since.min(now).after(HEAD_START * self.ahead.min(MOST_STARTS))
    }
}
