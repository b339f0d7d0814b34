//! A store that breaks one promise: what a bug in a store or in the domain would look like.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, Fence, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name,
    NewJob, NewTimer, QueueName, Record, RecordKey, Reserved, RetryPolicy, Serves, Settlement, Standing,
    State, StateName, Timer, Timestamp, Verdict,
};
use tenure_store::{
    Accepted, Answer, Change, Changed, Clock, Count, Enqueued, EntriesAsk, EntryPage, Event, Fault, Fired,
    Hints, Host, Hosts, Jobs, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage,
    LimitInfo, LimitPage, LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo, QueueRemoved,
    QueueSeen, RecordPage, Records, RecordsAsk, Renew, Renewal, Report, Reported, Reservation, Reserve,
    Rewrite, Selection, Settled, SlotPage, SlotsAsk, Store, Tended, TimerAct, TimerEdit, TimerEdited,
    TimerOutcome, TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes, Written,
};
use tokio::sync::{broadcast, watch};

/// Which promise it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A settlement counts whatever its fence: the job is settled under the present one (Oban #1496).
    AnyFenceSettles,
    /// It acknowledges a job and forgets it.
    ForgetsJobs,
    /// It grants a job a second time while the first holder has it.
    GrantsTwice,
    /// It takes a settlement that it has already written for a new one.
    DoneTwice,
    /// It grants again under an old fence.
    FenceStands,
    /// It says that a lease is renewed and does not renew it.
    RenewsNothing,
    /// It does a succeeded job again (River #1302).
    RescuesFinished,
    /// A repeated enqueueing makes a second job.
    EnqueuesTwice,
    /// Its counters are off.
    Miscounts,
    /// It does not mind unique keys.
    NothingIsUnique,
    /// It hands out jobs of paused queues.
    PausesNothing,
    /// It holds a job back for ever.
    Starves,
    /// It keeps what a holder tells that has lost its job.
    KeepsStaleReports,
    /// It says that a settlement is written and does not write it.
    LosesSettlements,
}

pub struct Broken {
    inner: Arc<dyn Store>,
    bug: Bug,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    calls: u64,
    granted: Option<Job>,
}

