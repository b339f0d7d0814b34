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
    /// That have ended, at this instant or later.
    pub ended_from: Option<Timestamp>,
    /// That have ended, before this instant.
    pub ended_before: Option<Timestamp>,
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
            && self.ended_from.is_none_or(|from| job.state.ended().is_some_and(|at| at >= from))
            && self.ended_before.is_none_or(|before| job.state.ended().is_some_and(|at| at < before))
            && self.conditions.iter().all(|condition| condition.holds(job, now))
    }

    /// Whether it restricts nothing.
    #[must_use]
    pub fn means_all(&self) -> bool {
        *self == Self::default()
    }
}

/// What a listing goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedBy {
    /// The order in which jobs were accepted.
    #[default]
    Acceptance,
    /// When they ended; those that ended at the same instant by their acceptance. Only jobs that have ended are listed.
    ///
    /// A job that ends while somebody reads may have an earlier end than what was read already, by as long as a transaction
    /// takes: whoever follows reads the last of it again.
    End,
}

/// In which order a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The last first.
    #[default]
    NewestFirst,
    /// The first first.
    OldestFirst,
}

/// Where a listing goes on. It stays good while jobs are added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    seq: u64,
    ended: Option<Timestamp>,
}

impl Cursor {
    /// Goes on behind the job with this place in the order of acceptance.
    #[must_use]
    pub fn behind(seq: u64) -> Self {
        Self { seq, ended: None }
    }

    /// Goes on behind the job that ended at this instant and has this place in the order of acceptance.
    #[must_use]
    pub fn behind_end(ended: Timestamp, seq: u64) -> Self {
        Self { seq, ended: Some(ended) }
    }

    /// The end behind which it goes on, in a listing by ends.
    #[must_use]
    pub fn ended(self) -> Option<Timestamp> {
        self.ended
    }

    /// Whether it is one of a listing that goes by this.
    #[must_use]
    pub fn is_of(self, by: ListedBy) -> bool {
        self.ended.is_some() == (by == ListedBy::End)
    }

    /// The place behind which it goes on.
    #[must_use]
    pub fn seq(self) -> u64 {
        self.seq
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ended {
            Some(ended) => write!(f, "e{:x}.{:x}", ended.as_micros(), self.seq),
            None => write!(f, "c{:x}", self.seq),
        }
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("cursor", "unknown text", "the cursor of an earlier page");
        let number = |hex: &str| u64::from_str_radix(hex, 16).map_err(|_| refuse());
        if let Some((ended, seq)) = text.strip_prefix('e').and_then(|text| text.split_once('.')) {
            let micros = i64::try_from(number(ended)?).map_err(|_| refuse())?;
            let ended = Timestamp::from_micros(micros).map_err(|_| refuse())?;
            return Ok(Self::behind_end(ended, number(seq)?));
        }
        number(text.strip_prefix('c').ok_or_else(refuse)?).map(Self::behind)
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
