//! The store passes the suite that every store has to pass.

// A test that unwraps fails where it stands; there is nobody to hand an error to.
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::conformance::{self, Maker, Making};
use tenure_store::{Clock, Store};

/// Makes each store in a schema of its own; the server goes with the process.
struct Schemas {
    server: Server,
    made: AtomicUsize,
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

fn main() -> std::process::ExitCode {
    // The suite asks what is kept, not what a loss of power leaves: it need not wait for the disk.
    let server = Server::start_hasty().unwrap();
    conformance::run(Schemas { server, made: AtomicUsize::new(0) })
}
