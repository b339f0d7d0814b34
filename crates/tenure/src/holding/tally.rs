//! What a handle's leases come to, in numbers.

use std::time::Duration;

use serde::Serialize;

/// Statistics about the leases of a handle, since its first lease unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LeaseTally {
    /// Leases held now.
    pub held: usize,
    /// Leases waited for now.
    pub waiting: usize,
    /// Requests to the store.
    pub requests: u64,
    /// Renewed leases, counted each time.
    pub renewals: u64,
    /// Leases whose renewal failed before they were lost.
    pub doubtful: u64,
    /// Lost leases.
    pub lost: u64,
    /// Longest delay of the renewal task, a measure of how close a busy machine came to losing leases.
    pub latest_wake: Duration,
    /// Number of times that the store's clock and this host's clock diverged.
    pub clock_steps: u64,
}
