//! The notifications of a store, for its listeners.

use std::sync::{Arc, Weak};

use tenure_store::{Bulletin, Event, Hints, ParkingPlace, Signal};
use tokio::sync::{broadcast, watch};

use crate::memory::Memory;

/// Notifies of what this program writes, and of other programs from the first listener on.
pub(crate) struct Listening(pub Arc<Memory>);

impl Listening {
    fn hear<T>(&self, listen: impl FnOnce(&Bulletin) -> T) -> T {
        // Subscribe first: all listeners are notified once when LISTEN begins.
        let listening = listen(&self.0.bulletin);
        self.0.wanted.ring();
        listening
    }
}

impl Hints for Listening {
    fn signal(&self, signal: Signal) -> watch::Receiver<u64> {
        self.hear(|bulletin| bulletin.signal(signal))
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.hear(Bulletin::events)
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.hear(Bulletin::others)
    }

    fn park(&self, place: Weak<ParkingPlace>) {
        self.hear(|bulletin| bulletin.park(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_subscribes_before_other_programs_are_heard() {
        let listening = Listening(Arc::new(Memory::default()));
        assert!(!listening.hear(|_| listening.0.wanted.is_rung()), "or it would miss the first notification");
        assert!(listening.0.wanted.is_rung());
    }
}
