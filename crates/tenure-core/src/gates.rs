//! What stands between a job that wants to run and its line: other jobs, its turn, its time, its limit.

use serde::{Deserialize, Serialize};

use crate::{Head, State, Terms, Timestamp, Why};

/// What a blocked job waits for. It is not handed out meanwhile, and no attempt is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Jobs that have to end first.
    Jobs,
    /// Its turn among the jobs of its ordering key.
    Order,
    /// Room in its limit.
    Limit,
}

/// What a store knows about the gates of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// Whether every job that it waits for has ended.
    pub jobs_ended: bool,
    /// Whether it is its turn among the jobs of its ordering key.
    pub has_turn: bool,
    /// Whether there is room in its limit, of which nobody before it in line has need.
    pub has_room: bool,
}

impl Gates {
    /// The gates of a job that has none.
    pub const OPEN: Self = Self { jobs_ended: true, has_turn: true, has_room: true };

    /// The state of a job that waits: where the first closed gate keeps it.
    ///
    /// A job that blocks those behind it in its ordering key keeps its turn while it waits for its time;
    /// one that steps aside takes its turn only when its time has come.
    #[must_use]
    pub fn state(&self, terms: &Terms, due: Timestamp, why: Why, now: Timestamp) -> State {
        let blocked = |on| State::Blocked { on, due, why };
        let waiting = State::Waiting { due, why };
        let head = terms.ordering.as_ref().map_or(Head::Block, |ordering| ordering.head);
        if !self.jobs_ended {
            return blocked(Block::Jobs);
        }
        match head {
            Head::Block if !self.has_turn => return blocked(Block::Order),
            _ if due > now => return waiting,
            Head::StepAside if !self.has_turn => return blocked(Block::Order),
            Head::Block | Head::StepAside => {}
        }
        if self.has_room { waiting } else { blocked(Block::Limit) }
    }
}

impl Terms {
    /// Whether a job with these terms has to pass a gate, or has a share: a store looks at it by itself.
    #[must_use]
    pub fn are_gated(&self) -> bool {
        self.ordering.is_some() || self.limit.is_some() || self.share.is_some() || self.after.is_some()
    }
}
