//! Forwards every call of the contract to the inner store, with encrypted values.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, Edit, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name,
    NewJob, NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, TimerJob, Timestamp,
};
use tenure_store::{
    Answer, Change, Changed, Count, Encryption, Enqueued, EntriesAsk, EntryPage, Fault, Fired, Host, Hosts,
    Jobs, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage, LeftAsk, LimitInfo,
    LimitPage, LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen,
    RecordPage, Records, RecordsAsk, Refusal, Renew, Renewal, Report, Reported, Reservation, Reserve,
    Rewrite, Selection, SlotPage, SlotsAsk, Tended, TimerAct, TimerEdit, TimerEdited, TimerOutcome,
    TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes, Written,
};

use super::claims::open_claim;
use super::{SealedStore, search};

impl Jobs for SealedStore {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        if !self.vault.seals() {
            return self.inner.enqueue(batch);
        }
        Box::pin(async move {
            let mut sealed = self.vault.seal_jobs(&batch)?;
            let answer = self.told(self.inner.enqueue(sealed.clone())).await?;
            let Enqueued::Refused { index, refusal: Refusal::IdTaken(_) } = answer else { return Ok(answer) };
            // A repeated job may be stored under another key or plain: enqueue it again with its stored bytes.
            for (sealed, new) in sealed.iter_mut().zip(&batch).skip(index) {
                self.as_stored(sealed, new).await?;
            }
            self.told(self.inner.enqueue(sealed)).await
        })
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(async move {
            let claim = self.inner.reserve(ask).await?;
            self.told(Box::pin(open_claim((&self.inner, &self.vault), claim))).await
        })
    }

    fn leave(&self, ask: Reserve) -> Option<LeftAsk> {
        let (inner, vault) = (Arc::clone(&self.inner), self.vault.clone());
        let left = self.inner.leave(ask)?;
        Some(left.watched(move |_, answer| {
            Box::pin(async move { open_claim((&inner, &vault), answer.await?).await })
        }))
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        self.inner.renew(ask)
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(async move {
            let sealed = settlements.into_iter().map(|settlement| self.vault.seal_settlement(settlement));
            let turn = self.inner.settle(sealed.collect::<Result<_, _>>()?, then).await?;
            let opening = open_claim((&self.inner, &self.vault), turn.reservation);
            let reservation = self.told(Box::pin(opening)).await?;
            Ok(Turn { reservation, ..turn })
        })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(async move {
            let sealed = reports.into_iter().map(|report| self.vault.seal_report(report));
            self.told(self.inner.report(sealed.collect::<Result<_, _>>()?)).await
        })
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        self.inner.rewrite(rewrites)
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        Box::pin(async move {
            if let Selection::Matching { filter, .. } = &selection {
                self.check_filter(filter).map_err(|wrong| search::fault(&wrong))?;
            }
            let change = match change {
                Change::Edit(edit) => Change::Edit(Box::new(self.seen_as_stored(*edit).await?)),
                other @ (Change::Cancel { .. }
                | Change::Redo
                | Change::Delete
                | Change::Move(_)
                | Change::Reprioritise(_)
                | Change::Reschedule(_)) => other,
            };
            self.told(self.inner.change(change, selection)).await
        })
    }

    fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(self.told(self.inner.tend()))
    }
}

impl SealedStore {
    /// Replaces the args of a repeated job with the stored bytes, if both are the same args.
    pub(super) async fn as_stored(&self, sealed: &mut NewJob, new: &NewJob) -> Result<(), Fault> {
        let Some(stored) = self.inner.job(new.id).await? else { return Ok(()) };
        let args = stored.args.clone();
        if new.repeats(&self.vault.open_job(stored).job) {
            sealed.args = args;
        }
        Ok(())
    }

