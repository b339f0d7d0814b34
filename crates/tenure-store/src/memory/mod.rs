//! The memory store: the contract in its plainest form, for development and as the reference that
//! other stores are compared with.
//!
//! One lock over ordered tables, so that the same calls give the same answers in the same order. No
//! thread, no task, no clock but the injected one: every answer is ready when it is first asked for.
//! What a call does is done in one go under the lock; nothing of it can be seen half-way.

mod change;
mod copying;
mod enqueue;
mod gates;
mod hosts;
mod keys;
mod leases;
mod limits;
mod lines;
mod news;
mod orders;
mod queues;
mod records;
mod reserve;
mod rewriting;
mod rows;
mod settle;
mod shares;
mod standing;
mod step;
mod tend;
#[cfg(test)]
mod tests;
mod timers;
mod views;
mod waits;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name, NewJob,
    NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, Timestamp,
};
use tokio::sync::{broadcast, watch};

use crate::{
    Answer, Bulletin, Change, Changed, Clock, Copies, Count, Enqueued, EntriesAsk, EntryPage, Event, Fault,
    Fired, Hints, Host, Hosts, Jobs, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk,
    LedgerPage, LeftAsk, LimitInfo, LimitPage, LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited,
    QueueInfo, QueueRemoved, QueueSeen, RecordPage, Records, RecordsAsk, Renew, Renewal, Report, Reported,
    Reservation, Reserve, Rewrite, Selection, SlotPage, SlotsAsk, Store, Tended, TimerAct, TimerEdit,
    TimerEdited, TimerOutcome, TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes,
    Written, check_rewrites, check_timers, check_wishes, check_writes,
};
use rows::Rows;

/// A store that lives as long as the program.
///
/// ```
/// use std::sync::Arc;
/// use tenure_store::{ManualClock, MemoryStore, Views};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = MemoryStore::new(Arc::new(ManualClock::new()));
/// assert_eq!(store.counts().await, Ok(vec![]));
/// # }
/// ```
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    bulletin: Arc<Bulletin>,
    /// `None` once it is closed.
    rows: Arc<Mutex<Option<Rows>>>,
}

impl MemoryStore {
    /// An empty store that goes by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, bulletin: Arc::default(), rows: Arc::new(Mutex::new(Some(Rows::default()))) }
    }

    /// A store that follows its clock wherever it goes, so that whoever checks it needs to know no more than
    /// what the clock shows. For simulations, whose clocks run at other rates than their moments.
    #[must_use]
    pub fn following(clock: Arc<dyn Clock>) -> Self {
        let mut rows = Rows::default();
        rows.leases.follow_the_clock();
        Self { rows: Arc::new(Mutex::new(Some(rows))), ..Self::new(clock) }
    }

    /// Does one call under the lock, then pins up what there is to tell of it.
    fn answer<'a, T>(&'a self, call: impl FnOnce(&mut Rows, Timestamp) -> T + Send + 'a) -> Answer<'a, T> {
        // Like any other future it does nothing before it is polled; it never waits.
        Box::pin(async move { under_lock(&self.rows, &self.bulletin, &*self.clock, call) })
    }
}

fn under_lock<T>(
    rows: &Mutex<Option<Rows>>,
    bulletin: &Bulletin,
    clock: &dyn Clock,
    call: impl FnOnce(&mut Rows, Timestamp) -> T,
) -> Result<T, Fault> {
    let mut open = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = open.as_mut().ok_or(Fault::Closed)?;
    rows.news.heard = bulletin.is_heard();
    let answer = call(rows, clock.now());
    // Still under the lock: events are told in the order in which they happened.
    rows.news.publish(bulletin);
    Ok(answer)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl Jobs for MemoryStore {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        self.answer(move |rows, now| rows.enqueue(&batch, now))
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        self.answer(move |rows, now| rows.reserve(&ask, now))
    }

    fn leave(&self, ask: Reserve) -> Option<LeftAsk> {
        let (rows, bulletin, clock) =
            (Arc::clone(&self.rows), Arc::clone(&self.bulletin), Arc::clone(&self.clock));
        // Whoever calls holds the lock: it is granted when the answer is looked at.
        let put = move || {
            let reserve = move |rows: &mut Rows, now| rows.reserve(&ask, now);
            let answer = async move { under_lock(&rows, &bulletin, &*clock, reserve) };
            Box::pin(answer) as Answer<'static, Reservation>
        };
        Some(self.bulletin.leave(Arc::clone(&self.clock), put))
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        self.answer(move |rows, now| ask.held.iter().map(|held| rows.renew(held, ask.ttl, now)).collect())
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        self.answer(move |rows, now| Turn {
            settled: rows.settle_all(&settlements, now),
            reservation: then.map(|ask| rows.reserve(&ask, now)).unwrap_or_default(),
        })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        self.answer(move |rows, now| reports.into_iter().map(|report| rows.report(report, now)).collect())
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        Box::pin(async move {
            check_rewrites(&rewrites)?;
            self.answer(move |rows, _| rewrites.into_iter().map(|rewrite| rows.rewrite(rewrite)).collect())
                .await
        })
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        self.answer(move |rows, now| rows.change(&change, &selection, now))
    }

    fn tend(&self) -> Answer<'_, Tended> {
        self.answer(|rows, _| {
            let now = rows.leases.look(&*self.clock);
            rows.tend(now)
        })
    }
}

