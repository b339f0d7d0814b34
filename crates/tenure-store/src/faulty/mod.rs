//! The faulty store: a wrapper around any store that misbehaves by seed, as networks and disks do.

mod fate;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name, NewJob,
    NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, Timestamp,
};
use tokio::sync::{broadcast, watch};

use crate::{
    Answer, Caution, Chance, Change, Changed, Clock, Count, Enqueued, EntriesAsk, EntryPage, Event, Fault,
    Fired, Hints, Host, Hosts, Jobs, Joint, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk,
    LedgerPage, LimitInfo, LimitPage, LostHost, Measures, Page, PageAsk, Pruned, QueueEdit, QueueEdited,
    QueueInfo, QueueRemoved, QueueSeen, RecordPage, Records, RecordsAsk, Renew, Renewal, Report, Reported,
    Reservation, Reserve, Rewrite, Selection, Sizes, SlotPage, SlotsAsk, Store, Tended, TimerAct, TimerEdit,
    TimerEdited, TimerOutcome, TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes,
    Written,
};
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
    fn meet<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a dyn Store) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let fate = self.mood().draw();
            self.wait(fate.there).await;
            if self.is_silent() {
                return std::future::pending().await;
            }
            self.mood().arrive(fate.trouble)?;
            let answer = call(self.inner.as_ref()).await;
            self.wait(fate.back).await;
            if fate.trouble == Some(Trouble::ReplyIsLost) {
                return Err(Fault::Unknown("the reply was lost".to_owned()));
            }
            answer
        })
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
        write!(f, "FaultyStore({})", self.inner.describe())
    }
}

impl Jobs for FaultyStore {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        self.meet(move |store| store.enqueue(batch))
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        self.meet(move |store| store.reserve(ask))
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        self.meet(move |store| store.renew(ask))
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        self.meet(move |store| store.settle(settlements, then))
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        self.meet(move |store| store.report(reports))
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        self.meet(move |store| store.rewrite(rewrites))
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        self.meet(move |store| store.change(change, selection))
    }

    fn tend(&self) -> Answer<'_, Tended> {
        self.meet(|store| store.tend())
    }
}

impl Leases for FaultyStore {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        self.meet(move |store| store.lease(wishes))
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        let name = name.clone();
        self.meet(move |store| Box::pin(async move { store.lease_info(&name).await }))
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        self.meet(move |store| store.leases(ask))
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        self.meet(move |store| store.ledger(ask))
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.meet(move |store| store.prune_ledger(before))
    }
}

impl Timers for FaultyStore {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        self.meet(move |store| store.set_timers(timers, starts))
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.meet(move |store| store.fire(at_most))
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let name = name.clone();
        self.meet(move |store| Box::pin(async move { store.change_timer(&name, act).await }))
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        self.meet(move |store| Box::pin(async move { store.edit_timer(&name, seen, edit).await }))
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let name = name.clone();
        self.meet(move |store| Box::pin(async move { store.timer(&name).await }))
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.meet(move |store| store.timers(ask))
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.meet(move |store| store.slots(ask))
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.meet(move |store| store.prune_slots(before))
    }
}

impl Records for FaultyStore {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        self.meet(move |store| store.write_records(writes))
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let (shelf, key) = (shelf.clone(), key.clone());
        self.meet(move |store| Box::pin(async move { store.record(&shelf, &key).await }))
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.meet(move |store| store.records(ask))
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.meet(move |store| store.entries(ask))
    }
}

impl Hosts for FaultyStore {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        let (name, serves) = (name.to_owned(), serves.to_vec());
        self.meet(move |store| Box::pin(async move { store.announce(id, &name, slots, &serves, ttl).await }))
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        self.meet(move |store| store.retire(id))
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        self.meet(move |store| Box::pin(async move { store.claim_app(&app, &program, host).await }))
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        self.meet(|store| store.apps())
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        self.meet(|store| store.hosts())
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        self.meet(|store| store.lost_hosts())
    }
}

impl Views for FaultyStore {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.meet(move |store| store.job(id))
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        self.meet(move |store| store.jobs(ask))
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        self.meet(move |store| store.attempts(id))
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        self.meet(move |store| store.logs(id, behind, at_most))
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        self.meet(|store| store.counts())
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.meet(|store| store.queues())
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        self.meet(move |store| store.standing(id))
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.meet(move |store| Box::pin(async move { store.set_paused(&queue, paused).await }))
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.meet(move |store| Box::pin(async move { store.set_queue_limit(&queue, limit).await }))
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let queue = queue.clone();
        self.meet(move |store| Box::pin(async move { store.edit_queue(&queue, edit).await }))
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        let queue = queue.clone();
        self.meet(move |store| Box::pin(async move { store.remove_queue(&queue, seen).await }))
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        let key = key.clone();
        self.meet(move |store| Box::pin(async move { store.limit(&key).await }))
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        self.meet(move |store| store.limits(behind, at_most))
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        self.meet(move |store| Box::pin(async move { store.set_limit(&key, limit).await }))
    }
}

impl Hints for FaultyStore {
    fn due(&self) -> watch::Receiver<u64> {
        self.inner.due()
    }

    fn asked(&self) -> watch::Receiver<u64> {
        self.inner.asked()
    }

    fn freed(&self) -> watch::Receiver<u64> {
        self.inner.freed()
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.inner.events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.inner.others()
    }
}

impl Store for FaultyStore {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn joint(&self) -> Option<&dyn Joint> {
        self.inner.joint()
    }

    fn describe(&self) -> String {
        format!("{}, with faults", self.inner.describe())
    }

    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn cautions(&self) -> Vec<Caution> {
        self.inner.cautions()
    }

    fn sizes(&self) -> Answer<'_, Sizes> {
        self.meet(|store| store.sizes())
    }

    fn measures(&self) -> Option<&Measures> {
        self.inner.measures()
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
