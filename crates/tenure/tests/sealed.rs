//! A store that encrypts passes the suite of stores. `tests/jobs/sealed.rs` encrypts a file and searches its bytes.

// A failed unwrap fails the test; there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure::{Keyring, MemoryStore, SealedStore};
use tenure_conformance::{Maker, Making, RARELY};
use tenure_store::{Clock, Store};

const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

struct Sealed;

impl Maker for Sealed {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        let store = Arc::new(MemoryStore::new(clock));
        let sealed = SealedStore::new(store, Keyring::parse(KEYS).unwrap());
        Box::pin(async move { Arc::new(sealed) as Arc<dyn Store> })
    }

    fn steps_per_look(&self, _seed: u64) -> usize {
        RARELY
    }

    /// The store in memory goes through more histories.
    fn histories(&self) -> u64 {
        20
    }
}

fn main() -> std::process::ExitCode {
    tenure_conformance::run(Sealed)
}
