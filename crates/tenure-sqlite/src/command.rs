//! What the writer is asked to do, and where the answer goes.

use std::time::Duration;

use rusqlite::Result;
use tenure_core::{
    AppId, HostId, Key, LeaseOutcome, Limit, Name, NewJob, NewTimer, QueueName, Serves, Settlement,
    Timestamp, limits,
};
use tenure_store::{
    Change, Changed, CopyEnd, Enqueued, Fault, Fired, Item, LeaseWish, Pruned, QueueEdit, QueueEdited,
    QueueRemoved, QueueSeen, Renew, Renewal, Report, Reported, Reservation, Reserve, Rewrite, Selection,
    Tended, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerSeen, TimerSet, Turn, Writes, Written,
};
use tokio::sync::oneshot;

use crate::apps::Claimed;
use crate::writing::Writing;

/// About how many rows a slot writes: its job, the place of that in its line, the record and the timer.
const FIRED_ROWS: usize = 4;

/// Where an answer goes, and the answer until the commit: it shares the fate of the whole transaction.
pub(crate) struct Reply<T> {
    to: oneshot::Sender<std::result::Result<T, Fault>>,
    answer: Option<T>,
}

impl<T> Reply<T> {
    pub(crate) fn new(to: oneshot::Sender<std::result::Result<T, Fault>>) -> Self {
        Self { to, answer: None }
    }

    fn keep(&mut self, outcome: Result<T>) -> Result<()> {
        self.answer = Some(outcome?);
        Ok(())
    }

    /// Answers what no transaction can undo.
    pub(crate) fn send(self, answer: T) {
        // Whoever asked may have stopped waiting.
        let _ = self.to.send(Ok(answer));
    }

    fn tell(self, fate: std::result::Result<(), Fault>) {
        // A transaction with a command that failed is never committed.
        let undone = || Fault::Unavailable("the write was rolled back".to_owned());
        // Whoever asked may have stopped waiting.
        let _ = self.to.send(fate.and_then(|()| self.answer.ok_or_else(undone)));
    }
}

pub(crate) enum Command {
    Enqueue(Vec<NewJob>, Reply<Enqueued>),
    Reserve(Reserve, Reply<Reservation>),
    Renew(Renew, Reply<Vec<Renewal>>),
    Settle(Vec<Settlement>, Option<Reserve>, Reply<Turn>),
    Report(Vec<Report>, Reply<Vec<Reported>>),
    Rewrite(Vec<Rewrite>, Reply<Vec<bool>>),
    Change(Change, Selection, Reply<Changed>),
    Tend(Reply<Tended>),
    SetPaused(QueueName, bool, Reply<bool>),
    SetQueueLimit(QueueName, Limit, Reply<bool>),
    EditQueue(QueueName, QueueEdit, Reply<QueueEdited>),
    RemoveQueue(QueueName, QueueSeen, Reply<QueueRemoved>),
    SetLimit(Key, Option<Limit>, Reply<()>),
    Announce {
        id: HostId,
        name: String,
        slots: u32,
        serves: Vec<Serves>,
        ttl: Duration,
        reply: Reply<()>,
    },
    Retire(HostId, Reply<()>),
    Lease(Vec<LeaseWish>, Reply<Vec<LeaseOutcome>>),
    PruneLedger(Timestamp, Reply<Pruned>),
    SetTimers(Vec<NewTimer>, Option<HostId>, Reply<Vec<TimerSet>>),
    Fire(usize, Reply<Fired>),
    ChangeTimer(Name, TimerAct, Reply<TimerOutcome>),
    EditTimer(Name, TimerSeen, TimerEdit, Reply<TimerEdited>),
    PruneSlots(Timestamp, Reply<Pruned>),
    WriteRecords(Writes, Reply<Written>),
    ClaimApp(AppId, String, HostId, Reply<Claimed>),
    BeginCopy(Reply<Option<String>>),
    TakeIn(Vec<Item>, Reply<()>),
    EndCopy(CopyEnd, Reply<()>),
    /// Look whether another process has written.
    Look,
    /// The last one.
    Close(Reply<()>),
}

