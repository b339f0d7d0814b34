//! Slots: the instants for which a timer stands, and the one record of each.

use serde::{Deserialize, Serialize};

use crate::{JobId, Name, Timestamp};

/// From where a job of a timer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// From the schedule.
    #[default]
    Schedule,
    /// A program started.
    Start,
    /// Somebody asked for it at once.
    Trigger,
    /// Somebody asked for a slot of the past.
    Backfill,
}

/// The slot for which a job was enqueued: what its handler is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerSlot {
    /// The timer.
    pub timer: Name,
    /// The nominal instant. Of a start: when the program started, by the clock of its host.
    pub at: Timestamp,
    /// When the job was enqueued.
    pub fired: Timestamp,
    /// From where it comes.
    #[serde(default, skip_serializing_if = "is_schedule")]
    pub origin: Origin,
    /// Whether it was missed at its time, or stands for earlier ones that were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub past_due: bool,
}

impl TimerSlot {
    /// Whether somebody asked this timer for the job at once, so that asking under the same id again asks for nothing more.
    #[must_use]
    pub fn is_trigger_of(&self, timer: &Name) -> bool {
        self.origin == Origin::Trigger && self.timer == *timer
    }
}

/// What became of a slot, or of some that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecord {
    /// The timer.
    pub timer: Name,
    /// The first of the slots.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many; `None` if they were too many to be counted.
    pub count: Option<u64>,
    /// From where they come.
    pub origin: Origin,
    /// What became of each.
    pub fate: Fate,
    /// When that was decided.
    pub at: Timestamp,
}

/// What became of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// A job was enqueued for it.
    Ran {
        /// The job.
        job: JobId,
    },
    /// The job of a later slot stands for it.
    Coalesced {
        /// The slot whose job does.
        into: Timestamp,
    },
    /// Nothing was done for it.
    Skipped {
        /// Why.
        why: Skipped,
    },
}

/// Why a slot was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// Jobs of earlier slots had not ended.
    Busy {
        /// The first of them.
        job: JobId,
    },
    /// It was missed, and the timer catches up with nothing.
    Missed,
    /// It was missed, and the timer catches up with so many and no more.
    TooMany,
    /// It was later than the timer allows.
    TooLate,
    /// The timer was paused.
    Paused,
    /// The schedule was changed.
    Edited,
}

impl TimerSlot {
    /// How much later than its instant the job was enqueued. A start is not late.
    #[must_use]
    pub fn lateness(&self) -> std::time::Duration {
        self.fired.since(self.awaited())
    }

    /// When its job was to be expected.
    #[must_use]
    pub fn awaited(&self) -> Timestamp {
        match self.origin {
            // Its instant is by the clock of a host, which may show anything.
            Origin::Start => self.fired,
            Origin::Schedule | Origin::Trigger | Origin::Backfill => self.at,
        }
    }
}

impl SlotRecord {
    /// The record of one slot.
    #[must_use]
    pub fn of_one(timer: &Name, slot: Timestamp, origin: Origin, fate: Fate, at: Timestamp) -> Self {
        Self { timer: timer.clone(), first: slot, last: slot, count: Some(1), origin, fate, at }
    }

    /// The job, if there is one.
    #[must_use]
    pub fn job(&self) -> Option<JobId> {
        match self.fate {
            Fate::Ran { job } => Some(job),
            Fate::Coalesced { .. } | Fate::Skipped { .. } => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_schedule(origin: &Origin) -> bool {
    *origin == Origin::Schedule
}
