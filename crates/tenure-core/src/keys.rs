//! Keys that jobs share: what they have to wait for besides time and slots.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CancelRequest, End, Invalid, JobId, Name, Timestamp, limits};

/// The text of an ordering key, a limit key or a share key: 1 to 256 bytes without control characters, compared byte
/// by byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(Arc<str>);

/// An ordering key: jobs that share it run one at a time, in the order of acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderingKey {
    /// The key.
    pub key: Key,
    /// What happens to the jobs behind this one while it waits for a time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub head: Head,
}

/// What the first job of an ordering key does to those behind it while it waits for a time: because it was enqueued
/// with a delay, is retried, or was snoozed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// Hold them up until it has ended.
    #[default]
    Block,
    /// Let them pass, one at a time, and take its turn again when it is due.
    StepAside,
}

/// A limit key: jobs that share it have a common limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitKey {
    /// The key.
    pub key: Key,
    /// Maximum number of running jobs. The number of the latest job counts, unless the limit is set separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// The dependencies of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterJobs {
    /// The jobs it depends on, all of which were accepted before it.
    pub jobs: Vec<JobId>,
    /// The policy if one of them fails.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_failed: IfFailed,
}

/// The policy if a job that another depends on fails, is cancelled or is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfFailed {
    /// Cancel the dependent job, and those that depend on it.
    #[default]
    Cancel,
    /// Run the dependent job anyway, when all dependencies have ended.
    Run,
}

/// What it comes to that a job for which another waits has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// That one need not be waited for any more.
    Ended,
    /// It ended badly or is gone, and the job that waits is cancelled for it.
    Cancels(CancelRequest),
}

impl Key {
    /// Accepts a key for `field`.
    ///
    /// # Errors
    /// Refuses empty and too long text and control characters.
    pub fn new(field: &str, text: &str) -> Result<Self, Invalid> {
        let allowed = || format!("1 to {} bytes without control characters", limits::KEY_BYTES);
        if text.is_empty() {
            return Err(Invalid::new(field, "empty", allowed()));
        }
        if text.len() > limits::KEY_BYTES {
            return Err(Invalid::new(field, format_args!("{} bytes", text.len()), allowed()));
        }
        if let Some(odd) = text.chars().find(|c| c.is_control()) {
            return Err(Invalid::new(field, format_args!("invalid character {odd:?}"), allowed()));
        }
        Ok(Self(text.into()))
    }

    /// What the jobs of a timer share. Whoever brings jobs beside a timer that are to run one at a time with those of it gives
    /// them this one, as their ordering key and as their limit key.
    #[must_use]
    pub fn of_timer(name: &Name) -> Self {
        Self(format!("timer/{name}").into())
    }

    /// What orders the jobs that a backfill of a timer brings. No name of a timer has a slash.
    pub(crate) fn of_backfill(name: &Name) -> Self {
        Self(format!("timer/{name}/backfill").into())
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl LimitKey {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.most.map_or(Ok(()), |most| crate::limit::check_most("limit", most))
    }
}

impl AfterJobs {
    /// What it comes to that `other` has ended so; that it is gone without an end, if `None`.
    #[must_use]
    pub fn noticed(&self, other: JobId, end: Option<End>, now: Timestamp) -> Noticed {
        let fate = match (self.if_failed, end) {
            (IfFailed::Run, _) | (IfFailed::Cancel, Some(End::Succeeded)) => return Noticed::Ended,
            (IfFailed::Cancel, Some(End::Failed)) if cfg!(mutant = "failure-ignored") => {
                return Noticed::Ended;
            }
            (IfFailed::Cancel, Some(End::Failed)) => "failed",
            (IfFailed::Cancel, Some(End::Cancelled)) => "was cancelled",
            (IfFailed::Cancel, None) => "was deleted",
        };
        let reason = format!("job {other}, which it depends on, {fate}");
        Noticed::Cancels(CancelRequest::new(now, Duration::ZERO, &reason))
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.jobs.is_empty() || self.jobs.len() > limits::AFTER_JOBS {
            return Err(Invalid::new(
                "after_jobs",
                format_args!("{} jobs", self.jobs.len()),
                format_args!("1 to {} jobs", limits::AFTER_JOBS),
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Key {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new("key", text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.as_str().to_owned()
    }
}

impl TryFrom<String> for Key {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
