//! A store that is measured is a store.

use std::sync::Arc;

use tenure_conformance::{Maker, Making};
use tenure_store::{Clock, MeasuredStore, MemoryStore, Store};

struct Measured;

impl Maker for Measured {
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
        Box::pin(
            async move { Arc::new(MeasuredStore::new(Arc::new(MemoryStore::new(clock)))) as Arc<dyn Store> },
        )
    }

    /// The calls are those of the store in memory, which goes through more histories.
    fn histories(&self) -> u64 {
        5
    }
}

fn main() -> std::process::ExitCode {
    tenure_conformance::run(Measured)
}
