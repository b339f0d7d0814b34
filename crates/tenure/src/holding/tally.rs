//! What a handle's leases come to, in numbers.

use std::time::Duration;

use serde::Serialize;

/// What the leases of one handle come to. Numbers since it took its first one, unless it says "now".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LeaseTally {
    /// Held now.
    pub held: usize,
    /// Waited for now.
    pub waiting: usize,
    /// Requests to the store.
    pub requests: u64,
    /// Leases that were renewed, each time.
    pub renewals: u64,
    /// Leases of which a renewal failed while nothing was lost yet.
    pub doubtful: u64,
    /// Leases that were lost.
    pub lost: u64,
    /// The longest that the part that renews woke up late: how near a busy machine came to losing leases.
    pub latest_wake: Duration,
    /// Times that the store's clock went otherwise than this host's.
    pub clock_steps: u64,
}
