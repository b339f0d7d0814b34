//! What can be said in a transaction of a user's own on the database of a store.

use std::time::Duration;

use tenure_core::{Fence, HostId, JobId, LeaseId, LeaseName, NewJob, Output};

use crate::{Answer, Enqueued, Fault, Held};

/// A statement that somebody else sends: `$1` is a text, `$2` are bytes, and it answers one row with one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The statement.
    pub sql: String,
    /// Its first value.
    pub text: String,
    /// Its second value.
    pub bytes: Vec<u8>,
}

/// Jobs as the store writes them, from [`Joint::prepare`].
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared(Vec<NewJob>);

impl Prepared {
    /// Marks jobs as prepared. Only a store can tell that they are.
    #[must_use]
    pub fn new(jobs: Vec<NewJob>) -> Self {
        Self(jobs)
    }

    /// Returns the jobs.
    #[must_use]
    pub fn jobs(&self) -> &[NewJob] {
        &self.0
    }
}

/// How a transaction of a user's own takes part in a store. What it says lives or dies with that transaction.
pub trait Joint: Send + Sync {
    /// Creates rows that many jobs share, and returns the jobs as the store writes them. Runs outside of the transaction, which
    /// would otherwise block other programs. Jobs with IDs in `given`, which the caller chose, may exist already.
    fn prepare(&self, jobs: Vec<NewJob>, given: Vec<JobId>) -> Answer<'_, Prepared>;

    /// Stores jobs.
    ///
    /// # Errors
    /// A job that cannot be written.
    fn enqueue(&self, jobs: &Prepared) -> Result<Call, Fault>;

    /// What the answer to [`enqueue`](Self::enqueue) says about these jobs. Others hear of them when the transaction has
    /// committed.
    ///
    /// # Errors
    /// An answer of another version.
    fn enqueued(&self, jobs: &Prepared, answer: &str) -> Result<Enqueued, Fault>;

    /// Makes what the end of this running job touches its own, outside of the transaction: others of whom the same is told
    /// need not wait for that. Whether it is held is said by [`complete`](Self::complete).
    fn prepare_end<'a>(&'a self, held: &'a Held) -> Answer<'a, ()>;

    /// Ends a running job, which has succeeded; refused if the fence is not current, or the holder is another one. A caller
    /// without the rights of the store's owner has to pass the holder. The job is kept for so long, for good if that is `None`.
    ///
    /// # Errors
    /// A result that cannot be written.
    fn complete(
        &self,
        held: &Held,
        holder: Option<HostId>,
        kept_for: Option<Duration>,
        output: Option<&Output>,
    ) -> Result<Call, Fault>;

    /// Takes note of the answer to [`complete`](Self::complete): whoever has waited for that end hears of it when the transaction has
    /// committed.
    fn completed(&self, answer: &str);

    /// Refused if the lease is not held under this id and fence; nobody else is granted it before the transaction ends.
    ///
    /// # Errors
    /// A store without transactions.
    fn check_lease(&self, name: &LeaseName, id: LeaseId, fence: Fence) -> Result<Call, Fault>;

    /// Refused if the job does not run under this fence; nobody else takes it before the transaction ends.
    ///
    /// # Errors
    /// A store without transactions.
    fn check_job(&self, held: &Held) -> Result<Call, Fault>;
}
