//! What makes a job the only one of its kind.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, delay_of};

/// A job with this holds a key; a second job with the same key meets a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unique {
    /// What is unique: a digest of the scope (kind, queue, args or a given key).
    pub key: UniqueKey,
    /// For how long.
    pub window: Window,
    /// What a second job meets.
    pub on_conflict: OnConflict,
}

/// A digest of 128 bits of whatever shall be unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UniqueKey(pub [u8; 16]);

/// How long a key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Until the job ends.
    WhileUnfinished,
    /// For so long from the enqueueing, even if the job ends sooner.
    For(Duration),
}

/// What a job meets whose key is held by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Nothing is stored; the answer names the job that holds the key.
    Return,
    /// Nothing of the whole batch is stored; the answer is a refusal.
    Reject,
    /// A waiting holder of the key is cancelled in favour of the new job; a running one is returned.
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
