//! The measured store: a wrapper around any store that changes nothing, and measures how long each call takes and how it
//! ends. See decision 0042.

mod histogram;
mod measures;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use crate::{About, Answer, Clock, Extras, Hints, Reply, Request, Store};
pub use histogram::Histogram;
use measures::Watched;
pub use measures::{CallMeasure, ClaimMeasure, LeaseMeasure, Measures};

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
/// let calls = store.extras().measures.unwrap().calls();
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

impl fmt::Debug for MeasuredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeasuredStore({})", self.inner.about().place)
    }
}

impl Store for MeasuredStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        let (operation, watched) = (request.operation(), Watched::of(&request));
        Box::pin(async move {
            let began = self.clock.moment();
            let reply = self.inner.call(request).await;
            let took = self.clock.moment().since(began);
            self.measures.called(operation, took, reply.as_ref().err());
            if let Ok(reply) = &reply {
                watched.tell(&self.measures, reply, took);
            }
            reply
        })
    }

    fn hints(&self) -> &dyn Hints {
        self.inner.hints()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn about(&self) -> About {
        self.inner.about()
    }

    fn extras(&self) -> Extras<'_> {
        Extras { measures: Some(&self.measures), ..self.inner.extras() }
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
