//! What a writer was told to be.

use std::time::Duration;

use tenure_core::{Backoff, Invalid, RetryPolicy, Ttl, limits};

/// The policy for a message that has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtLast {
    /// Parks the message: its job has failed and stays for inspection; the next message follows.
    #[default]
    Park,
    /// Pauses the mailbox and keeps the message first, so that nothing is written out of order until the mailbox is
    /// [resumed](crate::Mailbox::resume).
    Pause,
}

/// A writer: its name and its options.
///
/// ```
/// use std::time::Duration;
/// use tenure::{AtLast, Writer};
///
/// let one_by_one = Writer::new("ledger");
/// let in_batches = Writer::new("ledger").batch(500).at_last(AtLast::Pause);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Writer {
    pub(crate) name: String,
    pub(crate) batch: usize,
    pub(crate) retry: RetryPolicy,
    pub(crate) at_last: AtLast,
    pub(crate) lease: Option<Duration>,
}

impl Writer {
    /// Creates a writer of this name, which writes messages one by one.
    pub fn new(name: &str) -> Self {
        let backoff =
            Backoff::Exponential { first: Duration::from_secs(1), ceiling: Duration::from_secs(60) };
        let retry = RetryPolicy { backoff, max_attempts: 10, ..RetryPolicy::default() };
        Self { name: name.to_owned(), batch: 1, retry, at_last: AtLast::default(), lease: None }
    }

    /// Writes up to this many messages at once, 1 to 1,000. If a batch fails, its messages are written one by one to
    /// find the one that fails.
    pub fn batch(mut self, most: usize) -> Self {
        self.batch = most;
        self
    }

    /// Sets the retry policy of a failed message; it is retried in place, before those behind it. Default: ten
    /// attempts in about four minutes.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the policy for a message that has failed for good.
    pub fn at_last(mut self, at_last: AtLast) -> Self {
        self.at_last = at_last;
        self
    }

    /// Sets the lease duration; default: the lease duration of the worker. When the writer's host dies, the next one
    /// takes over after the longer of the two.
    pub fn lease(mut self, ttl: Duration) -> Self {
        self.lease = Some(ttl);
        self
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if !(1..=limits::RESERVE_JOBS).contains(&self.batch) {
            let allowed = format!("1 to {}", limits::RESERVE_JOBS);
            return Err(Invalid::new("writer.batch", self.batch, allowed));
        }
        if let Some(lease) = self.lease {
            Ttl::new(lease).map_err(|wrong| Invalid { field: "writer.lease".to_owned(), ..wrong })?;
        }
        self.retry.check()
    }
}
