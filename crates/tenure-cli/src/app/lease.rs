//! The time until which a program of a host may run. Its supervisor kills it then, because a host that is stopped cannot.

use std::time::Duration;

use tenure::{Clock, Moment, SystemClock};
use tenure_program::{Deadline, Reins};

/// Returns the end of the job or lease under which a program runs; none if it needs neither.
pub(super) type HeldUntil = Box<dyn Fn() -> Option<Moment> + Send>;

/// The right by which a program runs.
pub(super) struct Lease {
    held_until: HeldUntil,
    /// Time for the program to end after its host has heard of the loss. The lease is over later than that.
    last_words: Duration,
    until: Option<Moment>,
}

impl Lease {
    pub(super) fn of(held_until: HeldUntil, last_words: Duration) -> Self {
        let until = held_until();
        Self { held_until, last_words, until }
    }

    /// Converts the end to the machine's clock. If this process is paused meanwhile, the result is earlier, never later.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let now = Deadline::now();
        Some(now.after(self.until?.since(SystemClock.moment()) + self.last_words))
    }

    /// Has the supervisor kill the program later if the lease was renewed.
    pub(super) fn extend(&mut self, reins: &Reins) {
        let until = (self.held_until)();
        if until == self.until {
            return;
        }
        let before = std::mem::replace(&mut self.until, until);
        if let Some(deadline) = self.deadline()
            && reins.extend(deadline).is_err()
        {
            self.until = before;
        }
    }
}
