//! The store passes the suite that every store has to pass.

// A test that unwraps fails at the right place, and has no caller to return an error to.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tenure_conformance::{Maker, Making, RARELY};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{Clock, Store};

/// One random history in so many is looked at after each step.
const CLOSE_LOOKS: u64 = 20;

/// Makes each store on a file of its own; the directory goes with the process.
struct Files {
    directory: TempDir,
    made: AtomicUsize,
}

impl Files {
    fn next(&self) -> PathBuf {
        self.directory.path().join(format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Maker for Files {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        let file = self.next();
        // The suite asks what is kept, not what a loss of power leaves: it need not wait for the disk.
        let options = Options { durability: Durability::Normal, readers: 1, ..Options::default() };
        Box::pin(async move { SqliteStore::open(file, options, clock).unwrap() as Arc<dyn Store> })
    }

    fn histories(&self) -> u64 {
        40
    }

    fn steps_per_look(&self, seed: u64) -> usize {
        if seed.is_multiple_of(CLOSE_LOOKS) { 1 } else { RARELY }
    }
}

fn main() -> std::process::ExitCode {
    let directory = tempfile::tempdir().unwrap();
    tenure_conformance::run(Files { directory, made: AtomicUsize::new(0) })
}