impl Command {
    /// About how many rows it writes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Enqueue(batch, _) => batch.len(),
            Self::Reserve(ask, _) => ask.at_most.min(limits::RESERVE_JOBS),
            Self::Renew(ask, _) => ask.held.len(),
            Self::Settle(settlements, then, _) => {
                settlements.len() + then.as_ref().map_or(0, |ask| ask.at_most.min(limits::RESERVE_JOBS))
            }
            Self::Report(reports, _) => reports.iter().map(|report| 1 + report.lines.len()).sum(),
            Self::Rewrite(rewrites, _) => rewrites.len(),
            Self::Change(..) | Self::Tend(_) | Self::SetLimit(..) => limits::CHANGE_JOBS,
            Self::Lease(wishes, _) => wishes.len(),
            Self::PruneLedger(..) => limits::PRUNE_LEDGER,
            Self::SetTimers(timers, ..) => timers.len(),
            Self::Fire(at_most, _) => FIRED_ROWS * (*at_most).min(limits::FIRE_TIMERS),
            Self::ChangeTimer(_, TimerAct::Backfill { .. }, _)
            | Self::EditTimer(_, _, TimerEdit::Act(TimerAct::Backfill { .. }), _) => {
                FIRED_ROWS * limits::CATCH_UP_JOBS
            }
            Self::PruneSlots(..) => limits::PRUNE_SLOTS,
            Self::WriteRecords(writes, _) => 1 + writes.records.len() + writes.entries.len(),
            Self::TakeIn(items, _) => items.len(),
            Self::SetPaused(..)
            | Self::SetQueueLimit(..)
            | Self::EditQueue(..)
            | Self::RemoveQueue(..)
            | Self::Announce { .. }
            | Self::Retire(..)
            | Self::ClaimApp(..)
            | Self::BeginCopy(_)
            | Self::EndCopy(..)
            | Self::ChangeTimer(..)
            | Self::EditTimer(..)
            | Self::Look
            | Self::Close(_) => 1,
        }
    }

    /// Does it, and keeps its answer until the commit. It may be done again after a rollback.
    pub(crate) fn write(&mut self, writing: &mut Writing<'_>) -> Result<()> {
        match self {
            Self::Enqueue(batch, reply) => reply.keep(writing.enqueue(batch)),
            Self::Reserve(ask, reply) => reply.keep(writing.reserve(ask)),
            Self::Renew(ask, reply) => reply.keep(writing.renew(ask)),
            Self::Settle(settlements, then, reply) => reply.keep(writing.turn(settlements, then.as_ref())),
            Self::Report(reports, reply) => reply.keep(writing.report(reports)),
            Self::Rewrite(rewrites, reply) => reply.keep(writing.rewrite_values(rewrites)),
            Self::Change(change, selection, reply) => reply.keep(writing.change(change, selection)),
            Self::Tend(reply) => reply.keep(writing.tend()),
            Self::SetPaused(queue, paused, reply) => reply.keep(writing.set_paused(queue, *paused)),
            Self::SetQueueLimit(queue, limit, reply) => reply.keep(writing.set_queue_limit(queue, *limit)),
            Self::EditQueue(queue, edit, reply) => reply.keep(writing.edit_queue(queue, edit)),
            Self::RemoveQueue(queue, seen, reply) => reply.keep(writing.remove_queue(queue, seen)),
            Self::SetLimit(key, limit, reply) => reply.keep(writing.set_limit(key, *limit)),
            Self::Announce { id, name, slots, serves, ttl, reply } => {
                reply.keep(writing.announce(*id, name, *slots, serves, *ttl))
            }
            Self::Retire(id, reply) => reply.keep(writing.retire(*id)),
            Self::Lease(wishes, reply) => reply.keep(writing.lease(wishes)),
            Self::PruneLedger(before, reply) => reply.keep(writing.prune_ledger(*before)),
            Self::SetTimers(timers, starts, reply) => reply.keep(writing.set_timers(timers, *starts)),
            Self::Fire(at_most, reply) => reply.keep(writing.fire(*at_most)),
            Self::ChangeTimer(name, act, reply) => reply.keep(writing.change_timer(name, act)),
            Self::EditTimer(name, seen, edit, reply) => reply.keep(writing.edit_timer(name, seen, edit)),
            Self::PruneSlots(before, reply) => reply.keep(writing.prune_slots(*before)),
            Self::WriteRecords(writes, reply) => reply.keep(writing.write_records(writes)),
            Self::ClaimApp(app, program, host, reply) => reply.keep(writing.claim_app(app, program, *host)),
            Self::BeginCopy(reply) => reply.keep(writing.begin_copy()),
            Self::TakeIn(items, reply) => reply.keep(writing.take_in(items)),
            Self::EndCopy(end, reply) => reply.keep(writing.end_copy(*end)),
            Self::Look => Ok(()),
            Self::Close(reply) => reply.keep(Ok(())),
        }
    }

    /// Answers, once the fate of its transaction is known.
    pub(crate) fn answer(self, fate: std::result::Result<(), Fault>) {
        match self {
            Self::Enqueue(_, reply) => reply.tell(fate),
            Self::Reserve(_, reply) => reply.tell(fate),
            Self::Renew(_, reply) => reply.tell(fate),
            Self::Settle(_, _, reply) => reply.tell(fate),
            Self::Report(_, reply) => reply.tell(fate),
            Self::Rewrite(_, reply) => reply.tell(fate),
            Self::Change(_, _, reply) => reply.tell(fate),
            Self::Tend(reply) => reply.tell(fate),
            Self::SetPaused(_, _, reply) | Self::SetQueueLimit(_, _, reply) => reply.tell(fate),
            Self::EditQueue(_, _, reply) => reply.tell(fate),
            Self::RemoveQueue(_, _, reply) => reply.tell(fate),
            Self::Announce { reply, .. }
            | Self::SetLimit(_, _, reply)
            | Self::Retire(_, reply)
            | Self::Close(reply) => reply.tell(fate),
            Self::Lease(_, reply) => reply.tell(fate),
            Self::PruneLedger(_, reply) | Self::PruneSlots(_, reply) => reply.tell(fate),
            Self::SetTimers(_, _, reply) => reply.tell(fate),
            Self::Fire(_, reply) => reply.tell(fate),
            Self::ChangeTimer(_, _, reply) => reply.tell(fate),
            Self::EditTimer(_, _, _, reply) => reply.tell(fate),
            Self::WriteRecords(_, reply) => reply.tell(fate),
            Self::ClaimApp(_, _, _, reply) => reply.tell(fate),
            Self::BeginCopy(reply) => reply.tell(fate),
            Self::TakeIn(_, reply) | Self::EndCopy(_, reply) => reply.tell(fate),
            Self::Look => {}
        }
    }
}

impl Writing<'_> {
    fn turn(&mut self, settlements: &[Settlement], then: Option<&Reserve>) -> Result<Turn> {
        let settled = self.settle(settlements)?;
        let reservation = then.map_or(Ok(Reservation::default()), |ask| self.reserve(ask))?;
        Ok(Turn { settled, reservation })
    }

    pub(crate) fn set_paused(&mut self, queue: &QueueName, paused: bool) -> Result<bool> {
        let changed = self.memory.lanes.set_paused(self.conn, queue, paused)?;
        self.news.due |= changed && !paused;
        Ok(changed)
    }
}
