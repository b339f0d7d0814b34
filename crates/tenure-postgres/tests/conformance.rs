//! The store passes the suite that every store has to pass.

// A test that unwraps fails where it stands; there is nobody to hand an error to.
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::conformance::{self, Maker, Making};
use tenure_store::{Clock, Store};

/// So many stores are looked at behind the suite's back when it has passed: one of so many.
const LOOKED_AT: usize = 32;

/// Makes each store in a schema of its own; the server goes with the process.
#[derive(Clone)]
struct Schemas {
    server: Arc<Server>,
    made: Arc<AtomicUsize>,
}

impl Maker for Schemas {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        let mut options = Options::default();
        options.schema = format!("store_{}", self.made.fetch_add(1, Ordering::Relaxed));
        options.readers = 1;
        Box::pin(async move {
            PostgresStore::open(&self.server.url(), options, Some(clock)).await.unwrap() as Arc<dyn Store>
        })
    }
}

fn main() -> ExitCode {
    // The suite asks what is kept, not what a loss of power leaves: it need not wait for the disk.
    let schemas = Schemas { server: Arc::new(Server::start_hasty().unwrap()), made: Arc::default() };
    let ended = conformance::run(schemas.clone());
    if ended == ExitCode::SUCCESS && !nothing_is_wrong(&schemas) {
        return ExitCode::FAILURE;
    }
    ended
}

/// Whatever was done to a store, nothing is in its tables that must never be.
fn nothing_is_wrong(schemas: &Schemas) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut wrong = 0;
        for number in (0..schemas.made.load(Ordering::Relaxed)).step_by(LOOKED_AT) {
            let mut options = Options::default();
            options.schema = format!("store_{number}");
            let findings = tenure_postgres::check(&schemas.server.url(), options).await.unwrap();
            findings.iter().for_each(|found| eprintln!("store_{number}: {}: {}", found.about, found.what));
            wrong += findings.len();
        }
        wrong == 0
    })
}
