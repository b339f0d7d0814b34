//! One stream of time, seen through the clocks of many machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::{Clock, ManualClock, Moment, Sleep};

use crate::gate::Gate;

/// The clock of one machine: its time of day may be off and may step, its seconds may be a little
/// long or short, and while the machine is frozen nobody wakes up on it.
#[derive(Debug)]
pub(crate) struct SimClock {
    time: ManualClock,
    ahead_us: AtomicI64,
    rate: f64,
    gate: Arc<Gate>,
}

impl SimClock {
    /// A clock on this stream of time that counts `rate` seconds in one.
    pub(crate) fn new(time: &ManualClock, rate: f64, gate: Arc<Gate>) -> Self {
        Self { time: time.clone(), ahead_us: AtomicI64::new(0), rate, gate }
    }

    /// Steps the time of day by so many microseconds.
    pub(crate) fn step(&self, by_us: i64) {
        self.ahead_us.fetch_add(by_us, Ordering::Relaxed);
    }

    /// Sets the time of day right.
    pub(crate) fn set_right(&self) {
        self.ahead_us.store(0, Ordering::Relaxed);
    }

    pub(crate) fn ahead_us(&self) -> i64 {
        self.ahead_us.load(Ordering::Relaxed)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let micros = self.time.now().as_micros().saturating_add(self.ahead_us());
        Timestamp::from_micros(micros).unwrap_or(Timestamp::EPOCH)
    }

    fn moment(&self) -> Moment {
        Moment::from_start(since_start(&self.time).mul_f64(self.rate))
    }

    fn sleep(&self, span: Duration) -> Sleep {
        let sleep = self.time.sleep(span.div_f64(self.rate));
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            sleep.await;
            // Whoever belongs to a dead host may wake up: it finds every other door shut.
            let _ = gate.pass().await;
        })
    }
}

/// How much time has passed in all.
pub(crate) fn since_start(time: &ManualClock) -> Duration {
    time.moment().since(Moment::from_start(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_store::Chance;

    #[tokio::test]
    async fn a_frozen_host_does_not_wake_until_it_is_thawed() {
        let (time, gate) = (ManualClock::new(), Arc::new(Gate::default()));
        let clock = SimClock::new(&time, 1.0, Arc::clone(&gate));
        let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(1)));
        tokio::task::yield_now().await;
        gate.freeze();
        time.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        gate.thaw(&Chance::seeded(1));
        sleeper.await.unwrap();
        assert_eq!(clock.moment(), Moment::from_start(Duration::from_secs(60)));
    }

    #[test]
    fn a_step_moves_the_time_of_day_and_no_deadline() {
        let time = ManualClock::new();
        let clock = SimClock::new(&time, 1.0, Arc::default());
        let (now, moment) = (clock.now(), clock.moment());
        clock.step(-5_000_000);
        assert_eq!((now.since(clock.now()), clock.moment()), (Duration::from_secs(5), moment));
        clock.set_right();
        assert_eq!(clock.now(), now);
    }
}