impl Leases for MemoryStore {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        Box::pin(async move {
            check_wishes(&wishes)?;
            let take_all = |rows: &mut Rows, _| {
                let now = rows.leases.look(&*self.clock);
                let Rows { leases, news, epoch, .. } = rows;
                wishes.iter().map(|wish| leases.take(wish, *epoch, now, news)).collect()
            };
            self.answer(take_all).await
        })
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        let name = name.clone();
        self.answer(move |rows, now| rows.leases.info(&name, now))
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        self.answer(move |rows, now| rows.leases.page(&ask, now))
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        self.answer(move |rows, _| rows.leases.ledger(&ask))
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.answer(move |rows, _| rows.leases.prune(before))
    }
}

impl Timers for MemoryStore {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async move {
            check_timers(&timers)?;
            self.answer(move |rows, now| rows.set_timers(timers, starts, now)).await
        })
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.answer(move |rows, now| rows.fire(at_most, now))
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let name = name.clone();
        self.answer(move |rows, now| rows.change_timer(&name, act, now))
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        self.answer(move |rows, now| rows.edit_timer(&name, &seen, edit, now))
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let name = name.clone();
        self.answer(move |rows, _| rows.timers.get(&name).cloned())
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.answer(move |rows, now| rows.timers.page(&ask, now))
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.answer(move |rows, _| rows.timers.slots(&ask))
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.answer(move |rows, _| rows.timers.prune(before))
    }
}

impl Records for MemoryStore {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        Box::pin(async move {
            check_writes(&writes)?;
            self.answer(move |rows, now| {
                let asks = writes.asks;
                let written = rows.records.write(writes, now);
                rows.news.asked |= asks && matches!(written, Written::Done { .. });
                written
            })
            .await
        })
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let place = (shelf.clone(), key.clone());
        self.answer(move |rows, now| rows.records.get(&place, now).cloned())
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.answer(move |rows, now| rows.records.page(&ask, now))
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.answer(move |rows, now| rows.records.journal(&ask, now))
    }
}

impl Hosts for MemoryStore {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        let (name, serves) = (name.to_owned(), serves.to_vec());
        self.answer(move |rows, now| {
            rows.announce(Host { id, name, started: now, heard: now, until: now.after(ttl), slots, serves })
        })
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        self.answer(move |rows, _| rows.retire(id))
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        self.answer(move |rows, now| rows.claim_app(AppUse { app, program, host, since: now, seen: now }))
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        self.answer(|rows, _| rows.apps.values().cloned().collect())
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        self.answer(|rows, now| rows.live_hosts(now).cloned().collect())
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        self.answer(|rows, now| rows.lost_hosts(now))
    }
}

impl Views for MemoryStore {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.answer(move |rows, _| rows.find(id).map(|row| row.job.clone()))
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        self.answer(move |rows, now| rows.page(&ask, now))
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        self.answer(move |rows, _| rows.find(id).map(rows::Row::attempts).unwrap_or_default())
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        self.answer(move |rows, _| {
            rows.find(id).map(|row| row.lines.behind(behind, at_most)).unwrap_or_default()
        })
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        self.answer(|rows, _| rows.counts())
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.answer(|rows, now| rows.queues(now))
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        self.answer(move |rows, now| rows.standing(id, now))
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.answer(move |rows, _| rows.set_paused(queue, paused))
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        let queue = queue.clone();
        self.answer(move |rows, now| rows.set_queue_limit(queue, limit, now))
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let queue = queue.clone();
        self.answer(move |rows, now| rows.edit_queue(queue, &edit, now))
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        let queue = queue.clone();
        self.answer(move |rows, _| rows.remove_queue(&queue, &seen))
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        let key = key.clone();
        self.answer(move |rows, _| rows.limits.find(&key))
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        self.answer(move |rows, _| rows.limits.page(behind.as_ref(), at_most))
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        self.answer(move |rows, now| rows.set_limit(&key, limit, now))
    }
}

impl Hints for MemoryStore {
    fn due(&self) -> watch::Receiver<u64> {
        self.bulletin.due()
    }

    fn asked(&self) -> watch::Receiver<u64> {
        self.bulletin.asked()
    }

    fn freed(&self) -> watch::Receiver<u64> {
        self.bulletin.freed()
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.bulletin.events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.bulletin.others()
    }
}

impl Store for MemoryStore {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn copies(&self) -> Option<&dyn Copies> {
        Some(self)
    }

    fn describe(&self) -> String {
        "memory; everything is lost when the program ends".to_owned()
    }

    fn engine(&self) -> &'static str {
        "memory"
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut open = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            open.take().map(drop).ok_or(Fault::Closed)
        })
    }
}
