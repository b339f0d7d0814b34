//! What a writer was told to be.

use std::time::Duration;

use tenure_core::{Backoff, Invalid, RetryPolicy, Ttl, limits};

/// What becomes of a message that was tried as often as it may be, or that no try will help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtLast {
    /// It is parked: its job has failed and stands there for a person to look at; the next one comes.
    #[default]
    Park,
    /// The mailbox is paused and the message stays its first one: nothing is written out of order, and
    /// nothing at all, until a person [resumes](crate::Mailbox::resume) it.
    Pause,
}

/// A writer: its name, and how it writes.
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
    /// The writer of this name, which takes its messages one by one.
    pub fn new(name: &str) -> Self {
        let backoff =
            Backoff::Exponential { first: Duration::from_secs(1), ceiling: Duration::from_secs(60) };
        let retry = RetryPolicy { backoff, max_attempts: 10, ..RetryPolicy::default() };
        Self { name: name.to_owned(), batch: 1, retry, at_last: AtLast::default(), lease: None }
    }

    /// Takes up to so many messages at once, from 1 to 1,000. If a batch of several fails, its messages are
    /// taken one by one, so that the one which fails is known.
    pub fn batch(mut self, most: usize) -> Self {
        self.batch = most;
        self
    }

    /// Tries a message that fails again by this policy: in place, before those behind it. Ten attempts in
    /// about five minutes by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// What becomes of a message at last.
    pub fn at_last(mut self, at_last: AtLast) -> Self {
        self.at_last = at_last;
        self
    }

    /// Holds its lease for so long at a time: as long as its worker reserves, if this is not said. When a
    /// writer's host dies, the next one goes on after the longer of the two.
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
