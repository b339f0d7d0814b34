//! Slots: those that will come, and what became of those that have passed.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::schedule::{ClockChange, Slot, Zone};
use tenure::{Fate, Origin, SlotRecord};

use super::document::skipped;

/// A run of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Slot")]
pub struct SlotDocument {
    /// Scheduled time.
    pub at: String,
    /// Local time in the schedule's time zone.
    pub local: String,
    /// Effect of a clock change: `shifted`, `first` or `second`.
    pub clock_change: Option<&'static str>,
}

/// The next runs of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NextRuns {
    /// The runs.
    pub items: Vec<SlotDocument>,
}

/// Preview of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreviewAnswer {
    /// The schedule in plain words.
    pub description: String,
    /// The schedule as text.
    pub schedule: String,
    /// The next runs.
    pub next: Vec<SlotDocument>,
    /// Warnings about valid settings that may be unintended.
    pub warnings: Vec<String>,
}

/// Past runs that a backfill would enqueue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackfillPreview {
    /// The runs; at most 1000.
    pub slots: Vec<SlotDocument>,
    /// `true` if there are more.
    pub capped: bool,
}

/// Result of a backfill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackfillAnswer {
    /// Number of new jobs.
    pub jobs: usize,
    /// Value of `from` to continue with; omitted if the backfill is complete. An earlier value is safe.
    pub next_from: Option<String>,
}

/// Outcome of one run or of consecutive runs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunDocument {
    /// Schedule name.
    pub schedule: String,
    /// Scheduled time of the first run.
    pub first_at: String,
    /// Scheduled time of the last run.
    pub last_at: String,
    /// Number of runs; omitted if too many to count.
    pub count: Option<u64>,
    /// Origin: `schedule`, `start`, `trigger` or `backfill`.
    pub origin: &'static str,
    /// Outcome: `ran`, `coalesced` or `skipped`.
    pub outcome: &'static str,
    /// ID of the job, if there is one.
    #[schemars(extend("format" = "uuid"))]
    pub job_id: Option<String>,
    /// Scheduled time of the run whose job stands for these.
    pub coalesced_into: Option<String>,
    /// Reason: `busy`, `missed`, `too_many`, `too_late`, `paused`, `edited` or `id_taken`.
    pub skipped_because: Option<&'static str>,
    /// Time of the decision.
    pub decided_at: String,
}

/// A page of run history. A page may be short or empty although more follow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunPage {
    /// Records, latest first.
    pub items: Vec<RunDocument>,
    /// Cursor of the next page; omitted on the last page.
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
