//! What makes a job the only one of its kind.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, delay_of};

/// A uniqueness constraint. The first job holds the key; a second job with the same key is a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unique {
    /// The key: a digest of the scope (kind, queue, args or a given key).
    pub key: UniqueKey,
    /// How long the key is held.
    pub window: Window,
    /// Policy for a conflicting job.
    pub on_conflict: OnConflict,
}

/// A digest of 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UniqueKey(pub [u8; 16]);

impl UniqueKey {
    /// The first bytes of the keys of [reserved kinds](crate::Kind::is_reserved). SQL callers cannot choose such a key, so their jobs
    /// hold back no job of these kinds, and replace none.
    pub const RESERVED: [u8; 6] = *b"tenure";
}

/// How long a unique key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Until the job ends.
    WhileUnfinished,
    /// For this time after enqueueing, even if the job ends sooner.
    For(Duration),
}

/// The policy for a job whose unique key is held by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Store nothing and return the ID of the holder.
    Return,
    /// Refuse the whole batch.
    Reject,
    /// Cancel a waiting holder in favor of the new job; a running one is returned.
    Replace,
}

impl Window {
    /// When a key taken at `now` becomes free by itself; `None` is at the job's end.
    #[must_use]
    pub fn until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::WhileUnfinished => None,
            Self::For(span) => Some(now.after(span)),
        }
    }
}

impl Unique {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        match self.window {
            Window::WhileUnfinished => Ok(()),
            Window::For(span) if span.is_zero() => {
                Err(Invalid::new("unique.window", "0 seconds", "more than 0 seconds"))
            }
            Window::For(span) => delay_of("unique.window", span).map(drop),
        }
    }
}
