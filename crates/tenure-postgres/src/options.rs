//! What can be chosen.

use std::time::Duration;

/// Options of a PostgreSQL store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Schema of the tables; created if it does not exist.
    pub schema: String,
    /// How long a call waits for the server. After that its connection is closed and the call fails. Lease calls wait
    /// 30 % of it, so that a holder learns early enough to retry.
    pub patience: Duration,
    /// How long connecting may take.
    pub connecting: Duration,
    /// Number of read-only connections, besides those needed for writing; 0 counts as 1.
    pub readers: usize,
    /// Application name shown on the server, unless the URL sets one.
    pub application_name: String,
}

impl Default for Options {
    /// The schema `tenure`, ten seconds for a call and five for connecting, two readers, seen as `tenure`.
    fn default() -> Self {
        Self {
            schema: "tenure".to_owned(),
            patience: Duration::from_secs(10),
            connecting: Duration::from_secs(5),
            readers: 2,
            application_name: "tenure".to_owned(),
        }
    }
}
