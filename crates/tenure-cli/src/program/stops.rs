//! How often a worker was told to stop, and until when it has ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::Moment;

use super::{Press, Presses};
use crate::exit::Failure;

/// How long the ends of programs may take to be told once their grace is over, or they were killed.
const SETTLING: Duration = Duration::from_secs(5);

/// How often a worker was told to stop.
#[derive(Debug, Default)]
pub(super) struct Stops {
    count: AtomicUsize,
    presses: Mutex<Presses>,
}

/// Who tells it to stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Somebody who is there.
    Signal(Press),
    /// The server: by a command, or because it answers no more. Each queue may hear the same.
    Server,
}

impl Stops {
    /// How often it was told to before; none if that is nothing new.
    pub(super) fn count(&self, by: By, now: Moment) -> Option<usize> {
        match by {
            By::Signal(press) => {
                self.presses.lock().unwrap_or_else(PoisonError::into_inner).press(now, press)?;
                Some(self.count.fetch_add(1, Ordering::SeqCst))
            }
            By::Server => self.count.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).ok(),
        }
    }

    pub(super) fn has_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

/// Until when a worker that was told to stop has ended, whether its server answers or not.
#[derive(Debug, Default)]
pub(super) struct Limit {
    pub(super) until: Option<Moment>,
    /// Somebody has no patience any more.
    is_second: bool,
}

impl Limit {
    /// It was told to stop, so often before: programs have their grace after the first time, and none after that.
    pub(super) fn told(&mut self, before: usize, grace: Duration, now: Moment) {
        self.is_second = before > 0;
        let grace = if self.is_second { Duration::ZERO } else { grace };
        let until = now.after(grace + SETTLING);
        self.until = Some(self.until.map_or(until, |sooner| sooner.min(until)));
    }

    /// How a worker ends whose limit is over.
    pub(super) fn failure(&self, server: &str) -> Failure {
        match self.is_second {
            true => Failure::Interrupted,
            false => Failure::Unreachable(format!("stopped before {server} confirmed the end of all jobs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Clock, SystemClock};

    use super::*;

    #[test]
    fn what_each_queue_hears_of_a_server_stops_once_and_only_signals_kill() {
        let stops = Stops::default();
        assert!(!stops.has_any());
        let now = SystemClock.moment();
        let later = now.after(Duration::from_secs(1));
        assert_eq!(stops.count(By::Server, now), Some(0));
        assert!(stops.has_any());
        assert_eq!(stops.count(By::Server, now), None, "another queue hears the same");
        assert_eq!(stops.count(By::Signal(Press::Interrupt), now), Some(1));
        let stops = Stops::default();
        assert_eq!(stops.count(By::Signal(Press::Interrupt), now), Some(0));
        assert_eq!(stops.count(By::Server, now), None);
        assert_eq!(stops.count(By::Signal(Press::Interrupt), now), None, "a parent has passed the same on");
        assert_eq!(stops.count(By::Signal(Press::Interrupt), later), Some(1));
    }

    #[test]
    fn a_worker_has_its_grace_and_a_little_after_the_first_signal_and_only_that_after_the_second() {
        let (now, grace) = (SystemClock.moment(), Duration::from_secs(60));
        let mut limit = Limit::default();
        limit.told(0, grace, now);
        assert_eq!(limit.until, Some(now.after(grace + SETTLING)));
        assert_eq!(limit.failure("it").code(), 3);
        let later = now.after(grace / 2);
        limit.told(1, grace, later);
        assert_eq!(limit.until, Some(later.after(SETTLING)));
        assert_eq!(limit.failure("it").code(), 130);
        limit.told(2, grace, later.after(SETTLING / 2));
        assert_eq!(limit.until, Some(later.after(SETTLING)), "it is not put off");
    }
}
