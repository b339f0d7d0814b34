//! What a user may choose about a file.

use std::time::Duration;

/// How a [`SqliteStore`](crate::SqliteStore) uses its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What survives a loss of power.
    pub durability: Durability,
    /// Connections for reading, each with a thread of its own. Zero counts as one.
    pub readers: usize,
    /// How long to wait for another process that writes to the file.
    pub busy_timeout: Duration,
    /// Makes a fast disk behave like a slow one, for benchmarks and tests: a commit that wrote
    /// something takes at least so long.
    pub commit_takes_at_least: Option<Duration>,
    /// Opens a file that may not be written, too, to look at it; whatever would write is refused.
    pub looks_if_it_may_not_write: bool,
}

/// What survives a loss of power. A killed process loses nothing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// All that was acknowledged: each commit waits for the disk.
    #[default]
    Full,
    /// All but the last moments; the file stays whole.
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
