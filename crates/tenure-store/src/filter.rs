//! Which jobs somebody means.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tenure_core::{Candidate, Condition, Invalid, Job, JobId, Kind, Name, QueueName, StateName, Timestamp};

use crate::{UnreadableJob, Values};

/// A selection of jobs. Empty lists and `None` do not restrict it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only jobs with one of these IDs.
    pub ids: Vec<JobId>,
    /// Only jobs in one of these states.
    pub states: Vec<StateName>,
    /// Only jobs in one of these queues.
    pub queues: Vec<QueueName>,
    /// Only jobs of one of these kinds.
    pub kinds: Vec<Kind>,
    /// Only jobs with all of these tags.
    pub tags: Vec<Name>,
    /// Only jobs created at or after this time.
    pub created_from: Option<Timestamp>,
    /// Only jobs created before this time.
    pub created_before: Option<Timestamp>,
    /// Only jobs that ended at or after this time.
    pub ended_from: Option<Timestamp>,
    /// Only jobs that ended before this time.
    pub ended_before: Option<Timestamp>,
    /// Additional conditions, all of which must hold. No index serves them, so each job that the rest of the filter
    /// matches is examined.
    pub conditions: Vec<Condition>,
}

impl Filter {
    /// Returns `true` if the filter matches this job.
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
            && self.conditions_hold(job, now)
    }

    fn conditions_hold(&self, job: &Job, now: Timestamp) -> bool {
        let candidate = Candidate::new(job);
        self.conditions.iter().all(|condition| condition.holds_for(&candidate, now))
    }

    /// Returns the values that a store has to read to decide about a job: a condition may need its args.
    #[must_use]
    pub fn values_needed(&self) -> Values {
        if self.conditions.iter().any(Condition::reads_args) { Values::Read } else { Values::Omitted }
    }

    /// Returns `true` unless the filter rules out a job that cannot be read, by what is known of it. If its queue or kind
    /// is unknown, only a filter that restricts neither may match it: filters bound access, too.
    #[must_use]
    pub fn may_mean(&self, job: &UnreadableJob) -> bool {
        let (Some(queue), Some(kind)) = (&job.queue, &job.kind) else {
            return self.queues.is_empty() && self.kinds.is_empty() && self.conditions.is_empty();
        };
        (self.ids.is_empty() || job.id.is_none_or(|id| self.ids.contains(&id)))
            && (self.queues.is_empty() || self.queues.contains(queue))
            && (self.kinds.is_empty() || self.kinds.contains(kind))
            && self.conditions.iter().all(|condition| condition.may_hold(queue, kind))
    }

    /// Returns `true` if the filter matches every job.
    #[must_use]
    pub fn means_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The sort key of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedBy {
    /// By creation.
    #[default]
    Acceptance,
    /// By end; jobs that ended at the same time by creation. Only finished jobs are listed.
    ///
    /// A job that ends while somebody reads may have an earlier end than what was read already, by as long as a transaction
    /// takes: whoever follows reads the last of it again.
    End,
}

/// The sort order of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// The position after which a listing continues. It stays valid while jobs are added and removed.
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
        let refuse = || Invalid::new("cursor", "invalid value", "a cursor of an earlier page");
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
