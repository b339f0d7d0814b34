//! The witness between the wires and the store: writes down what the store was asked and answered.

mod timers;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tenure_core::{
    Fence, Job, JobId, Key, LeaseOutcome, Limit, NewJob, QueueName, Reserved, Settlement, Terms,
};
use tenure_store::{
    About, Accepted, Answer, Change, Changed, Clock, Enqueued, Extras, Fault, Hints, LeaseWish, LedgerAsk,
    Order, QueueEdit, QueueEdited, Refusal, Renew, Renewal, Reply, Report, Reported, Request, Reservation,
    Reserve, Selection, Settled, Store, Tended, Turn, replied,
};

use crate::asks::ask_in;
use crate::book::Book;
use crate::history::{Changing, Grant, Leased, Renewed, Row, What, Who};

/// A host's way to the store. It changes nothing; what it writes down is what really happened, in the
/// order in which it did, whether or not the host ever hears of it.
pub(crate) struct Witness {
    who: Who,
    store: Arc<dyn Store>,
    book: Arc<Book>,
}

impl Witness {
    pub(crate) fn new(who: Who, store: Arc<dyn Store>, book: Arc<Book>) -> Self {
        Self { who, store, book }
    }

    fn note(&self, what: What) {
        self.book.note(self.who, what);
    }

    /// Looks at a job right after it was touched.
    async fn look(&self, id: JobId) -> Result<Option<(u64, Fence)>, Fault> {
        let Some(job) = self.store.job(id).await? else {
            self.book.companions().miss(id);
            return Ok(None);
        };
        let found = (job.seq, job.fence);
        self.book.companions().see(&job);
        self.note(What::Row(row(&job)));
        Ok(Some(found))
    }

    async fn stored(&self, asked: Vec<(u64, Arc<Terms>)>, enqueued: &Enqueued) -> Result<(), Fault> {
        match enqueued {
            Enqueued::Stored(accepted) => {
                for ((ask, terms), accepted) in asked.into_iter().zip(accepted) {
                    let found = self.store.job(accepted.id()).await?;
                    let (seq, accepted) = (found.map(|job| job.seq), *accepted);
                    self.note(What::Stored { ask, seq, terms, accepted });
                }
                // A later job of the batch may have ended an earlier one.
                for accepted in accepted {
                    self.look(accepted.id()).await?;
                    if let Accepted::Replaced { old, .. } = accepted {
                        self.look(*old).await?;
                    }
                }
            }
            Enqueued::Refused { refusal, .. } => {
                let (Refusal::IdTaken(_)
                | Refusal::KeyHeld(_)
                | Refusal::NoSuchJob(_)
                | Refusal::QueueFull { .. }) = refusal;
                self.note(What::Refused(*refusal));
            }
        }
        Ok(())
    }

    /// Reads what the ledger tells beyond what was read before.
    async fn read_ledger(&self) -> Result<(), Fault> {
        loop {
            let behind = Some(self.book.ledger_read());
            let ask = LedgerAsk { order: Order::OldestFirst, behind, ..LedgerAsk::default() };
            let page = self.store.ledger(ask).await?;
            let Some(last) = page.entries.last() else { return Ok(()) };
            self.book.note_ledger_read(last.number);
            self.note(What::Ledger(page.entries));
        }
    }

    /// Writes down what was granted, and looks at what shares something with it.
    async fn granted(&self, reservation: &Reservation) -> Result<(), Fault> {
        let mut beside = BTreeSet::new();
        for reserved in &reservation.jobs {
            self.note(What::Granted(grant(reserved)));
            let mut companions = self.book.companions();
            companions.see(reserved.job());
            beside.extend(companions.of(reserved.job()));
        }
        let mut rows = Vec::new();
        for id in beside {
            match self.store.job(id).await? {
                Some(job) => {
                    self.book.companions().see(&job);
                    rows.push(row(&job));
                }
                None => self.book.companions().miss(id),
            }
        }
        if !rows.is_empty() {
            self.note(What::Beside(rows));
        }
        Ok(())
    }
}

fn grant(reserved: &Reserved) -> Grant {
    let job = reserved.job();
    let until = match job.state {
        tenure_core::State::Running { until, .. } => until,
        tenure_core::State::Waiting { .. }
        | tenure_core::State::Blocked { .. }
        | tenure_core::State::Finished { .. } => tenure_core::Timestamp::EPOCH,
    };
    Grant {
        seq: job.seq,
        fence: job.fence,
        attempt: job.attempt,
        delivery: job.delivery,
        max_attempts: job.terms.max_attempts(),
        queue: job.queue.clone(),
        until,
    }
}

/// A job as the history keeps it.
pub(crate) fn row(job: &Job) -> Row {
    Row {
        id: job.id,
        seq: job.seq,
        ask: ask_in(&job.args),
        queue: job.queue.clone(),
        kind: job.kind.clone(),
        state: job.state,
        fence: job.fence,
        attempt: job.attempt,
        delivery: job.delivery,
        expires: job.expires,
        cause: job.failure.as_ref().map(|failure| failure.cause),
        terms: Arc::clone(&job.terms),
    }
}

/// What was asked for: the store's own record of it may be wrong.
fn asked(new: &NewJob) -> (u64, Arc<Terms>) {
    (ask_in(&new.args), Arc::clone(&new.terms))
}

fn changing(change: &Change) -> Changing {
    match change {
        Change::Cancel { grace, .. } => Changing::Cancel(*grace),
        Change::Redo => Changing::Redo,
        Change::Delete => Changing::Delete,
        Change::Move(_) | Change::Reprioritise(_) | Change::Reschedule(_) | Change::Edit(_) => {
            Changing::Place
        }
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witness({})", self.who)
    }
}

