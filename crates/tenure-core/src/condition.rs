//! What somebody may want to know of a job that no index tells: each job has to be looked at.

mod candidate;
mod sought;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use candidate::Candidate;
pub use sought::{SoughtText, SoughtValue};

use crate::{Job, Kind, Name, QueueName, State, StateName, Timestamp};

/// Something that holds for a job, or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Condition {
    /// This does not hold.
    Not(Box<Condition>),
    /// One of these holds.
    OneOf(Vec<Condition>),
    /// It is in this state.
    State(StateName),
    /// It is in this queue.
    Queue(QueueName),
    /// Its queue's name begins with this.
    QueueBegins(String),
    /// It is of this kind.
    Kind(Kind),
    /// Its kind's name begins with this.
    KindBegins(String),
    /// Its kind holds this text, upper and lower case being the same.
    KindHolds(SoughtText),
    /// It is of a kind of Tenure's own.
    Own,
    /// It has this tag.
    Tag(Name),
    /// Its id, as people see it, begins with this; with a `…` in it, begins and ends with what stands around that.
    IdBegins(String),
    /// Its holder's id, as people see it, begins with this, or is as said of `IdBegins`.
    HolderBegins(String),
    /// What its args hold at a path is this, or a list with this in it.
    Arg {
        /// Names of fields and places in lists, from the outside in.
        path: Vec<String>,
        /// What is looked for: JSON text.
        value: SoughtValue,
    },
    /// It has this note.
    Meta {
        /// Under which name.
        key: String,
        /// What it says.
        value: String,
    },
    /// What last went wrong with it holds this text, upper and lower case being the same.
    FailureHolds(SoughtText),
    /// Enqueued by a client of this name.
    Owner(String),
    /// A timer of this name brought it.
    Timer(String),
    /// So many attempts.
    Attempt(RangeInclusive<i64>),
    /// A priority in this range.
    Priority(RangeInclusive<i64>),
    /// It was accepted then.
    Created(RangeInclusive<Timestamp>),
    /// It ended then.
    Ended(RangeInclusive<Timestamp>),
    /// Its last attempt took so long, or has by now.
    Took(RangeInclusive<Duration>),
}

impl Condition {
    /// Whether it holds for this job now.
    #[must_use]
    pub fn holds(&self, job: &Job, now: Timestamp) -> bool {
        self.holds_for(&Candidate::new(job), now)
    }

    /// Does the same for a job that several conditions examine.
    #[must_use]
    pub fn holds_for(&self, candidate: &Candidate<'_>, now: Timestamp) -> bool {
        let job = candidate.job;
        match self {
            Self::Not(other) => !other.holds_for(candidate, now),
            Self::OneOf(some) => some.iter().any(|each| each.holds_for(candidate, now)),
            Self::State(state) => job.state.name(now) == *state,
            Self::Queue(queue) => job.queue == *queue,
            Self::QueueBegins(text) => job.queue.as_str().starts_with(text),
            Self::Kind(kind) => job.kind == *kind,
            Self::KindBegins(text) => job.kind.as_str().starts_with(text),
            Self::KindHolds(text) => text.is_in(candidate.kind()),
            Self::Own => job.kind.is_own(),
            Self::Tag(tag) => job.terms.tags.contains(tag),
            Self::IdBegins(text) => is_id(candidate.id(), &text.to_lowercase()),
            Self::HolderBegins(text) => {
                job.holder.is_some_and(|holder| is_id(&holder.to_string(), &text.to_lowercase()))
            }
            Self::Arg { path, value } => candidate.arg(path).is_some_and(|found| value.is_or_is_in(found)),
            Self::Meta { key, value } => job.terms.meta.get(key) == Some(value),
            Self::FailureHolds(text) => candidate.failure().is_some_and(|failure| text.is_in(failure)),
            Self::Owner(name) => job.terms.owner.as_ref() == Some(name),
            Self::Timer(name) => job.terms.slot.as_ref().is_some_and(|slot| slot.timer.as_str() == name),
            Self::Attempt(range) => range.contains(&i64::from(job.attempt)),
            Self::Priority(range) => range.contains(&job.priority.number()),
            Self::Created(range) => range.contains(&job.created),
            Self::Ended(range) => job.state.ended().is_some_and(|at| range.contains(&at)),
            Self::Took(range) => took(job, now).is_some_and(|span| range.contains(&span)),
        }
    }
}

impl Condition {
    /// Returns `true` if it depends on the args of a job.
    #[must_use]
    pub fn reads_args(&self) -> bool {
        match self {
            Self::Not(other) => other.reads_args(),
            Self::OneOf(some) => some.iter().any(Self::reads_args),
            Self::Arg { .. } => true,
            Self::State(_)
            | Self::Queue(_)
            | Self::QueueBegins(_)
            | Self::Kind(_)
            | Self::KindBegins(_)
            | Self::KindHolds(_)
            | Self::Own
            | Self::Tag(_)
            | Self::IdBegins(_)
            | Self::HolderBegins(_)
            | Self::Meta { .. }
            | Self::FailureHolds(_)
            | Self::Owner(_)
            | Self::Timer(_)
            | Self::Attempt(_)
            | Self::Priority(_)
            | Self::Created(_)
            | Self::Ended(_)
            | Self::Took(_) => false,
        }
    }

    /// Returns `true` unless the queue and the kind of a job rule out that the condition holds for it. The rest of the job
    /// cannot be read.
    #[must_use]
    pub fn may_hold(&self, queue: &QueueName, kind: &Kind) -> bool {
        self.decided_by(queue, kind) != Some(false)
    }

    /// Returns `None` if more of the job would have to be known.
    fn decided_by(&self, queue: &QueueName, kind: &Kind) -> Option<bool> {
        match self {
            Self::Not(other) => other.decided_by(queue, kind).map(|holds| !holds),
            Self::OneOf(some) => {
                let each = || some.iter().map(|each| each.decided_by(queue, kind));
                if each().any(|holds| holds == Some(true)) {
                    return Some(true);
                }
                each().all(|holds| holds == Some(false)).then_some(false)
            }
            Self::Queue(wanted) => Some(queue == wanted),
            Self::QueueBegins(text) => Some(queue.as_str().starts_with(text)),
            Self::Kind(wanted) => Some(kind == wanted),
            Self::KindBegins(text) => Some(kind.as_str().starts_with(text)),
            Self::KindHolds(text) => Some(text.is_in(&kind.as_str().to_lowercase())),
            Self::Own => Some(kind.is_own()),
            Self::State(_)
            | Self::Tag(_)
            | Self::IdBegins(_)
            | Self::HolderBegins(_)
            | Self::Arg { .. }
            | Self::Meta { .. }
            | Self::FailureHolds(_)
            | Self::Owner(_)
            | Self::Timer(_)
            | Self::Attempt(_)
            | Self::Priority(_)
            | Self::Created(_)
            | Self::Ended(_)
            | Self::Took(_) => None,
        }
    }
}

/// Whether an id is meant by how it begins, or by how it begins and ends: that is how it is shown where there is little room.
fn is_id(id: &str, said: &str) -> bool {
    match said.split_once('…').or_else(|| said.split_once("...")) {
        Some((begin, end)) => id.starts_with(begin) && id.ends_with(end),
        None => id.starts_with(said),
    }
}

fn took(job: &Job, now: Timestamp) -> Option<Duration> {
    let until = match job.state {
        State::Finished { at, .. } => at,
        State::Running { .. } => now,
        State::Waiting { .. } | State::Blocked { .. } => return None,
    };
    job.started.map(|started| until.since(started))
}
