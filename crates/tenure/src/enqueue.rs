//! Enqueueing one job, fluently.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use tenure_core::{JobId, Retention, RetryPolicy, Terms, Timestamp};
use tenure_store::Accepted;

use crate::{Draft, Error, Only, Tenure};

/// A job about to be enqueued: set options, then `.await` it.
///
/// The job is durable when the await returns. [`Draft`] describes the options.
#[derive(Debug)]
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Enqueue<'a> {
    tenure: &'a Tenure,
    draft: Draft,
}

impl<'a> Enqueue<'a> {
    pub(crate) fn new(tenure: &'a Tenure, draft: Draft) -> Self {
        Self { tenure, draft }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn into_parts(self) -> (&'a Tenure, Draft) {
        (self.tenure, self.draft)
    }

    fn with(self, change: impl FnOnce(Draft) -> Draft) -> Self {
        Self { tenure: self.tenure, draft: change(self.draft) }
    }

    /// Delays the job, by the store's clock.
    pub fn after(self, delay: Duration) -> Self {
        self.with(|draft| draft.after(delay))
    }

    /// Sets the due time; a time in the past means now.
    pub fn at(self, due: Timestamp) -> Self {
        self.with(|draft| draft.at(due))
    }

    /// Sets the queue.
    pub fn queue(self, name: &str) -> Self {
        self.with(|draft| draft.queue(name))
    }

    /// Sets the priority among the due jobs of its queue: −100 (first) to 100 (last).
    pub fn priority(self, number: i64) -> Self {
        self.with(|draft| draft.priority(number))
    }

    /// Limits the number of attempts; overrides the retry policy.
    pub fn attempts(self, most: u32) -> Self {
        self.with(|draft| draft.attempts(most))
    }

    /// Sets the retry policy.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.with(|draft| draft.retry(policy))
    }

    /// Limits the run time of one attempt.
    pub fn timeout(self, most: Duration) -> Self {
        self.with(|draft| draft.timeout(most))
    }

    /// Sets how long the job is kept after it has ended.
    pub fn retain(self, retention: Retention) -> Self {
        self.with(|draft| draft.retain(retention))
    }

    /// Adds a tag for search.
    pub fn tag(self, tag: &str) -> Self {
        self.with(|draft| draft.tag(tag))
    }

    /// Adds a metadata entry, which Tenure stores and does not interpret.
    pub fn meta(self, key: &str, value: &str) -> Self {
        self.with(|draft| draft.meta(key, value))
    }

    /// Sets the job ID. Enqueueing the same job under the same ID again stores nothing more. An ID of version 8 is
    /// refused, because such IDs are [derived](Self::derived_id).
    pub fn id(self, id: JobId) -> Self {
        self.with(|draft| draft.id(id))
    }

    /// Sets a job ID that the program [derives](JobId::derived), such as the ID of a child job from that of its parent.
    /// Clients cannot take such IDs, so never pass one that a client sent.
    pub fn derived_id(self, id: JobId) -> Self {
        self.with(|draft| draft.derived_id(id))
    }

    /// Keeps out other jobs of this kind with the same args, until this one has ended.
    pub fn unique(self) -> Self {
        self.with(Draft::unique)
    }

    /// Keeps out other jobs of this kind with the same key, until this one has ended. A constant key keeps out all
    /// other jobs that use it, so include the value that makes the job unique.
    pub fn unique_key(self, key: impl Into<String>) -> Self {
        self.with(|draft| draft.unique_key(key))
    }

    /// Makes the job unique within a scope.
    pub fn unique_by(self, only: Only) -> Self {
        self.with(|draft| draft.unique_by(only))
    }

    /// Runs one job of this ordering key at a time, in the order of enqueueing. A job that waits for a retry holds up
    /// those behind it.
    pub fn ordered(self, key: &str) -> Self {
        self.with(|draft| draft.ordered(key))
    }

    /// Runs one job of this ordering key at a time, in the order of enqueueing. A job that waits for a retry lets
    /// those behind it pass.
    pub fn ordered_stepping_aside(self, key: &str) -> Self {
        self.with(|draft| draft.ordered_stepping_aside(key))
    }

    /// Limits the number of running jobs with this limit key, across all hosts. The number given with the latest job
    /// counts.
    pub fn limited(self, key: &str, most: u32) -> Self {
        self.with(|draft| draft.limited(key, most))
    }

    /// Shares the limit of this key, which other jobs or [`crate::Limits::set`] define.
    pub fn limit_key(self, key: &str) -> Self {
        self.with(|draft| draft.limit_key(key))
    }

    /// Takes turns with jobs of other share keys in the same queue, however many each key has. Use it for fairness
    /// between tenants.
    pub fn share(self, key: &str) -> Self {
        self.with(|draft| draft.share(key))
    }

    /// Runs after all of these jobs have ended, and is cancelled if one of them does not succeed.
    pub fn after_jobs(self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        self.with(|draft| draft.after_jobs(jobs))
    }

    /// Runs even if a job that it depends on fails, is cancelled or is deleted.
    pub fn even_if_failed(self) -> Self {
        self.with(Draft::even_if_failed)
    }

    /// Replaces all terms of the kind.
    pub fn terms(self, terms: Terms) -> Self {
        self.with(|draft| draft.terms(terms))
    }
}

impl<'a> IntoFuture for Enqueue<'a> {
    type Output = Result<Accepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.tenure.enqueue_one(self.draft))
    }
}
