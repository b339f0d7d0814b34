//! The stores that a simulation can run on.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tenure_sqlite::SqliteStore;
use tenure_store::{Clock, Fault, MemoryStore, Steps, Store};

/// A store that runs in its caller's turn and follows an injected clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// The store in memory.
    #[default]
    Memory,
    /// The SQLite store on a database in memory.
    Sqlite,
}

impl StoreKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Sqlite];

    /// Opens an empty store.
    pub(crate) fn open(self, clock: Arc<dyn Clock>) -> Result<Opened, Fault> {
        Ok(match self {
            Self::Memory => Opened::Memory(Arc::new(MemoryStore::following(clock))),
            Self::Sqlite => Opened::Sqlite(SqliteStore::in_memory(Steps::blind(), clock)?),
        })
    }
}

/// An open store.
pub(crate) enum Opened {
    Memory(Arc<MemoryStore>),
    Sqlite(Arc<SqliteStore>),
}

impl Opened {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Sqlite(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// Returns the contradictions between rows. The memory store keeps no row twice.
    pub(crate) async fn contradictions(&self) -> Result<Vec<String>, Fault> {
        let Self::Sqlite(store) = self else { return Ok(Vec::new()) };
        Ok(store.contradictions().await?.into_iter().map(|finding| finding.what).collect())
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        })
    }
}

impl FromStr for StoreKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.to_string() == name);
        known.ok_or_else(|| format!("unknown store `{name}`; expected memory or sqlite"))
    }
}
