//! Turns with much to do: what was settled is written beside the claim, on a connection of its own, and what was granted is worked
//! up while the next claim is under way. The server has more than one processor, and need not wait for this one.

use std::sync::Arc;

use tenure_core::{Next, Settlement};
use tenure_store::{Fault, Reserve, Settled, Turn};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use super::grant::Granted;
use super::turn::{self, Asked, To};
use crate::link::Link;
use crate::memory::Memory;

/// So many ends are worth a transaction of their own.
const MUCH: usize = 100;
/// So many turns are claimed while another is worked up: what is granted lapses while it waits.
const WAITING: usize = 1;

/// A turn that ends many jobs, and asks for others.
pub(super) struct Much {
    settlements: Vec<Settlement>,
    ask: Reserve,
    reply: To,
}

/// Takes out the only turn that is taken if it has much to do. Of several turns all that was settled is written before anything
/// is taken from a holder: by `turn::take`.
pub(super) fn take_out_much(memory: &Memory, turns: &mut Vec<Asked>) -> Option<Much> {
    if !matches!(turns.as_slice(), [turn] if is_much(memory, turn)) {
        return None;
    }
    let Asked { settlements, then, reply } = turns.pop()?;
    Some(Much { settlements, ask: then?, reply })
}

/// Whether so much is settled that it is written beside the claim: all of it ordinary, for other ends may let go, or put back,
/// what is claimed after them.
fn is_much(memory: &Memory, turn: &Asked) -> bool {
    if turn.settlements.len() < MUCH || turn.then.is_none() {
        return false;
    }
    let grants = memory.grants();
    turn.settlements.iter().all(|settlement| {
        matches!(settlement.next(), Next::Succeed)
            && grants.is_plain(settlement.fence(), settlement.seq(), settlement.id())
    })
}

/// A turn that is worked up.
pub(crate) struct Begun {
    settlements: Vec<Settlement>,
    ask: Arc<Reserve>,
    granted: oneshot::Receiver<Result<Granted, Fault>>,
    reply: To,
    /// Dropped when that is done.
    done: oneshot::Sender<()>,
}

/// Where turns with much to do are worked up, one after the other.
pub(crate) struct Beside {
    begun: mpsc::Sender<Begun>,
    last: Option<oneshot::Receiver<()>>,
}

/// Nobody works turns up any more.
pub(super) struct Ended;

impl Beside {
    /// And what comes there.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Begun>) {
        let (begun, comes) = mpsc::channel(WAITING);
        (Self { begun, last: None }, comes)
    }

    /// Takes a turn. It has been claimed then, and is worked up.
    pub(super) async fn take(&mut self, link: &mut Link, much: Much) -> Result<(), Ended> {
        let Much { settlements, ask, reply } = much;
        let (ask, (claimed, granted), (done, last)) = (Arc::new(ask), oneshot::channel(), oneshot::channel());
        let begun = Begun { settlements, ask: Arc::clone(&ask), granted, reply, done };
        self.begun.send(begun).await.map_err(|_| Ended)?;
        self.last = Some(last);
        let _ = claimed.send(turn::claim(link, &ask).await);
        Ok(())
    }

    /// Waits until all that it has taken is worked up: whatever else is done may be about the same jobs.
    pub(super) async fn rest(&mut self) {
        if let Some(last) = self.last.take() {
            // It is dropped at the end.
            let _ = last.await;
        }
    }
}

/// Works turns up until no more come.
pub(crate) async fn work_up(mut link: Link, mut begun: mpsc::Receiver<Begun>) {
    while let Some(Begun { settlements, ask, granted, reply, done }) = link.rest(begun.recv()).await {
        // The claim is sent first: it takes longer.
        yield_now().await;
        let settled = turn::end(&mut link, &settlements).await;
        let granted = granted.await;
        // The next claim is sent first: the server has nothing to do by now.
        yield_now().await;
        let granted = granted.unwrap_or_else(|_| Err(Fault::Unknown("the claim task has ended".to_owned())));
        let is_heard = !reply.is_in_vain();
        reply.send(finish(&mut link, &ask, settled, granted, is_heard).await);
        drop(done);
    }
}

async fn finish(
    link: &mut Link,
    ask: &Reserve,
    settled: Result<Vec<Settled>, Fault>,
    granted: Result<Granted, Fault>,
    is_heard: bool,
) -> Result<Turn, Fault> {
    match granted {
        Ok(granted) if is_heard => {
            let granted = granted.read(&link.memory, ask);
            let (settled, reservation) = turn::go_on(link, settled, Some(ask), Some(granted)).await?;
            return Ok(Turn { settled, reservation: reservation.unwrap_or_default() });
        }
        Ok(granted) => {
            let granted = granted.read(&link.memory, ask);
            turn::give_back(link, granted).await;
        }
        Err(fault) => tracing::warn!(%fault, "failed to grant jobs"),
    }
    // What was settled is told; what else there is to do is done by the next turn.
    settled.map(|settled| Turn { settled, reservation: turn::next_turn() })
}
