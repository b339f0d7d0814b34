//! Time, as it is injected.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenure_core::Timestamp;

/// A wait that somebody can await.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A moment on a clock that never steps and runs through suspend. Only for deadlines; never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The moment so long after the clock's start.
    #[must_use]
    pub const fn from_start(span: Duration) -> Self {
        Self(span)
    }

    /// The moment `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time of day, for what is stored and shown. It may step.
    fn now(&self) -> Timestamp;

    /// A moment that never steps, for deadlines.
    fn moment(&self) -> Moment;

    /// Waits so long.
    fn sleep(&self, span: Duration) -> Sleep;
}

/// The clock of the system that never steps and goes on while the host is suspended.
#[cfg(any(target_os = "linux", target_os = "android"))]
const THROUGH_SUSPEND: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// On macOS this clock goes on while the host is suspended.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const THROUGH_SUSPEND: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// For how long at a time a sleeper trusts the timer, which stands still while the host is suspended.
const NAP: Duration = Duration::from_secs(5);

/// The real clock. Whoever sleeps through a suspend wakes a few seconds after it at the latest, if it is time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where real time enters")]
    fn now(&self) -> Timestamp {
        Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::EPOCH)
    }

    #[expect(clippy::disallowed_methods, reason = "this is where real time enters")]
    fn moment(&self) -> Moment {
        let boot = rustix::time::clock_gettime(THROUGH_SUSPEND);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(boot.tv_nsec).unwrap_or(0);
        Moment(Duration::new(seconds, nanos))
    }

    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(sleep_by(*self, span))
    }
}

/// Sleeps by a clock of moments, in naps by a timer that may stand still while the clock goes on.
#[expect(clippy::disallowed_methods, reason = "this is where real time enters")]
async fn sleep_by(clock: impl Clock, span: Duration) {
    if span <= NAP {
        return tokio::time::sleep(span).await;
    }
    let end = clock.moment().after(span);
    loop {
        let left = end.since(clock.moment());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(NAP)).await;
    }
}

/// A clock that stands still until somebody moves it.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(before), Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct ManualClock {
    inner: Arc<Mutex<Hands>>,
}

struct Hands {
    now: Timestamp,
    /// What has passed since `now`, which shows whole microseconds.
    within: Duration,
    moment: Moment,
    sleepers: BTreeMap<(Moment, u64), Waker>,
    next_sleeper: u64,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// A clock that shows 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        let now = Timestamp::from_micros(1_767_225_600_000_000).unwrap_or(Timestamp::EPOCH);
        let (within, moment) = (Duration::ZERO, Moment(Duration::ZERO));
        let hands = Hands { now, within, moment, sleepers: BTreeMap::new(), next_sleeper: 0 };
        Self { inner: Arc::new(Mutex::new(hands)) }
    }

    /// Lets time pass and wakes whoever slept until then.
    pub fn advance(&self, span: Duration) {
        let woken = {
            let mut hands = self.hands();
            let passed = hands.within.saturating_add(span);
            hands.now = hands.now.after(passed);
            hands.within = Duration::from_nanos(u64::from(passed.subsec_nanos() % 1_000));
            hands.moment = hands.moment.after(span);
            let first_kept = (hands.moment.after(Duration::from_nanos(1)), 0);
            let after = hands.sleepers.split_off(&first_kept);
            std::mem::replace(&mut hands.sleepers, after)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// Steps the time of day, as an operator or a time server does. No time passes.
    pub fn step_to(&self, now: Timestamp) {
        self.hands().now = now;
    }

    /// How long until the first sleeper wakes; `None` if nobody sleeps.
    #[must_use]
    pub fn until_next_sleeper(&self) -> Option<Duration> {
        let hands = self.hands();
        hands.sleepers.keys().next().map(|(moment, _)| moment.since(hands.moment))
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({})", self.hands().now)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.hands().now
    }

    fn moment(&self) -> Moment {
        self.hands().moment
    }

    fn sleep(&self, span: Duration) -> Sleep {
        let mut hands = self.hands();
        let number = hands.next_sleeper;
        hands.next_sleeper += 1;
        let key = (hands.moment.after(span), number);
        Box::pin(Sleeper { clock: self.clone(), key })
    }
}

struct Sleeper {
    clock: ManualClock,
    key: (Moment, u64),
}

impl Future for Sleeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.clock.hands();
        if self.key.0 <= hands.moment {
            return Poll::Ready(());
        }
        hands.sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.clock.hands().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_clock_is_moved_far_enough() {
        let clock = ManualClock::new();
        let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(60)));
        tokio::task::yield_now().await;
        assert_eq!(clock.until_next_sleeper(), Some(Duration::from_secs(60)));
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.until_next_sleeper(), None);
    }

    /// §B.9: the timer stood still while the host was suspended, and the clock did not.
    #[expect(clippy::disallowed_methods, reason = "the clock of the timer alone is looked at")]
    #[tokio::test(start_paused = true)]
    async fn whoever_sleeps_through_a_suspend_wakes_soon_after_it() {
        let (clock, start) = (ManualClock::new(), tokio::time::Instant::now());
        let sleeper = tokio::spawn(sleep_by(clock.clone(), Duration::from_secs(8 * 3_600)));
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(9 * 3_600));
        sleeper.await.unwrap();
        assert!(start.elapsed() <= NAP * 2, "{:?}", start.elapsed());
    }

    #[test]
    fn many_short_advances_are_as_long_as_one_long_one() {
        let clock = ManualClock::new();
        let before = clock.now();
        (0..10_000).for_each(|_| clock.advance(Duration::from_nanos(700)));
        assert_eq!(clock.now().since(before), Duration::from_millis(7));
        assert_eq!(clock.moment(), Moment::from_start(Duration::from_millis(7)));
    }

    #[test]
    fn stepping_the_time_of_day_moves_no_deadline() {
        let clock = ManualClock::new();
        let before = clock.moment();
        clock.step_to(Timestamp::EPOCH);
        assert_eq!((clock.now(), clock.moment()), (Timestamp::EPOCH, before));
    }
}
