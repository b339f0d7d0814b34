//! The memory store is a store.

use std::sync::Arc;

use tenure_conformance::{Maker, Making};
use tenure_store::{Clock, MemoryStore, Store};

struct Memory;

impl Maker for Memory {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        Box::pin(async move { Arc::new(MemoryStore::new(clock)) as Arc<dyn Store> })
    }
}

fn main() -> std::process::ExitCode {
    tenure_conformance::run(Memory)
}
