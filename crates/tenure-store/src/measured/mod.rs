//! The measured store: a wrapper around any store that changes nothing, and measures how long each call takes and how it
//! ends. See decision 0042.

mod histogram;
mod measures;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Answer, Caution, Clock, Copies, Encryption, Fault, Hints, Joint, LeftAsk, Moment, Operation, Reply,
    Request, Reserve, Store,
};
pub use histogram::Histogram;
pub use measures::{CallMeasure, ClaimMeasure, LeaseMeasure, Measures};
use measures::{Claim, Watched};

/// A store that does what the one within does, and knows how long that takes.
///
/// A call is measured from when it is made until its answer is there; whoever stops waiting before that is not counted.
///
/// ```
/// use std::sync::Arc;
/// use tenure_store::{ManualClock, MeasuredStore, MemoryStore, Store, Views};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = MeasuredStore::new(Arc::new(MemoryStore::new(Arc::new(ManualClock::new()))));
/// store.queues().await.unwrap();
/// let calls = store.measures().unwrap().calls();
/// assert_eq!((calls[0].operation, calls[0].took.count()), ("queues", 1));
/// # }
/// ```
pub struct MeasuredStore {
    inner: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    measures: Arc<Measures>,
}

impl MeasuredStore {
    /// Measures the calls to this store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { clock: inner.clock(), inner, measures: Arc::default() }
    }
}

/// Waits for the answer to a call that began at this moment, and measures it.
async fn measured<T>(
    (clock, measures): (&Arc<dyn Clock>, &Measures),
    operation: Operation,
    began: Moment,
    call: Answer<'_, T>,
    tell: impl FnOnce(&Measures, &T, Duration),
) -> Result<T, Fault> {
    let answer = call.await;
    let took = clock.moment().since(began);
    measures.called(operation, took, answer.as_ref().err());
    if let Ok(answer) = &answer {
        tell(measures, answer, took);
    }
    answer
}

impl fmt::Debug for MeasuredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeasuredStore({})", self.inner.describe())
    }
}

impl Store for MeasuredStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        let (operation, watched) = (request.operation(), Watched::of(&request));
        Box::pin(async move {
            let began = self.clock.moment();
            let call = self.inner.call(request);
            let tell = move |measures: &Measures, reply: &_, took| watched.tell(measures, reply, took);
            measured((&self.clock, &self.measures), operation, began, call, tell).await
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

    fn hints(&self) -> &dyn Hints {
        self.inner.hints()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn cautions(&self) -> Vec<Caution> {
        self.inner.cautions()
    }

    fn joint(&self) -> Option<&dyn Joint> {
        self.inner.joint()
    }

    fn copies(&self) -> Option<&dyn Copies> {
        self.inner.copies()
    }

    fn encryption(&self) -> Option<&dyn Encryption> {
        self.inner.encryption()
    }

    fn measures(&self) -> Option<&Measures> {
        Some(&self.measures)
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
