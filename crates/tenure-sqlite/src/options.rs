//! What a user may choose about a file.

use std::time::Duration;

/// Options of a SQLite store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What survives a power failure.
    pub durability: Durability,
    /// Number of reading connections, each with its own thread; 0 counts as 1.
    pub readers: usize,
    /// How long to wait for another process that is writing to the file.
    pub busy_timeout: Duration,
    /// Makes a commit take at least this long, to simulate a slow disk in benchmarks and tests.
    pub commit_takes_at_least: Option<Duration>,
    /// Opens even a read-only file, for reading; every write is refused.
    pub looks_if_it_may_not_write: bool,
}

/// What survives a power failure. A killed process loses nothing in either mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Everything that was acknowledged: each commit waits for the disk.
    #[default]
    Full,
    /// Everything except the last moments; the file stays intact.
    Normal,
}

impl Default for Options {
    /// Full durability, four readers, five seconds of patience, the disk's own pace.
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            commit_takes_at_least: None,
            looks_if_it_may_not_write: false,
        }
    }
}

impl Durability {
    pub(crate) fn synchronous(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}
