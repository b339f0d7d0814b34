//! A round trip to the store that is under way, while attempts go on and end.

use std::pin::Pin;
use std::sync::Arc;

use tenure_core::{Job, Settlement};
use tenure_store::{Clock, Fault, Moment, Reserve, Store, Turn, Want};

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
    /// Of how many hints this host knew when it set out.
    pub(super) hints: u64,
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
        hints: u64,
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
        Self { settling, asked, hints, answer: Box::pin(answer) }
    }
}
