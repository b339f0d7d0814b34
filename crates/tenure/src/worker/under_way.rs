//! A round trip to the store that is under way, while attempts go on and end.

use std::pin::Pin;
use std::sync::Arc;

use tenure_core::{Job, Settlement};
use tenure_store::{Clock, Fault, LeftAsk, Moment, Reserve, Store, Turn, Want};

use super::control::Control;
use super::reports::Reports;

/// An attempt that has ended and is to be settled.
pub(super) struct Decided {
    pub(super) settlement: Settlement,
    pub(super) control: Arc<Control>,
    /// The job as it was granted.
    pub(super) job: Arc<Job>,
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

/// What this host will ask for when something may be due, left with the store: it hears of that sooner than this host does.
pub(super) struct Left {
    ask: LeftAsk,
    asked: (usize, Vec<Want>),
}

impl Left {
    /// Leaves an ask with the store, if that serves any purpose there.
    pub(super) fn with(store: &dyn Store, ask: Reserve) -> Option<Self> {
        let asked = (ask.at_most, ask.wants.clone());
        store.leave(ask).map(|ask| Self { ask, asked })
    }

    /// Takes it back. If it was put by then, that is a round trip as any other.
    pub(super) fn take_back(self) -> Option<UnderWay> {
        let put = self.ask.take_back()?;
        let answer = async move {
            let turn = Turn { settled: Vec::new(), reservation: put.answer.await? };
            Ok(Answered { sent: put.sent, turn })
        };
        let asked = Some(self.asked);
        Some(UnderWay { settling: Vec::new(), asked, calls: put.calls, answer: Box::pin(answer) })
    }
}
