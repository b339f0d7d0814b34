//! Encryption at rest: a wrapper around any store that encrypts the values of jobs on their way in and decrypts them on
//! their way out. See decision 0079.

mod calls;
mod claims;
mod envelope;
mod events;
#[cfg(test)]
mod fuzz;
mod keyring;
mod mark;
mod rotation;
mod search;
mod transactions;
mod vault;

use std::fmt;
use std::sync::{Arc, Weak};

use tenure_store::{
    About, Answer, Clock, Event, Extras, Fault, Hints, Joint, ParkingPlace, Reply, Request, Signal, Store,
};
use tokio::sync::{broadcast, watch};

use events::Events;
pub use keyring::Keyring;
pub(crate) use mark::check as check_mark;
use vault::Vault;

/// A store whose args, results and logs are encrypted at rest.
///
/// With an empty keyring it encrypts nothing, and still recognizes encrypted values: their jobs are not run.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    vault: Vault,
    heard: Heard,
}

impl SealedStore {
    /// Encrypts values of this store with the keys of a keyring. Call it within a Tokio runtime: a task decrypts events.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, keys: Keyring) -> Self {
        let vault = Vault { keys };
        let pass_on = || Events::pass_on(inner.events(), inner.events(), vault.clone());
        let events = vault.seals().then(pass_on);
        let heard = Heard { inner: Arc::clone(&inner), events };
        Self { inner, vault, heard }
    }

    /// Waits for a call that may change something, and forwards its events before its answer.
    async fn told<T>(&self, call: Answer<'_, T>) -> Result<T, Fault> {
        let answer = call.await;
        if let Some(events) = &self.heard.events {
            events.forward();
        }
        answer
    }
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedStore({})", self.inner.about().place)
    }
}

/// The notifications of the inner store, with decrypted events.
struct Heard {
    inner: Arc<dyn Store>,
    events: Option<Arc<Events>>,
}

impl Hints for Heard {
    fn signal(&self, signal: Signal) -> watch::Receiver<u64> {
        self.inner.signal(signal)
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.as_ref().map_or_else(|| self.inner.events(), |events| events.subscribe())
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.inner.others()
    }

    fn park(&self, place: Weak<ParkingPlace>) {
        self.inner.park(place);
    }
}

impl Store for SealedStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        self.perform(request)
    }

    fn hints(&self) -> &dyn Hints {
        &self.heard
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn about(&self) -> About {
        self.inner.about()
    }

    fn extras(&self) -> Extras<'_> {
        let inner = self.inner.extras();
        Extras { joint: inner.joint.map(|_| self as &dyn Joint), encryption: Some(self), ..inner }
    }

    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}
