//! Enqueueing one job, fluently.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use tenure_core::{JobId, Retention, RetryPolicy, Terms, Timestamp};
use tenure_store::Accepted;

use crate::{Draft, Error, Only, Tenure};

/// A job about to be enqueued: say more about it, then await it.
///
/// What the wait answers is durable. See [`Draft`] for what may be said.
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

    /// Due so long from now, by the store's clock.
    pub fn after(self, delay: Duration) -> Self {
        self.with(|draft| draft.after(delay))
    }

    /// Due at this instant; at once if it has passed.
    pub fn at(self, due: Timestamp) -> Self {
        self.with(|draft| draft.at(due))
    }

    /// Waits in this queue.
    pub fn queue(self, name: &str) -> Self {
        self.with(|draft| draft.queue(name))
    }

    /// Its place among the due jobs of its queue: from −100 (first) to 100 (last).
    pub fn priority(self, number: i64) -> Self {
        self.with(|draft| draft.priority(number))
    }

    /// Tried at most so often.
    pub fn attempts(self, most: u32) -> Self {
        self.with(|draft| draft.attempts(most))
    }

    /// Tried again by this policy.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.with(|draft| draft.retry(policy))
    }

    /// An attempt may take so long.
    pub fn timeout(self, most: Duration) -> Self {
        self.with(|draft| draft.timeout(most))
    }

    /// Kept so long after its end.
    pub fn retain(self, retention: Retention) -> Self {
        self.with(|draft| draft.retain(retention))
    }

    /// A word to find it by.
    pub fn tag(self, tag: &str) -> Self {
        self.with(|draft| draft.tag(tag))
    }

    /// A note that Tenure keeps and does not read.
    pub fn meta(self, key: &str, value: &str) -> Self {
        self.with(|draft| draft.meta(key, value))
    }

    /// Its identity. Enqueueing the same job under the same id again stores nothing more.
    pub fn id(self, id: JobId) -> Self {
        self.with(|draft| draft.id(id))
    }

    /// The only one of its scope.
    pub fn unique(self, only: impl Into<Only>) -> Self {
        self.with(|draft| draft.unique(only))
    }

    /// Runs one at a time with the jobs of this ordering key, in the order in which they were enqueued. While
    /// it waits to be tried again, those behind it wait, too.
    pub fn ordered(self, key: &str) -> Self {
        self.with(|draft| draft.ordered(key))
    }

    /// Runs one at a time with the jobs of this ordering key, in the order in which they were enqueued. While
    /// it waits to be tried again, those behind it go on.
    pub fn ordered_stepping_aside(self, key: &str) -> Self {
        self.with(|draft| draft.ordered_stepping_aside(key))
    }

    /// At most so many jobs of this limit key run at once, over all hosts. What the last job says counts.
    pub fn limited(self, key: &str, most: u32) -> Self {
        self.with(|draft| draft.limited(key, most))
    }

    /// Shares the limit of this key, which others say or [`crate::Limits::set`] has set.
    pub fn limit_key(self, key: &str) -> Self {
        self.with(|draft| draft.limit_key(key))
    }

    /// Takes turns with the jobs of other share keys in its queue, however many each has.
    pub fn share(self, key: &str) -> Self {
        self.with(|draft| draft.share(key))
    }

    /// Runs when all of these jobs have ended, and is cancelled if one of them does not succeed.
    pub fn after_jobs(self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        self.with(|draft| draft.after_jobs(jobs))
    }

    /// Runs even if a job that it waits for fails, is cancelled or is removed.
    pub fn even_if_failed(self) -> Self {
        self.with(Draft::even_if_failed)
    }

    /// All terms at once, in place of those of its kind.
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
