//! Asks that are left with a store: they are put by the next call that something may be due.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Answer, Clock, Moment, Reservation};

/// Puts an ask to a store without waiting. It may be called wherever something is called out: it does no more than to hand
/// the ask on.
type Put = Box<dyn FnOnce() -> Answer<'static, Reservation> + Send>;
type Watch = Box<dyn FnOnce(Moment, Answer<'static, Reservation>) -> Answer<'static, Reservation> + Send>;

/// An ask that is left with a store, see [`Jobs::leave`](crate::Jobs::leave). Dropping it takes it back.
#[must_use = "a request is withdrawn when it is dropped"]
pub struct LeftAsk {
    place: Arc<Place>,
    watch: Option<Watch>,
}

/// A left ask that was put.
pub struct PutAsk {
    /// When.
    pub sent: Moment,
    /// How often it had been said by then that something may be due. What was said of later is not in the answer.
    pub calls: u64,
    /// What the store answers.
    pub answer: Answer<'static, Reservation>,
}

/// Where an ask waits for being put.
pub(crate) struct Place {
    clock: Arc<dyn Clock>,
    is: Mutex<Is>,
}

enum Is {
    Waiting(Put),
    Put(PutAsk),
    Gone,
}

impl Place {
    pub(crate) fn new(clock: Arc<dyn Clock>, put: Put) -> Arc<Self> {
        Arc::new(Self { clock, is: Mutex::new(Is::Waiting(put)) })
    }

    /// Puts the ask, unless it was taken back.
    pub(crate) fn put(&self, calls: u64) {
        let mut is = self.lock();
        *is = match std::mem::replace(&mut *is, Is::Gone) {
            Is::Waiting(put) => {
                let sent = self.clock.moment();
                Is::Put(PutAsk { sent, calls, answer: put() })
            }
            other @ (Is::Put(_) | Is::Gone) => other,
        };
    }

    fn lock(&self) -> MutexGuard<'_, Is> {
        self.is.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeftAsk {
    pub(crate) fn at(place: Arc<Place>) -> Self {
        Self { place, watch: None }
    }

    /// Passes the answer through `watch`, after any earlier watch: each wrapper around a store adds its own.
    pub fn watched(
        mut self,
        watch: impl FnOnce(Moment, Answer<'static, Reservation>) -> Answer<'static, Reservation> + Send + 'static,
    ) -> Self {
        let inner = self.watch.take();
        self.watch = Some(Box::new(move |sent, answer| match inner {
            Some(inner) => watch(sent, inner(sent, answer)),
            None => watch(sent, answer),
        }));
        self
    }

    /// Takes it back; what was put by then is answered.
    #[must_use]
    pub fn take_back(mut self) -> Option<PutAsk> {
        let Is::Put(put) = std::mem::replace(&mut *self.place.lock(), Is::Gone) else { return None };
        let answer = match self.watch.take() {
            Some(watch) => watch(put.sent, put.answer),
            None => put.answer,
        };
        Some(PutAsk { answer, ..put })
    }
}

impl Drop for LeftAsk {
    fn drop(&mut self) {
        *self.place.lock() = Is::Gone;
    }
}

impl fmt::Debug for LeftAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeftAsk")
    }
}

impl fmt::Debug for PutAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutAsk").field("sent", &self.sent).field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Bulletin, ManualClock};

    fn leave(bulletin: &Bulletin, clock: &Arc<ManualClock>) -> LeftAsk {
        let answer = || Box::pin(std::future::ready(Ok(Reservation::default()))) as Answer<'static, _>;
        bulletin.leave(Arc::clone(clock) as Arc<dyn Clock>, answer)
    }

    #[tokio::test]
    async fn it_is_put_by_the_next_call_and_by_no_other() {
        let (bulletin, clock) = (Bulletin::default(), Arc::new(ManualClock::new()));
        bulletin.call_due();
        let left = leave(&bulletin, &clock);
        clock.advance(Duration::from_secs(1));
        let sent = clock.moment();
        bulletin.call_due();
        clock.advance(Duration::from_secs(1));
        bulletin.call_due();
        let put = left.take_back().unwrap();
        assert_eq!((put.sent, put.calls), (sent, 2));
        assert_eq!(put.answer.await, Ok(Reservation::default()));
    }

    #[test]
    fn what_is_taken_back_or_dropped_is_not_put() {
        let (bulletin, clock) = (Bulletin::default(), Arc::new(ManualClock::new()));
        assert!(leave(&bulletin, &clock).take_back().is_none());
        let place = {
            let left = leave(&bulletin, &clock);
            Arc::clone(&left.place)
        };
        bulletin.call_due();
        place.put(2);
        assert!(matches!(*place.lock(), Is::Gone));
    }
}
