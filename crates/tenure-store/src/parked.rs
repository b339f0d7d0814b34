//! Parked claims: a store receives them with the notification that a job may be due, before their worker hears of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use crate::{Answer, Clock, Moment, Reservation, Reserve, Store};

type Send = Box<dyn FnOnce() -> Answer<'static, Reservation> + std::marker::Send>;

/// A claim that waits for the next notification. Dropping it withdraws it.
#[must_use = "a parked claim is withdrawn when it is dropped"]
pub struct ParkedClaim {
    place: Arc<Place>,
}

/// A claim that was parked, and is now sent.
pub struct SentClaim {
    /// When it was sent.
    pub sent: Moment,
    /// Number of notifications by then. The answer does not cover later ones.
    pub calls: u64,
    /// The store's answer.
    pub answer: Answer<'static, Reservation>,
}

/// The place of a parked claim, for the notifications of a store.
pub struct Place {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

enum State {
    Parked(Send),
    Sent(SentClaim),
    Withdrawn,
}

/// Parks a claim with a store, or with a wrapper around one, until the next notification that a job may be due.
pub fn park(store: &Arc<dyn Store>, ask: Reserve) -> ParkedClaim {
    let claimant = Arc::clone(store);
    park_at(store, move || started(Box::pin(async move { claimant.reserve(ask).await })))
}

fn park_at(
    store: &Arc<dyn Store>,
    send: impl FnOnce() -> Answer<'static, Reservation> + std::marker::Send + 'static,
) -> ParkedClaim {
    let place = Arc::new(Place { clock: store.clock(), state: Mutex::new(State::Parked(Box::new(send))) });
    store.hints().park(Arc::downgrade(&place));
    ParkedClaim { place }
}

/// Starts a call without waiting for it: the first poll hands it to the store.
fn started(mut answer: Answer<'static, Reservation>) -> Answer<'static, Reservation> {
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
        Poll::Pending => answer,
    }
}

impl Place {
    /// Sends the claim, unless it was withdrawn. A notification sends a place once, so the call may notify others under
    /// this lock.
    pub(crate) fn send(&self, calls: u64) {
        let mut state = self.lock();
        *state = match std::mem::replace(&mut *state, State::Withdrawn) {
            State::Parked(send) => {
                let sent = self.clock.moment();
                State::Sent(SentClaim { sent, calls, answer: send() })
            }
            other @ (State::Sent(_) | State::Withdrawn) => other,
        };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParkedClaim {
    /// Takes the claim back. Returns it if it was sent by then.
    #[must_use]
    pub fn take_back(self) -> Option<SentClaim> {
        match std::mem::replace(&mut *self.place.lock(), State::Withdrawn) {
            State::Sent(sent) => Some(sent),
            State::Parked(_) | State::Withdrawn => None,
        }
    }
}

impl Drop for ParkedClaim {
    fn drop(&mut self) {
        *self.place.lock() = State::Withdrawn;
    }
}

impl fmt::Debug for ParkedClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParkedClaim")
    }
}

impl fmt::Debug for SentClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentClaim")
            .field("sent", &self.sent)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

/// Places of parked claims, until the next notification.
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<Vec<Weak<Place>>>);

impl Parked {
    pub(crate) fn add(&self, place: Weak<Place>) {
        let mut places = self.lock();
        places.retain(|place| place.strong_count() > 0);
        places.push(place);
    }

    /// Sends all claims.
    pub(crate) fn send(&self, calls: impl FnOnce() -> u64) {
        let places = std::mem::take(&mut *self.lock());
        if !places.is_empty() {
            let calls = calls();
            places.iter().filter_map(Weak::upgrade).for_each(|place| place.send(calls));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{ManualClock, MemoryStore};

    fn store() -> (ManualClock, Arc<MemoryStore>, Arc<dyn Store>) {
        let clock = ManualClock::new();
        let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        (clock, Arc::clone(&memory), memory)
    }

    fn parked(store: &Arc<dyn Store>) -> ParkedClaim {
        park_at(store, || Box::pin(std::future::ready(Ok(Reservation::default()))))
    }

    #[tokio::test]
    async fn the_next_notification_sends_it_and_no_other() {
        let (clock, memory, store) = store();
        memory.bulletin().call_due();
        let claim = parked(&store);
        clock.advance(Duration::from_secs(1));
        let sent = clock.moment();
        memory.bulletin().call_due();
        clock.advance(Duration::from_secs(1));
        memory.bulletin().call_due();
        let claim = claim.take_back().unwrap();
        assert_eq!((claim.sent, claim.calls), (sent, 2));
        assert_eq!(claim.answer.await, Ok(Reservation::default()));
        assert_eq!(*store.due().borrow(), 3);
    }

    #[test]
    fn a_claim_that_is_taken_back_or_dropped_is_not_sent() {
        let (_, memory, store) = store();
        assert!(parked(&store).take_back().is_none());
        let place = {
            let claim = parked(&store);
            Arc::clone(&claim.place)
        };
        memory.bulletin().call_due();
        place.send(2);
        assert!(matches!(*place.lock(), State::Withdrawn));
    }
}
