//! The store passes the suite that every store has to pass.
//!
//! It goes through fewer histories than others: `TENURE_HISTORIES=5000 cargo test -p tenure-postgres --test conformance --
//! histories` has it go through five thousand of each sort.

// A test that unwraps fails where it stands; there is nobody to hand an error to.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands"
)]

mod reused;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_conformance::{Maker, Making, RARELY};
use tenure_store::{Clock, Hints, Store};

use crate::reused::Schemas;

/// How many histories of each sort, if nobody says.
const HISTORIES: u64 = 5;
/// What is slow is not wrong, but a call that never comes is.
const PATIENCE: Duration = Duration::from_secs(120);

struct OnPostgres(Arc<Schemas>);

impl Maker for OnPostgres {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        Box::pin(async move {
            let store = self.0.store(clock).await;
            // Whoever begins to listen is called, since he may have missed something; the suite counts calls from there. This is
            // the last of them.
            let mut freed = store.freed();
            tokio::time::timeout(PATIENCE, freed.changed())
                .await
                .expect("who begins to listen is called")
                .unwrap();
            store as Arc<dyn Store>
        })
    }

    fn histories(&self) -> u64 {
        HISTORIES
    }

    fn steps_per_look(&self, _seed: u64) -> usize {
        RARELY
    }
}

fn main() -> ExitCode {
    // The suite asks what is kept, not what a loss of power leaves: it need not wait for the disk.
    let schemas = Arc::new(Schemas::new(Server::start_hasty().unwrap()));
    let ended = tenure_conformance::run(OnPostgres(Arc::clone(&schemas)));
    if ended == ExitCode::SUCCESS && !schemas.nothing_is_wrong() {
        return ExitCode::FAILURE;
    }
    ended
}
