//! Commands for the writer thread, and where their answers go.

use rusqlite::Result;
use tenure_core::limits;
use tenure_store::{Fault, Reply, Request, TimerAct, TimerEdit};
use tokio::sync::oneshot;

use crate::writing::Writing;

/// About how many rows an occurrence writes: its job, the job's place in line, the record and the timer.
const FIRED_ROWS: usize = 4;

/// The answer to a command until its transaction commits, and the caller who waits for it.
pub(crate) struct Pending<T> {
    to: oneshot::Sender<std::result::Result<T, Fault>>,
    answer: Option<T>,
}

impl<T> Pending<T> {
    pub(crate) fn new(to: oneshot::Sender<std::result::Result<T, Fault>>) -> Self {
        Self { to, answer: None }
    }

    fn keep(&mut self, outcome: Result<T>) -> Result<()> {
        self.answer = Some(outcome?);
        Ok(())
    }

    /// Answers at once, when no transaction can undo the answer.
    pub(crate) fn send(self, answer: T) {
        // The caller may have stopped waiting.
        let _ = self.to.send(Ok(answer));
    }

    fn tell(self, fate: std::result::Result<(), Fault>) {
        // A transaction with a command that failed is never committed.
        let undone = || Fault::Unavailable("the write was rolled back".to_owned());
        // The caller may have stopped waiting.
        let _ = self.to.send(fate.and_then(|()| self.answer.ok_or_else(undone)));
    }
}

#[allow(clippy::large_enum_variant, reason = "nearly all commands are calls")]
pub(crate) enum Command {
    Call(Request, Pending<Reply>),
    /// Look for writes of another process.
    Look,
    /// The last one.
    Close(Pending<()>),
}

impl Command {
    /// About how many rows it writes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Call(request, _) => weight(request),
            Self::Look | Self::Close(_) => 1,
        }
    }

    /// Writes it, and keeps its answer until the commit. It may be written again after a rollback.
    pub(crate) fn write(&mut self, writing: &mut Writing<'_>) -> Result<()> {
        match self {
            Self::Call(request, pending) => pending.keep(writing.perform(request)),
            Self::Look => Ok(()),
            Self::Close(pending) => pending.keep(Ok(())),
        }
    }

    /// Answers the caller when the fate of the transaction is known.
    pub(crate) fn answer(self, fate: std::result::Result<(), Fault>) {
        match self {
            Self::Call(_, pending) => pending.tell(fate),
            Self::Close(pending) => pending.tell(fate),
            Self::Look => {}
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "all others write about one row")]
fn weight(request: &Request) -> usize {
    match request {
        Request::Enqueue { batch } => batch.len(),
        Request::Reserve { ask } => ask.at_most.min(limits::RESERVE_JOBS),
        Request::Renew { ask } => ask.held.len(),
        Request::Settle { settlements, then } => {
            settlements.len() + then.as_ref().map_or(0, |ask| ask.at_most.min(limits::RESERVE_JOBS))
        }
        Request::Report { reports } => reports.iter().map(|report| 1 + report.lines.len()).sum(),
        Request::Rewrite { rewrites } => rewrites.len(),
        Request::Change { .. } | Request::Tend {} | Request::SetLimit { .. } => limits::CHANGE_JOBS,
        Request::Lease { wishes } => wishes.len(),
        Request::PruneLedger { .. } => limits::PRUNE_LEDGER,
        Request::SetTimers { timers, .. } => timers.len(),
        Request::Fire { at_most } => FIRED_ROWS * (*at_most).min(limits::FIRE_TIMERS),
        Request::EditTimer { edit: TimerEdit::Act(TimerAct::Backfill { .. }), .. } => {
            FIRED_ROWS * limits::CATCH_UP_JOBS
        }
        Request::PruneSlots { .. } => limits::PRUNE_SLOTS,
        Request::TakeIn { items } => items.len(),
        Request::WriteRecords { writes } => 1 + writes.records.len() + writes.entries.len(),
        _ => 1,
    }
}
