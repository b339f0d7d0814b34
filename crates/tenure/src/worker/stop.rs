//! How a worker ended.

use serde::Serialize;

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stopped {
    /// Attempts that were settled over its life, those given back included.
    pub settled: u64,
    /// Settlements that were refused because the job was not this worker's any more.
    pub fenced: u64,
    /// Blocking handlers that did not stop when told.
    pub deaf: u64,
    /// Attempts that could not be settled before the worker had to end; their leases lapse and the
    /// jobs run again elsewhere.
    pub unsettled: usize,
    /// Whether it was told to end through the store ([`WorkerCommand::Terminate`](crate::WorkerCommand::Terminate)), whoever
    /// else may have told it so as well.
    pub told: bool,
}
