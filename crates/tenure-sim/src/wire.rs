//! The wire between a host and the store: all that a host knows of the store comes through it.

mod records;
mod timers;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, NewJob,
    QueueName, Serves, Settlement, Standing, Timestamp,
};
use tenure_store::{
    Answer, Bulletin, Change, Changed, Clock, Count, Enqueued, Event, Fault, Hints, Host, Hosts, Jobs,
    LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage, LimitInfo, LimitPage,
    LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen, Renew,
    Renewal, Report, Reported, Reservation, Reserve, Rewrite, Selection, Store, Tended, Turn, Views,
};
use tokio::sync::{broadcast, watch};

use crate::book::Book;
use crate::clock::SimClock;
use crate::gate::Gate;
use crate::history::{What, Who};

/// A request that takes longer is trouble: what it may have brought is not known to the host.
const SLOW: Duration = Duration::from_millis(100);
/// How often a request that vanished is looked after.
const AGAIN: Duration = Duration::from_millis(50);

/// What a host has for a store. A request that is on its way arrives even if its host dies meanwhile;
/// a frozen host sends nothing and hears nothing.
pub(crate) struct Wire {
    who: Who,
    store: Arc<dyn Store>,
    clock: Arc<SimClock>,
    gate: Arc<Gate>,
    cut: AtomicBool,
    book: Arc<Book>,
    hints: Bulletin,
    // Hints that came while the host was frozen.
    missed: Mutex<Missed>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Missed {
    due: bool,
    asked: bool,
    freed: bool,
}

impl Wire {
    pub(crate) fn new(
        who: Who,
        store: Arc<dyn Store>,
        clock: Arc<SimClock>,
        gate: Arc<Gate>,
        book: Arc<Book>,
    ) -> Self {
        let (cut, hints, missed) = (AtomicBool::new(false), Bulletin::default(), Mutex::default());
        Self { who, store, clock, gate, cut, book, hints, missed }
    }

    /// Nothing comes through any more, and nobody is told; or it does again.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// A hint of the store reaches the host, if it can hear.
    pub(crate) fn hint_due(&self) {
        match self.hears() {
            true => self.hints.call_due(),
            false => self.with_missed(|missed| missed.due = true),
        }
    }

    /// The same for the other hint.
    pub(crate) fn hint_asked(&self) {
        match self.hears() {
            true => self.hints.call_asked(),
            false => self.with_missed(|missed| missed.asked = true),
        }
    }

    /// The same for the third.
    pub(crate) fn hint_freed(&self) {
        match self.hears() {
            true => self.hints.call_freed(),
            false => self.with_missed(|missed| missed.freed = true),
        }
    }

    /// The host has been thawed: it hears what it missed.
    pub(crate) fn catch_up(&self) {
        let mut missed = Missed::default();
        self.with_missed(|kept| std::mem::swap(&mut missed, kept));
        if missed.due {
            self.hints.call_due();
        }
        if missed.asked {
            self.hints.call_asked();
        }
        if missed.freed {
            self.hints.call_freed();
        }
    }

    fn hears(&self) -> bool {
        self.gate.is_open()
    }

    fn with_missed(&self, change: impl FnOnce(&mut Missed)) {
        change(&mut self.missed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sends a request and waits for its answer.
    fn send<T, Fut>(&self, call: &'static str, request: impl FnOnce(Arc<dyn Store>) -> Fut) -> Answer<'_, T>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let request = request(Arc::clone(&self.store));
        Box::pin(async move {
            self.gate.pass().await?;
            self.book.note(self.who, What::Called(call));
            let mut waiting = Waiting { wire: self, call, answered: false };
            let mut carried = std::pin::pin!(self.carry(request));
            let answer = tokio::select! {
                biased;
                answer = &mut carried => answer,
                () = self.clock.sleep(SLOW) => {
                    self.book.note(self.who, What::Faulted(call));
                    let answer = carried.await;
                    self.book.note(self.who, What::Faulted(call));
                    answer
                }
            };
            self.gate.pass().await?;
            waiting.answered = answer.is_ok();
            answer
        })
    }

    async fn carry<T, Fut>(&self, request: Fut) -> Result<T, Fault>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        if self.cut.load(Ordering::Relaxed) {
            self.until_mended().await;
            return Err(Fault::Unknown("the connection was lost".into()));
        }
        // Once it is sent, it is on its way, whatever becomes of its sender.
        let answer = tokio::spawn(request).await;
        if self.cut.load(Ordering::Relaxed) {
            self.until_mended().await;
            return Err(Fault::Unknown("the connection was lost".into()));
        }
        answer.unwrap_or_else(|_| Err(Fault::Unknown("the network is gone".into())))
    }

    async fn until_mended(&self) {
        while self.cut.load(Ordering::Relaxed) && !self.gate.is_gone() {
            self.clock.sleep(AGAIN).await;
        }
    }
}

/// A request under way. That it went wrong is written down even if nobody waits for it any more.
struct Waiting<'a> {
    wire: &'a Wire,
    call: &'static str,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.wire.book.note(self.wire.who, What::Faulted(self.call));
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({})", self.who)
    }
}

