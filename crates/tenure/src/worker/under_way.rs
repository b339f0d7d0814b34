//! A round trip to the store that is under way, while attempts go on and end.

use std::pin::Pin;
use std::sync::Arc;

use tenure_core::{Job, Settlement, StateName};
use tenure_store::{Clock, Fault, Moment, ParkedClaim, Reserve, Settled, Store, Turn, Want, park};

use super::control::Control;
use super::reports::Reports;

/// An attempt that has ended and is to be settled.
pub(super) struct Decided {
    pub(super) settlement: Settlement,
    pub(super) control: Arc<Control>,
    /// The job as it was granted.
    pub(super) job: Arc<Job>,
    /// True if it was sent before and its answer was lost.
    pub(super) is_sent: bool,
}

impl Decided {
    /// Corrects the outcome of an attempt that has completed its job in a transaction of its own. It was settled as if the
    /// transaction had not committed, and the store answers that the attempt has ended already. After a lost answer, this
    /// can be the end that the worker sent first.
    pub(super) fn take_in(&mut self, settled: &mut Settled) {
        if *settled == Settled::Repeated && !self.is_sent && self.control.is_completed() {
            self.settlement = self.settlement.clone().committed();
            *settled = Settled::Done(StateName::Succeeded);
        }
    }
}

/// A round trip that is under way: what it settles, what it asks for, and its answer to come.
pub(super) struct UnderWay {
    pub(super) settling: Vec<Decided>,
    /// How many in all, and of what.
    pub(super) asked: Option<(usize, Vec<Want>)>,
    /// How often the store had said that something may be due, as far as this host knew when it set out.
    pub(super) calls: u64,
    pub(super) answer: Pin<Box<dyn Future<Output = Result<Answered, Fault>> + Send>>,
}

/// What the store answered, and when it was asked.
pub(super) struct Answered {
    pub(super) sent: Moment,
    pub(super) turn: Turn,
}

impl UnderWay {
    /// Sends what attempts have told, then what they came to along with what is asked for.
    pub(super) fn new(
        (store, clock, reports): (Arc<dyn Store>, Arc<dyn Clock>, Arc<Reports>),
        settling: Vec<Decided>,
        ask: Option<Reserve>,
        calls: u64,
    ) -> Self {
        let settlements: Vec<Settlement> =
            settling.iter().map(|decided| decided.settlement.clone()).collect();
        let asked = ask.as_ref().map(|ask| (ask.at_most, ask.wants.clone()));
        let answer = async move {
            reports.flush(&store).await;
            let sent = clock.moment();
            let turn = store.settle(settlements, ask).await?;
            Ok(Answered { sent, turn })
        };
        Self { settling, asked, calls, answer: Box::pin(answer) }
    }
}

/// The next claim of an idle host. The store holds it, because it learns before the host that a job may be due.
pub(super) struct Parked {
    claim: ParkedClaim,
    asked: (usize, Vec<Want>),
}

impl Parked {
    pub(super) fn with(store: &Arc<dyn Store>, ask: Reserve) -> Self {
        let asked = (ask.at_most, ask.wants.clone());
        Self { claim: park(store, ask), asked }
    }

    /// Takes the claim back. If the store has sent it, returns it as a round trip under way.
    pub(super) fn take_back(self) -> Option<UnderWay> {
        let sent = self.claim.take_back()?;
        let answer = async move {
            let turn = Turn { settled: Vec::new(), reservation: sent.answer.await? };
            Ok(Answered { sent: sent.sent, turn })
        };
        let asked = Some(self.asked);
        Some(UnderWay { settling: Vec::new(), asked, calls: sent.calls, answer: Box::pin(answer) })
    }
}
