//! The faulty store: a wrapper around any store that misbehaves by seed, as networks and disks do.

mod fate;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{About, Answer, Chance, Clock, Extras, Fault, Hints, Reply, Request, Store};
pub use fate::Faults;
use fate::{Fate, Trouble};

/// A store that misbehaves by seed: calls are late, fail, or are done without a word of it.
///
/// Hints and the clock pass through, and so does closing. The proofs of a reservation whose reply is
/// lost are gone, as they are when a real reply is lost: those jobs lapse.
///
/// ```
/// use std::sync::Arc;
/// use tenure_store::{Fault, Faults, FaultyStore, ManualClock, MemoryStore, Views};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new())));
/// let faulty = FaultyStore::new(store, Faults { fail: 1.0, ..Faults::none(7) });
/// assert!(matches!(faulty.counts().await, Err(Fault::Unavailable(_))));
/// faulty.heal();
/// assert_eq!(faulty.counts().await, Ok(vec![]));
/// # }
/// ```
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    mood: Mutex<Mood>,
}

/// What it did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Calls that came.
    pub calls: u64,
    /// Calls that were delayed. They count again if more befell them.
    pub delayed: u64,
    /// Calls that failed before anything was done.
    pub failed: u64,
    /// Calls that were lost before anything was done.
    pub requests_dropped: u64,
    /// Calls that were done and whose reply was lost.
    pub replies_dropped: u64,
    /// Calls that came while the store was down.
    pub turned_away: u64,
}

struct Mood {
    faults: Faults,
    chance: Chance,
    down: bool,
    silent: bool,
    tally: Tally,
}

impl FaultyStore {
    /// A store that does what `inner` does, with these faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, faults: Faults) -> Self {
        let chance = Chance::seeded(faults.seed);
        let mood = Mood { faults, chance, down: false, silent: false, tally: Tally::default() };
        Self { clock: inner.clock(), inner, mood: Mutex::new(mood) }
    }

    /// Shows this clock to whoever uses it: a host whose time of day is not the store's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Misbehaves like this from the next call on; the seed begins anew.
    pub fn set(&self, faults: Faults) {
        let mut mood = self.mood();
        mood.chance = Chance::seeded(faults.seed);
        mood.faults = faults;
    }

    /// Behaves well from the next call on. A store that is down stays down.
    pub fn heal(&self) {
        let mut mood = self.mood();
        mood.faults = Faults::none(mood.faults.seed);
    }

    /// Turns every call away, or no longer does.
    pub fn down(&self, down: bool) {
        self.mood().down = down;
    }

    /// Leaves every call that comes without an answer, for ever and with nothing done, or no longer does.
    pub fn silent(&self, silent: bool) {
        self.mood().silent = silent;
    }

    /// What it did so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.mood().tally
    }

    fn mood(&self) -> MutexGuard<'_, Mood> {
        self.mood.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_silent(&self) -> bool {
        self.mood().silent
    }

    /// Lets one call meet its fate.
    async fn meet(&self, request: Request) -> Result<Reply, Fault> {
        let fate = self.mood().draw();
        self.wait(fate.there).await;
        if self.is_silent() {
            return std::future::pending().await;
        }
        self.mood().arrive(fate.trouble)?;
        let reply = self.inner.call(request).await;
        self.wait(fate.back).await;
        if fate.trouble == Some(Trouble::ReplyIsLost) {
            return Err(Fault::Unknown("the reply was lost".to_owned()));
        }
        reply
    }

    async fn wait(&self, span: Duration) {
        if !span.is_zero() {
            self.clock.sleep(span).await;
        }
    }
}

impl Mood {
    fn draw(&mut self) -> Fate {
        let fate = Fate::draw(&self.faults, &self.chance);
        self.tally.calls += 1;
        self.tally.delayed += u64::from(fate.is_delayed());
        fate
    }

    /// Whether a call gets through to the store, and what is counted of it.
    fn arrive(&mut self, trouble: Option<Trouble>) -> Result<(), Fault> {
        if self.down {
            self.tally.turned_away += 1;
            return Err(Fault::Unavailable("the store is down".to_owned()));
        }
        match trouble {
            None => Ok(()),
            Some(Trouble::Fails) => {
                self.tally.failed += 1;
                Err(Fault::Unavailable("the store failed before it did anything".to_owned()))
            }
            Some(Trouble::RequestIsLost) => {
                self.tally.requests_dropped += 1;
                Err(Fault::Unknown("the request was lost".to_owned()))
            }
            Some(Trouble::ReplyIsLost) => {
                self.tally.replies_dropped += 1;
                Ok(())
            }
        }
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner.about().place)
    }
}

impl Store for FaultyStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        Box::pin(self.meet(request))
    }

    fn hints(&self) -> &dyn Hints {
        self.inner.hints()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn about(&self) -> About {
        let about = self.inner.about();
        About { place: format!("{}, with faults", about.place), ..about }
    }

    fn extras(&self) -> Extras<'_> {
        self.inner.extras()
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
