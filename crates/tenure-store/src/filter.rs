//! Which jobs somebody means.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tenure_core::{Condition, Invalid, Job, JobId, Kind, Name, QueueName, StateName, Timestamp};

/// Which jobs somebody means. Empty lists and `None` do not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// One of these.
    pub ids: Vec<JobId>,
    /// In one of these states.
    pub states: Vec<StateName>,
    /// In one of these queues.
    pub queues: Vec<QueueName>,
    /// Of one of these kinds.
    pub kinds: Vec<Kind>,
    /// With all of these tags.
    pub tags: Vec<Name>,
    /// Accepted at this instant or later.
    pub created_from: Option<Timestamp>,
    /// Accepted before this instant.
    pub created_before: Option<Timestamp>,
    /// For which all of this holds, too. No index tells it: each job that the rest of the filter means is looked at.
    pub conditions: Vec<Condition>,
}

impl Filter {
    /// Whether it means this job. Stores narrow down by their indexes and ask this for the rest.
    #[must_use]
    pub fn means(&self, job: &Job, now: Timestamp) -> bool {
        let one_of = |empty: bool, found: bool| empty || found;
        one_of(self.ids.is_empty(), self.ids.contains(&job.id))
            && one_of(self.states.is_empty(), self.states.contains(&job.state.name(now)))
            && one_of(self.queues.is_empty(), self.queues.contains(&job.queue))
            && one_of(self.kinds.is_empty(), self.kinds.contains(&job.kind))
            && self.tags.iter().all(|tag| job.terms.tags.contains(tag))
            && self.created_from.is_none_or(|from| job.created >= from)
            && self.created_before.is_none_or(|before| job.created < before)
            && self.conditions.iter().all(|condition| condition.holds(job, now))
    }

    /// Whether it restricts nothing.
    #[must_use]
    pub fn means_all(&self) -> bool {
        *self == Self::default()
    }
}

/// In which order a listing goes; both follow the order of acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The last accepted first.
    #[default]
    NewestFirst,
    /// The first accepted first.
    OldestFirst,
}

/// Where a listing goes on. It stays good while jobs are added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    seq: u64,
}

impl Cursor {
    /// Goes on behind the job with this place in the order of acceptance.
    #[must_use]
    pub fn behind(seq: u64) -> Self {
        Self { seq }
    }

    /// The place behind which it goes on.
    #[must_use]
    pub fn seq(self) -> u64 {
        self.seq
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:x}", self.seq)
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("cursor", "unknown text", "the cursor of an earlier page");
        let hex = text.strip_prefix('c').ok_or_else(refuse)?;
        u64::from_str_radix(hex, 16).map(Self::behind).map_err(|_| refuse())
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for Cursor {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}
