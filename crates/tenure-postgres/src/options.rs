//! What can be chosen.

use std::time::Duration;

/// How a store uses its database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The schema that its tables are in. It is created if it is not there.
    pub schema: String,
    /// For how long a call waits for the server. After that its connection is given up and the call faults. A call about
    /// leases waits for three tenths of it, so that a holder learns early enough that it is to try again.
    pub patience: Duration,
    /// For how long connecting may take.
    pub connecting: Duration,
    /// Connections that only read, beside those that a program needs for its work. Zero counts as one.
    pub readers: usize,
    /// As what this program is seen on the server, unless its URL says it.
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
