//! Looking after a store from outside: how it stands, what its schema lacks, and what is wrong with it.

use serde::Serialize;
use tenure_core::StateName;

use crate::Host;

/// How a store stands, as far as that is told without reading its jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// In a few words for a person: what it is and where, without any secret.
    pub place: String,
    /// What keeps it, with its version.
    pub engine: String,
    /// The number of its schema; 0 if it has none yet.
    pub schema: u32,
    /// The number of the schema that this program works with.
    pub known: u32,
    /// The floor of its fences; `None` if it has no schema yet.
    pub epoch: Option<u64>,
    /// How many jobs are in each state: maintained, not counted. States that no job is in are left out.
    pub jobs: Vec<(StateName, u64)>,
    /// What it takes of its disk.
    pub bytes: u64,
    /// The hosts that are alive.
    pub hosts: Vec<Host>,
    /// How a program on it learns what the others do.
    pub hearing: Hearing,
    /// Of the transactions there the one that sees the oldest state, if any is open that whoever asks may know of.
    pub oldest: Option<Oldest>,
    /// Dangers that its operator can remove.
    pub cautions: Vec<Caution>,
}

/// A danger in the way a store is kept or reached, for its operator. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caution {
    /// The danger, as the first half of a sentence.
    pub found: String,
    /// The command or setting that removes it.
    pub next: String,
}

impl std::fmt::Display for Caution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.found, self.next)
    }
}

/// A transaction that sees an older state than all others. What it may still see is not removed, though it was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oldest {
    /// Whose it is, in a few words for a person who wants to end it.
    pub who: String,
    /// For how many seconds it has been open.
    pub seconds: u64,
}

/// How a program learns what others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hearing {
    /// It is told by hints.
    Hints,
    /// It hears no hints, and looks once a second. Everything works, a little later.
    Looks,
    /// It watches the file.
    Watches,
}

/// What a schema lacks that this program works with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The number of the schema that is there; 0 if there is none.
    pub from: u32,
    /// The number that it shall have.
    pub to: u32,
    /// What brings it there; empty if nothing is missing.
    pub sql: String,
}

/// Something in a store that must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, such as `tally`.
    pub about: String,
    /// What is wrong, in a sentence.
    pub what: String,
}

/// Unreadable data that a repair has moved into quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    /// The ID of the job, or `number` and its number if the ID cannot be read.
    pub job: String,
    /// A sentence that names the unreadable value.
    pub what: String,
    /// Number of rows moved. If the job itself cannot be read, all its rows are.
    pub rows: u64,
}

/// The result of a step of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Repaired {
    /// Moved data.
    pub moved: Vec<Quarantined>,
    /// `true` if there may be more to repair: call again.
    pub more: bool,
}
