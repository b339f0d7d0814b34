//! Slots: the instants for which a timer stands, and the one record of each.

use serde::{Deserialize, Serialize};

use crate::{JobId, Name, Timestamp};

/// The origin of a timer's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The schedule.
    #[default]
    Schedule,
    /// The start of a program.
    Start,
    /// A manual trigger.
    Trigger,
    /// A backfill.
    Backfill,
}

/// The timer run for which a job was enqueued, as shown to its handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerSlot {
    /// The timer.
    pub timer: Name,
    /// The scheduled time. For a start: the time at which the program started, by its host's clock.
    pub at: Timestamp,
    /// Time at which the job was enqueued.
    pub fired: Timestamp,
    /// The origin.
    #[serde(default, skip_serializing_if = "is_schedule")]
    pub origin: Origin,
    /// `true` if the run was missed and caught up, or stands for earlier missed runs.
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

/// The outcome of one run or of consecutive runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecord {
    /// The timer.
    pub timer: Name,
    /// Scheduled time of the first run.
    pub first: Timestamp,
    /// Scheduled time of the last run.
    pub last: Timestamp,
    /// Number of runs; `None` if there were too many to count.
    pub count: Option<u64>,
    /// The origin.
    pub origin: Origin,
    /// The outcome of each.
    pub fate: Fate,
    /// Time of the decision.
    pub at: Timestamp,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// A job was enqueued.
    Ran {
        /// The job.
        job: JobId,
    },
    /// The job of a later run stands for it.
    Coalesced {
        /// Scheduled time of that run.
        into: Timestamp,
    },
    /// The run was skipped.
    Skipped {
        /// The reason.
        why: Skipped,
    },
}

/// The reason for which a run was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// Jobs of earlier runs had not ended.
    Busy {
        /// The first of them.
        job: JobId,
    },
    /// It was missed, and the policy catches up none.
    Missed,
    /// It was missed, and more runs were missed than the policy catches up.
    TooMany,
    /// It was later than the allowed lateness.
    TooLate,
    /// The timer was paused.
    Paused,
    /// The schedule was changed.
    Edited,
    /// Another job has the ID of the run's job.
    IdTaken {
        /// The job that has the ID.
        job: JobId,
    },
}

impl TimerSlot {
    /// Returns `true` if both are the same run, whenever their jobs were enqueued.
    #[must_use]
    pub fn is_same_run(&self, other: &Self) -> bool {
        (&self.timer, self.at, self.origin) == (&other.timer, other.at, other.origin)
    }

    /// Returns the delay between the scheduled time and the enqueue. A start is never late.
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
