//! Who waits for a lease, and whose turn it is.

use std::time::Duration;

use super::Ticket;
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

impl Ticket {
    /// Until when to keep a place that is kept until `kept` already; `None` if that will do.
    ///
    /// Whoever waits asks often, and each new instant is a write. So a place is kept for longer only once
    /// more than a third of its time is gone: it lasts for at least two thirds of what was asked for last.
    #[must_use]
    pub fn prolongs(self, kept: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let Self::Kept(until) = self else { return None };
        let apart = until.since(kept).max(kept.since(until));
        (apart > until.since(now) / 3).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_line_is_written_again_only_after_a_third_of_its_time() {
        let at = |seconds| Timestamp::EPOCH.after(Duration::from_secs(seconds));
        let asked_at = |seconds| Ticket::Kept(at(seconds + 30)).prolongs(at(30), at(seconds));
        assert_eq!([asked_at(0), asked_at(10), asked_at(11)], [None, None, Some(at(41))]);
    }

    #[test]
    fn a_place_that_is_wanted_for_much_less_is_kept_for_less() {
        let at = |seconds| Timestamp::EPOCH.after(Duration::from_secs(seconds));
        assert_eq!(Ticket::Kept(at(5)).prolongs(at(30), at(0)), Some(at(5)));
        assert_eq!(Ticket::GivenUp.prolongs(at(30), at(0)), None);
    }
}
