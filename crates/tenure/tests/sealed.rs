//! A store that encrypts is a store.

// A test that unwraps fails where it stands; there is nobody to hand an error to.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tenure::{Durability, Keyring, SealedStore, SqliteOptions, SqliteStore};
use tenure_conformance::{Maker, Making};
use tenure_store::{Clock, Store};

const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

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
        let options =
            SqliteOptions { durability: Durability::Normal, readers: 1, ..SqliteOptions::default() };
        Box::pin(async move {
            let store = SqliteStore::open(file, options, clock).unwrap();
            Arc::new(SealedStore::new(store, Keyring::parse(KEYS).unwrap())) as Arc<dyn Store>
        })
    }

    /// The store beneath goes through many; a few show that encryption changes nothing.
    fn histories(&self) -> u64 {
        30
    }
}

fn main() -> std::process::ExitCode {
    let directory = tempfile::tempdir().unwrap();
    tenure_conformance::run(Files { directory, made: AtomicUsize::new(0) })
}
