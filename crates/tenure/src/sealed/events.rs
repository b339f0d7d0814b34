//! Decrypted events.

use std::sync::{Arc, Mutex, PoisonError};

use tenure_store::Event;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::vault::Vault;

/// Events by which a slow listener may fall behind before it misses some.
const KEPT: usize = 4096;

/// Passes the events of a store on, decrypted and in their order.
pub(super) struct Events {
    stored: Mutex<Receiver<Arc<Event>>>,
    opened: Sender<Arc<Event>>,
    vault: Vault,
}

impl Events {
    /// Passes events on until the store is gone. `calls` is a second subscription, which tells when there are some.
    pub(super) fn pass_on(
        stored: Receiver<Arc<Event>>,
        mut calls: Receiver<Arc<Event>>,
        vault: Vault,
    ) -> Arc<Self> {
        let events = Arc::new(Self { stored: Mutex::new(stored), opened: Sender::new(KEPT), vault });
        let passing = Arc::clone(&events);
        tokio::spawn(async move {
            while !matches!(calls.recv().await, Err(RecvError::Closed)) {
                passing.forward();
            }
        });
        events
    }

    /// Forwards all events so far. A call that changes something does this before it answers.
    pub(super) fn forward(&self) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match stored.try_recv() {
                // An event without listeners is no error.
                Ok(event) => drop(self.opened.send(self.vault.open_event(&event).into())),
                Err(TryRecvError::Lagged(missed)) => {
                    tracing::debug!(missed, "events were not decrypted in time")
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Subscribes to what happens from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.forward();
        self.opened.subscribe()
    }
}
