//! The keeper of a handle: started with the first lease, ended with the last handle and holder.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_store::Chance;

use super::client::Client;
use super::keeper::Keeper;
use super::tally::LeaseTally;
use crate::{Error, Tenure};

/// Where a handle finds its keeper.
#[derive(Default)]
pub(crate) struct Keeping {
    on_runtime: AtomicBool,
    client: Mutex<Option<Client>>,
}

impl Keeping {
    /// From now on keepers run on the runtime of whoever takes the first lease.
    pub(crate) fn on_runtime(&self) {
        self.on_runtime.store(true, Ordering::Relaxed);
    }

    /// What the leases come to.
    pub(super) fn tally(&self) -> LeaseTally {
        self.open().map(|client| client.tally()).unwrap_or_default()
    }

    /// Ends all that is held. Resolves when the last of it was given back.
    pub(crate) async fn close(&self) {
        if let Some(client) = self.open() {
            client.close().await;
        }
    }

    fn open(&self) -> Option<Client> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.as_ref().filter(|client| client.is_open()).cloned()
    }

    /// A line to the keeper, which is started if it is not there.
    pub(super) fn client(&self, tenure: &Tenure) -> Result<Client, Error> {
        let mut place = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = place.as_ref().filter(|client| client.is_open()) {
            return Ok(client.clone());
        }
        let (client, line, shared) = Client::pair();
        let chance = Chance::seeded(tenure.chance().bits());
        let keeper = Keeper::new(Arc::clone(tenure.store()), chance, line, shared);
        if self.on_runtime.load(Ordering::Relaxed) {
            tokio::spawn(keeper.keep(false));
        } else {
            start_thread(keeper)?;
        }
        Ok(place.insert(client).clone())
    }
}

fn start_thread(keeper: Keeper) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Settings(format!("cannot start the lease thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
    let keep = move || runtime.block_on(keeper.keep(true));
    std::thread::Builder::new().name("tenure-leases".into()).spawn(keep).map_err(failed)?;
    Ok(())
}
