//! How a worker ended.

use serde::Serialize;

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stopped {
    /// Attempts settled over its life, including released ones.
    pub settled: u64,
    /// Results rejected because the worker had lost the job.
    pub fenced: u64,
    /// Blocking handlers that did not stop in time.
    pub deaf: u64,
    /// Attempts that could not be settled before the end; their leases expire and the jobs run again elsewhere.
    pub unsettled: usize,
    /// `true` if a command through the store ([`WorkerCommand::Terminate`](crate::WorkerCommand::Terminate)) told it
    /// to stop.
    pub told: bool,
}
