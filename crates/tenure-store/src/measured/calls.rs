//! Every call of the contract goes to the store within, and is measured.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name, NewJob,
    NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, Timestamp,
};

use super::measures::{Claim, Measures, Wished};
use super::operation::Operation;
use super::{MeasuredStore, measured};
use crate::{
    Answer, Change, Changed, Count, Enqueued, EntriesAsk, EntryPage, Fired, Host, Hosts, Jobs, LeaseInfo,
    LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage, LeftAsk, LimitInfo, LimitPage, LostHost,
    Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen, RecordPage, Records,
    RecordsAsk, Renew, Renewal, Report, Reported, Reservation, Reserve, Rewrite, Selection, SlotPage,
    SlotsAsk, Tended, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerPage, TimerSeen, TimerSet, Timers,
    TimersAsk, Turn, Views, Writes, Written,
};

impl Jobs for MeasuredStore {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        self.measure(Operation::Enqueue, self.inner.enqueue(batch))
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        let claim = Claim::of(&ask);
        self.measure_more(Operation::Reserve, self.inner.reserve(ask), move |measures, got, took| {
            measures.claimed(&claim, got, took);
        })
    }

    fn leave(&self, ask: Reserve) -> Option<LeftAsk> {
        let (claim, clock, measures) = (Claim::of(&ask), Arc::clone(&self.clock), Arc::clone(&self.measures));
        let left = self.inner.leave(ask)?;
        Some(left.watched(move |sent, answer| {
            let tell = move |measures: &Measures, got: &_, took| measures.claimed(&claim, got, took);
            Box::pin(
                async move { measured((&clock, &measures), Operation::Reserve, sent, answer, tell).await },
            )
        }))
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        self.measure(Operation::Renew, self.inner.renew(ask))
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        let Some(claim) = then.as_ref().map(Claim::of) else {
            return self.measure(Operation::Settle, self.inner.settle(settlements, then));
        };
        self.measure_more(
            Operation::Settle,
            self.inner.settle(settlements, then),
            move |measures, turn, took| {
                measures.claimed(&claim, &turn.reservation, took);
            },
        )
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        self.measure(Operation::Report, self.inner.report(reports))
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        self.measure(Operation::Rewrite, self.inner.rewrite(rewrites))
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        self.measure(Operation::Change, self.inner.change(change, selection))
    }

    fn tend(&self) -> Answer<'_, Tended> {
        self.measure(Operation::Tend, self.inner.tend())
    }
}

impl Leases for MeasuredStore {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        let wished: Vec<Wished> = wishes.iter().map(Wished::by).collect();
        self.measure_more(Operation::Lease, self.inner.lease(wishes), move |measures, outcomes, took| {
            measures.wished(&wished, outcomes, took);
        })
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        self.measure(Operation::LeaseInfo, self.inner.lease_info(name))
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        self.measure(Operation::Leases, self.inner.leases(ask))
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        self.measure(Operation::Ledger, self.inner.ledger(ask))
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.measure(Operation::PruneLedger, self.inner.prune_ledger(before))
    }
}

impl Timers for MeasuredStore {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        self.measure(Operation::SetTimers, self.inner.set_timers(timers, starts))
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.measure(Operation::Fire, self.inner.fire(at_most))
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        self.measure(Operation::ChangeTimer, self.inner.change_timer(name, act))
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        self.measure(Operation::EditTimer, self.inner.edit_timer(name, seen, edit))
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        self.measure(Operation::Timer, self.inner.timer(name))
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.measure(Operation::Timers, self.inner.timers(ask))
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.measure(Operation::Slots, self.inner.slots(ask))
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.measure(Operation::PruneSlots, self.inner.prune_slots(before))
    }
}

impl Records for MeasuredStore {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        self.measure(Operation::WriteRecords, self.inner.write_records(writes))
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        self.measure(Operation::Record, self.inner.record(shelf, key))
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.measure(Operation::Records, self.inner.records(ask))
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.measure(Operation::Entries, self.inner.entries(ask))
    }
}

impl Hosts for MeasuredStore {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        self.measure(Operation::Announce, self.inner.announce(id, name, slots, serves, ttl))
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        self.measure(Operation::Retire, self.inner.retire(id))
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        self.measure(Operation::ClaimApp, self.inner.claim_app(app, program, host))
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        self.measure(Operation::Apps, self.inner.apps())
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        self.measure(Operation::Hosts, self.inner.hosts())
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        self.measure(Operation::LostHosts, self.inner.lost_hosts())
    }
}

impl Views for MeasuredStore {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.measure(Operation::Job, self.inner.job(id))
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        self.measure(Operation::Jobs, self.inner.jobs(ask))
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        self.measure(Operation::Attempts, self.inner.attempts(id))
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        self.measure(Operation::Logs, self.inner.logs(id, behind, at_most))
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        self.measure(Operation::Counts, self.inner.counts())
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        self.measure(Operation::Queues, self.inner.queues())
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        self.measure(Operation::Standing, self.inner.standing(id))
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        self.measure(Operation::SetPaused, self.inner.set_paused(queue, paused))
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        self.measure(Operation::SetQueueLimit, self.inner.set_queue_limit(queue, limit))
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        self.measure(Operation::EditQueue, self.inner.edit_queue(queue, edit))
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        self.measure(Operation::RemoveQueue, self.inner.remove_queue(queue, seen))
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        self.measure(Operation::Limits, self.inner.limit(key))
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        self.measure(Operation::Limits, self.inner.limits(behind, at_most))
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        self.measure(Operation::SetLimit, self.inner.set_limit(key, limit))
    }
}
