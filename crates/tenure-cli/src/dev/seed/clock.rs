//! A clock that begins in the past and catches up: what is filled in has happened when it says so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure::{Clock, Moment, SystemClock, Timestamp};

/// For how long it shows that things have gone on.
pub(crate) const PAST: Duration = Duration::from_secs(5 * 3600);

/// The clock of this machine, less what it has still to catch up with.
#[derive(Debug, Clone)]
pub(crate) struct CatchingUp {
    behind_micros: Arc<AtomicU64>,
}

impl CatchingUp {
    pub(crate) fn new() -> Self {
        Self { behind_micros: Arc::new(AtomicU64::new(micros(PAST))) }
    }

    /// How far it is behind.
    pub(super) fn behind(&self) -> Duration {
        Duration::from_micros(self.behind_micros.load(Ordering::Relaxed))
    }

    /// Lets time pass, until it shows what clocks show.
    pub(super) fn pass(&self, span: Duration) {
        let left = self.behind().saturating_sub(span);
        self.behind_micros.store(micros(left), Ordering::Relaxed);
    }

    /// Lets time pass until it is only so far behind.
    pub(super) fn pass_until(&self, behind: Duration) {
        self.pass(self.behind().saturating_sub(behind));
    }
}

impl Clock for CatchingUp {
    fn now(&self) -> Timestamp {
        SystemClock.now().before(self.behind())
    }

    fn moment(&self) -> Moment {
        SystemClock.moment().after(PAST.saturating_sub(self.behind()))
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(span)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_catches_up_and_never_goes_back() {
        let clock = CatchingUp::new();
        let (began, moment) = (clock.now(), clock.moment());
        clock.pass(Duration::from_secs(3600));
        assert!(clock.now().since(began) >= Duration::from_secs(3600));
        assert!(clock.moment().since(moment) >= Duration::from_secs(3600));
        clock.pass_until(Duration::from_secs(60));
        clock.pass_until(Duration::from_secs(600));
        assert_eq!(clock.behind(), Duration::from_secs(60));
        clock.pass(PAST);
        assert_eq!(clock.behind(), Duration::ZERO);
        assert!(SystemClock.now().since(clock.now()) < Duration::from_secs(60));
    }
}