impl Witness {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        Box::pin(async move {
            let asked = batch.iter().map(asked).collect();
            let enqueued = self.store.enqueue(batch).await?;
            self.stored(asked, &enqueued).await?;
            Ok(enqueued)
        })
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(async move {
            let reservation = self.store.reserve(ask).await?;
            self.granted(&reservation).await?;
            Ok(reservation)
        })
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        Box::pin(async move {
            let held = ask.held.clone();
            let renewals = self.store.renew(ask).await?;
            for (held, renewal) in held.iter().zip(&renewals) {
                let answer = match renewal {
                    Renewal::Held(holds) => Renewed::Until(holds.until),
                    Renewal::Lapsed => Renewed::Lapsed,
                    Renewal::Lost => Renewed::Lost,
                };
                self.note(What::Renewed { seq: held.seq, fence: held.fence, answer });
            }
            Ok(renewals)
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(async move {
            let ends: Vec<_> =
                settlements.iter().map(|end| (end.id(), end.seq(), end.fence(), end.next())).collect();
            let turn = self.store.settle(settlements, then).await?;
            for ((id, seq, fence, next), answer) in ends.iter().copied().zip(&turn.settled) {
                let found = self.store.job(id).await?.filter(|job| job.seq == seq);
                let fence_then = found.as_ref().map(|job| job.fence);
                self.note(What::Settled { seq, fence, next, answer: *answer, fence_then });
            }
            self.granted(&turn.reservation).await?;
            let done =
                ends.iter().zip(&turn.settled).filter(|(_, answer)| matches!(answer, Settled::Done(_)));
            for ((id, ..), _) in done {
                self.look(*id).await?;
            }
            Ok(turn)
        })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(async move {
            let held: Vec<_> = reports.iter().map(|report| report.held).collect();
            let reported = self.store.report(reports).await?;
            for (held, reported) in held.iter().zip(&reported) {
                let kept = *reported == Reported::Kept;
                self.note(What::Reported { seq: held.seq, fence: held.fence, kept });
            }
            Ok(reported)
        })
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        Box::pin(async move {
            let wanted = changing(&change);
            let changed = self.store.change(change, selection).await?;
            for (id, outcome) in &changed.outcomes {
                self.note(What::Changed { id: *id, change: wanted, outcome: *outcome });
                self.look(*id).await?;
            }
            Ok(changed)
        })
    }

    fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(async move {
            let tended = self.store.tend().await?;
            if tended.pruned > 0 {
                self.note(What::Pruned(tended.pruned));
            }
            self.read_ledger().await?;
            Ok(tended)
        })
    }

    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        Box::pin(async move {
            let asked = wishes.clone();
            let outcomes = self.store.lease(wishes).await?;
            for (LeaseWish { name, act }, outcome) in asked.into_iter().zip(outcomes.iter().cloned()) {
                self.note(What::Leased(Leased { name, act, outcome }));
            }
            self.read_ledger().await?;
            Ok(outcomes)
        })
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let queue = queue.clone();
        Box::pin(async move {
            let edited = self.store.edit_queue(&queue, edit.clone()).await?;
            if let QueueEdited::Otherwise(_) = edited {
                return Ok(edited);
            }
            if let Some(paused) = edit.paused {
                self.note(What::Paused { queue: queue.clone(), paused });
            }
            if let Some(limit) = edit.limit {
                self.book.companions().limit(&queue);
                self.note(What::QueueLimitSet { queue, limit });
            }
            Ok(edited)
        })
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        Box::pin(async move {
            self.store.set_limit(&key, limit).await?;
            self.note(What::LimitSet { key, limit });
            Ok(())
        })
    }
}

impl Store for Witness {
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing is written down of other requests")]
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        match request {
            Request::Enqueue { batch } => replied(self.enqueue(batch), Reply::Enqueue),
            Request::Reserve { ask } => replied(self.reserve(ask), Reply::Reserve),
            Request::Renew { ask } => replied(self.renew(ask), Reply::Renew),
            Request::Settle { settlements, then } => replied(self.settle(settlements, then), Reply::Settle),
            Request::Report { reports } => replied(self.report(reports), Reply::Report),
            Request::Change { change, selection } => replied(self.change(change, selection), Reply::Change),
            Request::Tend {} => replied(self.tend(), Reply::Tend),
            Request::Lease { wishes } => replied(self.lease(wishes), Reply::Lease),
            Request::SetTimers { timers, starts } => {
                replied(self.set_timers(timers, starts), Reply::SetTimers)
            }
            Request::Fire { at_most } => replied(self.fire(at_most), Reply::Fire),
            Request::EditTimer { name, seen, edit } => {
                replied(self.edit_timer(&name, seen, edit), Reply::EditTimer)
            }
            Request::EditQueue { queue, edit } => replied(self.edit_queue(&queue, edit), Reply::EditQueue),
            Request::SetLimit { key, limit } => replied(self.set_limit(&key, limit), Reply::SetLimit),
            other => self.store.call(other),
        }
    }

    fn hints(&self) -> &dyn Hints {
        self.store.hints()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.store.clock()
    }

    fn about(&self) -> About {
        self.store.about()
    }

    fn extras(&self) -> Extras<'_> {
        Extras::default()
    }

    fn close(&self) -> Answer<'_, ()> {
        // The store is shared: no host may end it.
        Box::pin(async { Ok(()) })
    }
}
