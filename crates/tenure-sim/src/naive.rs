//! Looks of the naive checker during a run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tenure_conformance::{Checker, Depth, Rows, Since};
use tenure_store::{Fault, Store};

use crate::history::{What, Who};
use crate::world::World;

/// Audits per look. A look costs several times as much as an audit.
const AUDITS_PER_LOOK: u64 = 8;

/// The looks during one run.
#[derive(Default)]
pub(crate) struct Looks {
    checker: Mutex<Checker>,
    audits: AtomicU64,
}

impl World {
    /// Compares the store with its own rows after each so many audits.
    pub(crate) async fn compare_at_times(&self) -> Result<(), Fault> {
        let audits = self.looks.audits.fetch_add(1, Ordering::Relaxed);
        if audits.is_multiple_of(AUDITS_PER_LOOK) { self.compare().await } else { Ok(()) }
    }

    /// Compares the store with its own rows.
    pub(crate) async fn compare(&self) -> Result<(), Fault> {
        let store: &dyn Store = &*self.store;
        let rows = Rows::read(store, Depth::Standings).await?;
        let mut checker = self.looks.checker.lock().unwrap_or_else(PoisonError::into_inner);
        let findings = checker.judge(rows, Since::ManyCalls);
        drop(checker);
        self.book.note(Who::World, What::Compared(findings));
        Ok(())
    }
}