    /// Replaces the job that the caller has seen with the same job as it is stored, so that the store can compare them.
    async fn seen_as_stored(&self, mut edit: Edit) -> Result<Edit, Fault> {
        let Some(seen) = &edit.seen else { return Ok(edit) };
        let Some(stored) = self.inner.job(seen.id).await? else { return Ok(edit) };
        if !edit.comes_too_late(&self.vault.open_job(stored.clone()).job) {
            edit.seen = Some(Box::new(stored));
        }
        Ok(edit)
    }

    /// Encrypts the args of a schedule, unless the same args are stored: setting it again changes nothing.
    async fn seal_timer(&self, new: NewTimer) -> Result<NewTimer, Fault> {
        let Some(stored) = self.inner.timer(&new.name).await? else { return self.vault.seal_timer(new) };
        let args = stored.agreed.job.args.clone();
        if self.vault.open_timer(stored).agreed.job.args != new.job.args {
            return self.vault.seal_timer(new);
        }
        Ok(NewTimer { job: TimerJob { args, ..new.job }, ..new })
    }

    fn seal_act(&self, act: TimerAct) -> Result<TimerAct, Fault> {
        match act {
            TimerAct::Trigger { id, args, owner } => {
                let args = args.map(|args| self.vault.seal_args(&id, args)).transpose()?;
                Ok(TimerAct::Trigger { id, args, owner })
            }
            other @ (TimerAct::Pause { .. }
            | TimerAct::Resume
            | TimerAct::Backfill { .. }
            | TimerAct::Remove) => Ok(other),
        }
    }
}

impl Leases for SealedStore {
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

impl Timers for SealedStore {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async move {
            let mut sealed = Vec::with_capacity(timers.len());
            for timer in timers {
                sealed.push(self.seal_timer(timer).await?);
            }
            self.told(self.inner.set_timers(sealed, starts)).await
        })
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        Box::pin(self.told(self.inner.fire(at_most)))
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let name = name.clone();
        Box::pin(async move { self.told(self.inner.change_timer(&name, self.seal_act(act)?)).await })
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        Box::pin(async move {
            let edit = match edit {
                TimerEdit::Set(new) => TimerEdit::Set(Box::new(self.seal_timer(*new).await?)),
                TimerEdit::Act(act) => TimerEdit::Act(self.seal_act(act)?),
            };
            self.told(self.inner.edit_timer(&name, seen, edit)).await
        })
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let timer = self.inner.timer(name);
        Box::pin(async move { Ok(timer.await?.map(|timer| self.vault.open_timer(timer))) })
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        Box::pin(async move {
            let page = self.inner.timers(ask).await?;
            let timers = page.timers.into_iter().map(|timer| self.vault.open_timer(timer)).collect();
            Ok(TimerPage { timers, ..page })
        })
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.inner.slots(ask)
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.inner.prune_slots(before)
    }
}

impl Records for SealedStore {
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

impl Hosts for SealedStore {
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

impl Views for SealedStore {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(async move { Ok(self.inner.job(id).await?.map(|job| self.vault.open_job(job).job)) })
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        Box::pin(async move {
            self.check_filter(&ask.filter).map_err(|wrong| search::fault(&wrong))?;
            let page = self.inner.jobs(ask).await?;
            let jobs = page.jobs.into_iter().map(|job| self.vault.open_job(job).job).collect();
            Ok(Page { jobs, ..page })
        })
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        Box::pin(async move {
            let attempts = self.inner.attempts(id).await?;
            Ok(attempts.into_iter().map(|attempt| self.vault.open_attempt(&id, attempt)).collect())
        })
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        Box::pin(async move {
            let lines = self.inner.logs(id, behind, at_most).await?;
            Ok(lines.into_iter().map(|line| self.vault.open_line(&id, line)).collect())
        })
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        self.inner.counts()
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.inner.queues()
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        Box::pin(async move {
            let standing = self.inner.standing(id).await?;
            Ok(standing.map(|standing| Standing { job: self.vault.open_job(standing.job).job, ..standing }))
        })
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
