//! A state of the keys' model: the rows of the jobs, who works on them, and what is counted for the key.

use crate::job::{Own, Row, Saying};

/// Jobs at most.
pub const MOST_JOBS: usize = 4;
/// Hosts at most that believe to work on one job.
pub const MOST_WORKS: usize = 2;

/// All that matters for what can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The jobs, in the order of their acceptance.
    pub rows: [Row; MOST_JOBS],
    /// The runs of each.
    pub works: [[Option<Work>; MOST_WORKS]; MOST_JOBS],
    /// How many run, as the row of the limit has it.
    pub running: u32,
    /// The job that has the turn, as the row of the ordering key has it.
    pub turn: Option<u8>,
    /// The room that somebody saw without taking it; only where that is the bug.
    pub seen_room: Option<u32>,
    /// The promise that the last step broke.
    pub broken: Option<Promise>,
}

/// A run of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The ownership.
    pub own: Own,
    /// What its handler said, if the answer to that was lost.
    pub said: Option<Saying>,
}

/// What is promised about jobs with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// The limit holds.
    WithinTheLimit,
    /// No slot leaks and none is invented.
    SlotsAreCounted,
    /// The ordering key holds.
    OneAtATime,
    /// A failing head keeps those behind it waiting, if it is one that blocks.
    InOrder,
    /// Nobody waits for nothing.
    WaitsForAReason,
    /// No job is stuck.
    AllEnd,
}

impl Promise {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::WithinTheLimit,
        Self::SlotsAreCounted,
        Self::OneAtATime,
        Self::InOrder,
        Self::WaitsForAReason,
        Self::AllEnd,
    ];

    /// The promise in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::WithinTheLimit => "no more jobs run at once than the limit allows",
            Self::SlotsAreCounted => "as many slots are counted as jobs run",
            Self::OneAtATime => "jobs with one ordering key run one at a time",
            Self::InOrder => "a job that blocks those behind it ends before they start",
            Self::WaitsForAReason => "a blocked job is blocked by something",
            Self::AllEnd => "all jobs end as soon as one healthy host works",
        }
    }
}
