//! What the writer is asked to do, and where the answer goes.

use std::time::Duration;

use rusqlite::Result;
use tenure_core::{HostId, NewJob, QueueName, Serves, Settlement, limits};
use tenure_store::{
    Change, Changed, Enqueued, Fault, Renew, Renewal, Report, Reported, Reservation, Reserve, Selection,
    Tended, Turn,
};
use tokio::sync::oneshot;

use crate::writing::Writing;

pub(crate) type Reply<T> = oneshot::Sender<std::result::Result<T, Fault>>;

/// An answer that waits for the commit: it is told the fate of the whole transaction.
pub(crate) type Held = Box<dyn FnOnce(std::result::Result<(), Fault>)>;

pub(crate) enum Command {
    Enqueue(Vec<NewJob>, Reply<Enqueued>),
    Reserve(Reserve, Reply<Reservation>),
    Renew(Renew, Reply<Vec<Renewal>>),
    Settle(Vec<Settlement>, Option<Reserve>, Reply<Turn>),
    Report(Vec<Report>, Reply<Vec<Reported>>),
    Change(Change, Selection, Reply<Changed>),
    Tend(Reply<Tended>),
    SetPaused(QueueName, bool, Reply<bool>),
    Announce {
        id: HostId,
        name: String,
        slots: u32,
        serves: Vec<Serves>,
        ttl: Duration,
        reply: Reply<()>,
    },
    Retire(HostId, Reply<()>),
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
            Self::Change(..) | Self::Tend(_) => limits::CHANGE_JOBS,
            Self::SetPaused(..) | Self::Announce { .. } | Self::Retire(..) | Self::Look | Self::Close(_) => 1,
        }
    }

    /// Does it, and holds its answer back until the commit.
    pub(crate) fn write(self, writing: &mut Writing<'_>, held: &mut Vec<Held>) -> Result<()> {
        match self {
            Self::Enqueue(batch, reply) => hold(held, reply, writing.enqueue(&batch)),
            Self::Reserve(ask, reply) => hold(held, reply, writing.reserve(&ask)),
            Self::Renew(ask, reply) => hold(held, reply, writing.renew(&ask)),
            Self::Settle(settlements, then, reply) => {
                hold(held, reply, writing.turn(&settlements, then.as_ref()))
            }
            Self::Report(reports, reply) => hold(held, reply, writing.report(&reports)),
            Self::Change(change, selection, reply) => hold(held, reply, writing.change(&change, &selection)),
            Self::Tend(reply) => hold(held, reply, writing.tend()),
            Self::SetPaused(queue, paused, reply) => hold(held, reply, writing.set_paused(&queue, paused)),
            Self::Announce { id, name, slots, serves, ttl, reply } => {
                hold(held, reply, writing.announce(id, &name, slots, &serves, ttl))
            }
            Self::Retire(id, reply) => hold(held, reply, writing.retire(id)),
            Self::Look => Ok(()),
            Self::Close(reply) => hold(held, reply, Ok(())),
        }
    }

    /// Answers with a fault.
    pub(crate) fn refuse(self, fault: Fault) {
        match self {
            Self::Enqueue(_, reply) => refuse(reply, fault),
            Self::Reserve(_, reply) => refuse(reply, fault),
            Self::Renew(_, reply) => refuse(reply, fault),
            Self::Settle(_, _, reply) => refuse(reply, fault),
            Self::Report(_, reply) => refuse(reply, fault),
            Self::Change(_, _, reply) => refuse(reply, fault),
            Self::Tend(reply) => refuse(reply, fault),
            Self::SetPaused(_, _, reply) => refuse(reply, fault),
            Self::Announce { reply, .. } | Self::Retire(_, reply) | Self::Close(reply) => {
                refuse(reply, fault)
            }
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

    fn set_paused(&mut self, queue: &QueueName, paused: bool) -> Result<bool> {
        let changed = self.memory.lanes.set_paused(self.conn, queue, paused)?;
        self.news.due |= changed && !paused;
        Ok(changed)
    }
}

fn hold<T: 'static>(held: &mut Vec<Held>, reply: Reply<T>, outcome: Result<T>) -> Result<()> {
    let (answer, error) = match outcome {
        Ok(answer) => (Some(answer), None),
        Err(error) => (None, Some(error)),
    };
    held.push(Box::new(move |fate| {
        // A transaction with a command that failed is never committed.
        let undone = || Fault::Unavailable("it was not written".to_owned());
        // Whoever asked may have stopped waiting.
        let _ = reply.send(fate.and_then(|()| answer.ok_or_else(undone)));
    }));
    error.map_or(Ok(()), Err)
}

fn refuse<T>(reply: Reply<T>, fault: Fault) {
    // Whoever asked may have stopped waiting.
    let _ = reply.send(Err(fault));
}
