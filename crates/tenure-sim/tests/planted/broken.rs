//! A store that breaks one promise: what a bug in a store or in the domain would look like.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, Job, JobId, NewJob, Reserved, RetryPolicy, Settlement, State, StateName, Verdict};
use tenure_store::{
    About, Accepted, Answer, Change, Clock, Count, Enqueued, Extras, Fault, Hints, PageAsk, Renew, Renewal,
    Reply, Report, Reported, Request, Reservation, Reserve, Selection, Settled, Store, Tended, Turn, replied,
};

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

impl Broken {
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

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        Box::pin(async move {
            let mut counts = self.inner.counts().await?;
            if self.has(Bug::Miscounts) {
                counts.iter_mut().filter(|count| count.jobs > 9).for_each(|count| count.jobs -= 1);
            }
            Ok(counts)
        })
    }
}

/// Another id, always the same one for the same id.
fn other(id: JobId) -> JobId {
    let mut bytes = *id.as_bytes();
    bytes[15] ^= 1;
    JobId::from_bytes(bytes)
}

impl Store for Broken {
    #[allow(clippy::wildcard_enum_match_arm, reason = "other requests show no bug")]
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        match request {
            Request::Enqueue { batch } => replied(self.enqueue(batch), Reply::Enqueue),
            Request::Reserve { ask } => replied(self.reserve(ask), Reply::Reserve),
            Request::Renew { ask } => replied(self.renew(ask), Reply::Renew),
            Request::Settle { settlements, then } => replied(self.settle(settlements, then), Reply::Settle),
            Request::Report { reports } => replied(self.report(reports), Reply::Report),
            Request::Tend {} => replied(self.tend(), Reply::Tend),
            Request::Counts {} => replied(self.counts(), Reply::Counts),
            other => self.inner.call(other),
        }
    }

    fn hints(&self) -> &dyn Hints {
        self.inner.hints()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn about(&self) -> About {
        let place = format!("a store with a bug: {:?}", self.bug);
        About { place, engine: "broken", cautions: Vec::new() }
    }

    fn extras(&self) -> Extras<'_> {
        Extras::default()
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
