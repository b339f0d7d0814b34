//! The inline form of the store passes the suite that every store has to pass.

// A test that unwraps fails at the right place, and has no caller to return an error to.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure_conformance::{Maker, Making, RARELY};
use tenure_sqlite::SqliteStore;
use tenure_store::{Clock, Steps, Store};

/// Makes each store on a database of its own.
struct InMemory;

impl Maker for InMemory {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        Box::pin(async move { SqliteStore::in_memory(Steps::default(), clock).unwrap() as Arc<dyn Store> })
    }

    /// The transactions are those of a file, which goes through more histories.
    fn histories(&self) -> u64 {
        5
    }

    fn steps_per_look(&self, _seed: u64) -> usize {
        RARELY
    }
}

fn main() -> std::process::ExitCode {
    tenure_conformance::run(InMemory)
}