impl Broken {
    pub fn new(inner: Arc<dyn Store>, bug: Bug) -> Self {
        Self { inner, bug, memory: Mutex::default() }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Bugs do not show each time.
    fn strikes(&self, bug: Bug) -> bool {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.calls += 1;
        self.has(bug) && memory.calls.is_multiple_of(5)
    }

    /// Settles the job as its present owner would.
    async fn settle_as_owner(&self, id: JobId) -> Result<Option<Settled>, Fault> {
        let Some(job) = self.inner.job(id).await?.filter(|job| matches!(job.state, State::Running { .. }))
        else {
            return Ok(None);
        };
        let settlement =
            Reserved::granted(job).settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
        Ok(self.inner.settle(vec![settlement], None).await?.settled.first().copied())
    }

    fn spoil(&self, mut reservation: Reservation) -> Reservation {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has(Bug::FenceStands) {
            let stands = |reserved: Reserved| {
                let job = reserved.job().clone();
                let fence = if job.delivery > 1 { Fence::from_number(1) } else { job.fence };
                Reserved::granted(Job { fence, ..job })
            };
            reservation.jobs = reservation.jobs.into_iter().map(stands).collect();
        }
        if self.has(Bug::GrantsTwice) {
            let again = memory.granted.take();
            memory.granted = reservation.jobs.first().map(|reserved| reserved.job().clone());
            reservation.jobs.extend(again.map(Reserved::granted));
        }
        reservation
    }

    /// What is asked of the store in place of what a worker asked.
    async fn ask(&self, ask: Reserve) -> Result<Reserve, Fault> {
        if self.has(Bug::PausesNothing) {
            for want in &ask.wants {
                self.inner.set_paused(&want.queue, false).await?;
            }
        }
        Ok(ask)
    }
}

impl Jobs for Broken {
    fn enqueue(&self, mut batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        Box::pin(async move {
            if self.has(Bug::NothingIsUnique) {
                for job in &mut batch {
                    // The job says that it is the only one, but its key is one of its own.
                    let mut terms = (*job.terms).clone();
                    terms.unique = None;
                    job.terms = Arc::new(terms);
                }
            }
            if self.has(Bug::Starves) {
                let far = tenure_core::Due::In(Duration::from_secs(1_000_000));
                batch.iter_mut().filter(|job| job.priority.number() == 2).for_each(|job| job.due = far);
            }
            let spare = batch.clone();
            let stored = self.inner.enqueue(batch).await?;
            let Enqueued::Stored(accepted) = &stored else { return Ok(stored) };
            let repeated = accepted.iter().any(|accepted| matches!(accepted, Accepted::Repeated(_)));
            if self.has(Bug::EnqueuesTwice) && repeated {
                let renamed = |job: &NewJob| NewJob { id: other(job.id), ..job.clone() };
                return self.inner.enqueue(spare.iter().map(renamed).collect()).await;
            }
            if self.strikes(Bug::ForgetsJobs) {
                let ids = accepted.iter().map(|accepted| accepted.id()).collect();
                self.inner.change(Change::Delete, Selection::Ids(ids)).await?;
            }
            Ok(stored)
        })
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(async move { Ok(self.spoil(self.inner.reserve(self.ask(ask).await?).await?)) })
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        if !self.has(Bug::RenewsNothing) {
            return self.inner.renew(ask);
        }
        Box::pin(async move {
            let until = self.inner.clock().now().after(ask.ttl);
            let held = tenure_store::Holds { until, cancel: None };
            Ok(ask.held.iter().map(|_| Renewal::Held(held.clone())).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(async move {
            let then = match then {
                Some(ask) => Some(self.ask(ask).await?),
                None => None,
            };
            let ids: Vec<JobId> = settlements.iter().map(Settlement::id).collect();
            if !settlements.is_empty() && self.strikes(Bug::LosesSettlements) {
                let settled = ids.iter().map(|_| Settled::Done(StateName::Succeeded)).collect();
                return Ok(Turn { settled, reservation: Reservation::default() });
            }
            let mut turn = self.inner.settle(settlements, then).await?;
            for (id, settled) in ids.iter().zip(&mut turn.settled) {
                match (self.bug, *settled) {
                    (Bug::AnyFenceSettles, Settled::Fenced) => {
                        *settled = self.settle_as_owner(*id).await?.unwrap_or(Settled::Fenced);
                    }
                    (Bug::DoneTwice, Settled::Repeated) => *settled = Settled::Done(StateName::Succeeded),
                    _ => {}
                }
            }
            turn.reservation = self.spoil(turn.reservation);
            Ok(turn)
        })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(async move {
            let reported = self.inner.report(reports).await?;
            let kept = |answer| if self.has(Bug::KeepsStaleReports) { Reported::Kept } else { answer };
            Ok(reported.into_iter().map(kept).collect())
        })
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        self.inner.rewrite(rewrites)
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        self.inner.change(change, selection)
    }

    fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(async move {
            let tended = self.inner.tend().await?;
            if self.has(Bug::RescuesFinished) {
                let succeeded =
                    tenure_store::Filter { states: vec![StateName::Succeeded], ..Default::default() };
                let found =
                    self.inner.jobs(PageAsk { filter: succeeded, at_most: 1, ..PageAsk::default() }).await?;
                let ids = found.jobs.iter().map(|job| job.id).collect();
                self.inner.change(Change::Redo, Selection::Ids(ids)).await?;
            }
            Ok(tended)
        })
    }
}

/// Another id, always the same one for the same id.
fn other(id: JobId) -> JobId {
    let mut bytes = *id.as_bytes();
    bytes[15] ^= 1;
    JobId::from_bytes(bytes)
}

impl Leases for Broken {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        self.inner.lease(wishes)
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        self.inner.lease_info(name)
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        self.inner.leases(ask)
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        self.inner.ledger(ask)
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.inner.prune_ledger(before)
    }
}

impl Hosts for Broken {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        self.inner.announce(id, name, slots, serves, ttl)
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        self.inner.retire(id)
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        self.inner.claim_app(app, program, host)
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        self.inner.apps()
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        self.inner.hosts()
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        self.inner.lost_hosts()
    }
}

impl Views for Broken {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.inner.job(id)
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        self.inner.jobs(ask)
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        self.inner.attempts(id)
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        self.inner.logs(id, behind, at_most)
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        Box::pin(async move {
            let mut counts = self.inner.counts().await?;
            if self.has(Bug::Miscounts) {
                counts.iter_mut().filter(|count| count.jobs > 9).for_each(|count| count.jobs -= 1);
            }
            Ok(counts)
        })
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.inner.queues()
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        self.inner.standing(id)
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        self.inner.set_paused(queue, paused)
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        self.inner.set_queue_limit(queue, limit)
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        self.inner.edit_queue(queue, edit)
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        self.inner.remove_queue(queue, seen)
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        self.inner.limit(key)
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        self.inner.limits(behind, at_most)
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        self.inner.set_limit(key, limit)
    }
}

impl Timers for Broken {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        self.inner.set_timers(timers, starts)
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.inner.fire(at_most)
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        self.inner.change_timer(name, act)
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        self.inner.edit_timer(name, seen, edit)
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        self.inner.timer(name)
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.inner.timers(ask)
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.inner.slots(ask)
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.inner.prune_slots(before)
    }
}

impl Records for Broken {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        self.inner.write_records(writes)
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        self.inner.record(shelf, key)
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.inner.records(ask)
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.inner.entries(ask)
    }
}

impl Hints for Broken {
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

impl Store for Broken {
    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn describe(&self) -> String {
        format!("a store with a bug: {:?}", self.bug)
    }

    fn engine(&self) -> &'static str {
        "broken"
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