impl Jobs for Wire {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        self.send("enqueue", |store| async move { store.enqueue(batch).await })
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        self.send("reserve", |store| async move { store.reserve(ask).await })
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        self.send("renew", |store| async move { store.renew(ask).await })
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        self.send("settle", |store| async move { store.settle(settlements, then).await })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        self.send("report", |store| async move { store.report(reports).await })
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        self.send("rewrite", |store| async move { store.rewrite(rewrites).await })
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        self.send("change", |store| async move { store.change(change, selection).await })
    }

    fn tend(&self) -> Answer<'_, Tended> {
        self.send("tend", |store| async move { store.tend().await })
    }
}

impl Leases for Wire {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        self.send("lease", |store| async move { store.lease(wishes).await })
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        let name = name.clone();
        self.send("lease_info", |store| async move { store.lease_info(&name).await })
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        self.send("leases", |store| async move { store.leases(ask).await })
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        self.send("ledger", |store| async move { store.ledger(ask).await })
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.send("prune_ledger", move |store| async move { store.prune_ledger(before).await })
    }
}

impl Hosts for Wire {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        let (name, serves) = (name.to_owned(), serves.to_vec());
        self.send(
            "announce",
            move |store| async move { store.announce(id, &name, slots, &serves, ttl).await },
        )
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        self.send("retire", move |store| async move { store.retire(id).await })
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        self.send("claim_app", move |store| async move { store.claim_app(&app, &program, host).await })
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        self.send("apps", |store| async move { store.apps().await })
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        self.send("hosts", |store| async move { store.hosts().await })
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        self.send("lost_hosts", |store| async move { store.lost_hosts().await })
    }
}

impl Views for Wire {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.send("job", move |store| async move { store.job(id).await })
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        self.send("jobs", |store| async move { store.jobs(ask).await })
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        self.send("attempts", move |store| async move { store.attempts(id).await })
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        self.send("logs", move |store| async move { store.logs(id, behind, at_most).await })
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        self.send("counts", |store| async move { store.counts().await })
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.send("queues", |store| async move { store.queues().await })
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        self.send("standing", move |store| async move { store.standing(id).await })
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.send("set_paused", move |store| async move { store.set_paused(&queue, paused).await })
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.send("set_queue_limit", move |store| async move { store.set_queue_limit(&queue, limit).await })
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let queue = queue.clone();
        self.send("edit_queue", move |store| async move { store.edit_queue(&queue, edit).await })
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        let queue = queue.clone();
        self.send("remove_queue", move |store| async move { store.remove_queue(&queue, seen).await })
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        let key = key.clone();
        self.send("limit", move |store| async move { store.limit(&key).await })
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        self.send("limits", move |store| async move { store.limits(behind, at_most).await })
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        self.send("set_limit", move |store| async move { store.set_limit(&key, limit).await })
    }
}

impl Hints for Wire {
    fn due(&self) -> watch::Receiver<u64> {
        self.hints.due()
    }

    fn asked(&self) -> watch::Receiver<u64> {
        self.hints.asked()
    }

    fn freed(&self) -> watch::Receiver<u64> {
        self.hints.freed()
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.store.events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.store.others()
    }
}

impl Store for Wire {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn describe(&self) -> String {
        format!("the store as {} sees it", self.who)
    }

    fn engine(&self) -> &'static str {
        "simulated"
    }

    fn close(&self) -> Answer<'_, ()> {
        // The store is shared: no host may end it.
        Box::pin(async { Ok(()) })
    }
}
