//! Requests in a transaction of the caller, on the database of a store.

use std::time::Duration;

use tenure_core::{Fence, HostId, JobId, LeaseId, LeaseName, NewJob, Output};

use crate::{Answer, Enqueued, Fault, Held};

/// A statement that the caller sends: `$1` is a text, `$2` are bytes, and it returns one row with one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The statement.
    pub sql: String,
    /// Its first value.
    pub text: String,
    /// Its second value.
    pub bytes: Vec<u8>,
}

/// A request in a transaction of the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum TxnRequest {
    /// Stores jobs. Those with IDs in `given`, which the caller chose, may exist already.
    Enqueue {
        /// The jobs.
        jobs: Vec<NewJob>,
        /// IDs that the caller chose.
        given: Vec<JobId>,
    },
    /// Ends a running job as succeeded. The store refuses this if the fence is not current or the holder differs.
    Complete {
        /// The job.
        held: Held,
        /// The holder. Only a role with the rights of the store's owner may omit it.
        holder: Option<HostId>,
        /// The time for which it is kept; forever if `None`.
        kept_for: Option<Duration>,
        /// The result.
        output: Option<Output>,
    },
    /// Checks that the lease is held under this ID and fence. Until the transaction ends, the store grants it to no other
    /// holder.
    CheckLease {
        /// The lease.
        name: LeaseName,
        /// The ID of its acquisition.
        id: LeaseId,
        /// Its fence.
        fence: Fence,
    },
    /// Checks that the job runs under this fence. Until the transaction ends, no other worker takes it.
    CheckJob {
        /// The job.
        held: Held,
    },
}

/// A request as the store writes it, from [`Joint::prepare`].
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared(TxnRequest);

impl Prepared {
    /// Marks a request as prepared, in the [`Joint::prepare`] of a store.
    #[must_use]
    pub fn new(request: TxnRequest) -> Self {
        Self(request)
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &TxnRequest {
        &self.0
    }
}

/// Takes part in transactions of the caller. A request takes effect when its transaction commits.
pub trait Joint: Send + Sync {
    /// Writes the rows that other programs need as well, and returns the request as the store writes it. Runs outside of
    /// the transaction, which would otherwise block those programs.
    fn prepare(&self, request: TxnRequest) -> Answer<'_, Prepared>;

    /// Returns the statement of a request.
    ///
    /// # Errors
    /// A job or a result that cannot be written.
    fn statement(&self, prepared: &Prepared) -> Result<Call, Fault>;

    /// Returns the outcome of a request, given the answer to its statement: an empty [`Enqueued::Stored`] for a request
    /// that stores no jobs. The store notifies hosts when the transaction has committed.
    ///
    /// # Errors
    /// An answer of another version.
    fn answered(&self, prepared: &Prepared, answer: &str) -> Result<Enqueued, Fault>;
}
