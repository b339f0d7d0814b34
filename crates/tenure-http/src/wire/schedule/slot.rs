//! Slots: those that will come, and what became of those that have passed.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::schedule::{ClockChange, Slot, Zone};
use tenure::{Fate, Origin, SlotRecord};

use super::document::skipped;

/// A slot.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Slot")]
pub struct SlotDocument {
    /// When.
    pub at: String,
    /// What the clocks of the schedule's zone show then.
    pub local: String,
    /// What a change of the clocks did to it: `shifted`, `first` or `second`.
    pub clock_change: Option<&'static str>,
}

/// The next slots of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NextRuns {
    /// The slots.
    pub items: Vec<SlotDocument>,
}

/// What a schedule comes to that somebody thinks of.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreviewAnswer {
    /// What it means, in plain words.
    pub description: String,
    /// The schedule as a line of text.
    pub schedule: String,
    /// Its next slots.
    pub next: Vec<SlotDocument>,
    /// What is allowed and may not be meant, each as a sentence.
    pub warnings: Vec<String>,
}

/// Which slots of the past would get jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackfillPreview {
    /// The slots, a thousand at most.
    pub slots: Vec<SlotDocument>,
    /// Whether there are more.
    pub capped: bool,
}

/// What a backfill has brought.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackfillAnswer {
    /// How many jobs that were not there before.
    pub jobs: usize,
    /// What to say as `from` to go on; none if all is done. To go on from an earlier instant is no harm.
    pub next_from: Option<String>,
}

/// What became of a slot, or of some that follow one another.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunDocument {
    /// The schedule.
    pub schedule: String,
    /// The first of the slots.
    pub first_at: String,
    /// The last of them.
    pub last_at: String,
    /// How many; none if they are too many to be counted.
    pub count: Option<u64>,
    /// From where they come: `schedule`, `start`, `trigger` or `backfill`.
    pub origin: &'static str,
    /// What became of them: `ran`, `coalesced` or `skipped`.
    pub outcome: &'static str,
    /// The job, if there is one.
    pub job_id: Option<String>,
    /// The slot whose job stands for them.
    pub coalesced_into: Option<String>,
    /// Why they were skipped: `busy`, `missed`, `too_many`, `too_late`, `paused` or `edited`.
    pub skipped_because: Option<&'static str>,
    /// When that was decided.
    pub decided_at: String,
}

/// A page of what became of slots. It may be short, or even empty, and still go on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunPage {
    /// What became of them, the latest first.
    pub items: Vec<RunDocument>,
    /// What to give as `cursor` for the next page; none at the end.
    pub next_cursor: Option<String>,
}

impl SlotDocument {
    /// What there is to tell of a slot.
    #[must_use]
    pub fn of(slot: &Slot, zone: &Zone) -> Self {
        Self {
            at: slot.at.to_string(),
            local: zone.show(slot.at),
            clock_change: slot.change.map(clock_change),
        }
    }
}

impl RunDocument {
    /// What there is to tell of a record.
    #[must_use]
    pub fn of(record: &SlotRecord) -> Self {
        let (outcome, job, into, why) = match &record.fate {
            Fate::Ran { job } => ("ran", Some(*job), None, None),
            Fate::Coalesced { into } => ("coalesced", None, Some(*into), None),
            Fate::Skipped { why } => ("skipped", None, None, Some(skipped(why))),
        };
        Self {
            schedule: record.timer.to_string(),
            first_at: record.first.to_string(),
            last_at: record.last.to_string(),
            count: record.count,
            origin: origin(record.origin),
            outcome,
            job_id: job.map(|job| job.to_string()),
            coalesced_into: into.map(|into| into.to_string()),
            skipped_because: why,
            decided_at: record.at.to_string(),
        }
    }
}

/// From where a slot comes, in a word.
pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Schedule => "schedule",
        Origin::Start => "start",
        Origin::Trigger => "trigger",
        Origin::Backfill => "backfill",
    }
}

/// What a change of the clocks did to a slot, in a word.
pub(super) fn clock_change(change: ClockChange) -> &'static str {
    match change {
        ClockChange::Shifted => "shifted",
        ClockChange::First => "first",
        ClockChange::Second => "second",
    }
}
