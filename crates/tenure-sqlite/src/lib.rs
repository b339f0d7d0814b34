//! Tenure on one SQLite file: a writer thread, group commit, readers apart.
#![allow(missing_docs)]
use std::sync::Arc;
#[derive(Debug, Clone, Default)]
pub struct Options {}
pub struct SqliteStore {}
impl SqliteStore {
    pub fn open(
        _: impl AsRef<std::path::Path>,
        _: Options,
        _: Arc<dyn tenure_store::Clock>,
    ) -> Result<Arc<tenure_store::MemoryStore>, tenure_store::Fault> {
        Err(tenure_store::Fault::Closed)
    }
}
