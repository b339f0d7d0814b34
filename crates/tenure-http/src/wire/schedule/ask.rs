//! What clients want of schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure::limits;

use super::super::Submit;
use super::super::queue::said;
use super::super::shape;
use super::RuleSpec;

/// A schedule as somebody wants it. What is not said is as for a new one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
    /// What it is called. `POST` needs it; in the path of `PUT` it stands already, and here it is the same or nothing.
    #[schemars(regex(pattern = shape::NAME))]
    pub name: Option<String>,
    /// When its slots are.
    #[serde(deserialize_with = "shape::object_there")]
    pub spec: RuleSpec,
    /// By whose clocks: a name such as `Europe/Copenhagen`; UTC if it is not said.
    pub time_zone: Option<String>,
    /// Days that are left out: `2026-12-25`, `12-25` of each year, or `sat`.
    #[serde(default)]
    pub except: Vec<String>,
    /// Each slot is put off by up to so long, always the same for a slot.
    pub jitter_seconds: Option<f64>,
    /// No slot before it.
    pub starts_at: Option<String>,
    /// No slot after it.
    pub ends_at: Option<String>,
    /// So many jobs in all.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub max_runs: Option<u32>,
    /// What becomes of a slot while jobs of earlier ones have not ended.
    #[serde(default)]
    pub overlap: OverlapName,
    /// With `allow`: how many jobs run at once, 1000 if it is not said.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::OPEN_JOBS))]
    pub overlap_max: Option<u32>,
    /// What becomes of slots that were missed.
    #[serde(default)]
    pub catch_up: CatchUpName,
    /// With `all`: how many at most, 1000 if it is not said.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::CATCH_UP))]
    pub catch_up_max: Option<u32>,
    /// A slot that is later than this is skipped.
    pub max_lateness_seconds: Option<f64>,
    /// What becomes of slots that have passed without a decision when the schedule is changed.
    #[serde(default)]
    pub on_edit: OnEditName,
    /// The version of what is declared: a lower one does not change what a higher one declared.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 0, max = i64::MAX))]
    pub revision: Option<u64>,
    /// The job of each slot. It is due with its slot, so it has no `run_at`.
    #[serde(deserialize_with = "shape::object_there")]
    pub job: Submit,
}

/// What is to be otherwise about a schedule. What is not said stays; `null` is as for a new one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulePatch {
    /// When its slots are.
    #[serde(deserialize_with = "shape::object")]
    pub spec: Option<RuleSpec>,
    /// By whose clocks.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub time_zone: Option<Option<String>>,
    /// Days that are left out, all of them.
    pub except: Option<Vec<String>>,
    /// By how long each slot is put off at most.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>")]
    pub jitter_seconds: Option<Option<f64>>,
    /// No slot before it.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub starts_at: Option<Option<String>>,
    /// No slot after it.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub ends_at: Option<Option<String>>,
    /// So many jobs in all.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u32>", range(min = 1, max = u32::MAX))]
    pub max_runs: Option<Option<u32>>,
    /// What becomes of a slot while jobs of earlier ones have not ended.
    pub overlap: Option<OverlapName>,
    /// With `allow`: how many jobs run at once.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::OPEN_JOBS))]
    pub overlap_max: Option<u32>,
    /// What becomes of slots that were missed.
    pub catch_up: Option<CatchUpName>,
    /// With `all`: how many at most.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::CATCH_UP))]
    pub catch_up_max: Option<u32>,
    /// A slot that is later than this is skipped.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>")]
    pub max_lateness_seconds: Option<Option<f64>>,
    /// What becomes of slots that have passed without a decision when the schedule is changed.
    pub on_edit: Option<OnEditName>,
    /// What is to be otherwise about its jobs.
    #[serde(deserialize_with = "shape::object")]
    pub job: Option<JobPatch>,
}

/// What is to be otherwise about the jobs of a schedule. For anything else it is put anew.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobPatch {
    /// What its handler is given.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// Where it waits.
    #[schemars(regex(pattern = shape::NAME))]
    pub queue: Option<String>,
    /// Its place among the due jobs of its queue: from -100, the first, to 100.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i64>,
}

/// What becomes of a slot while jobs of earlier ones have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Overlap")]
pub enum OverlapName {
    /// It is skipped.
    #[default]
    Skip,
    /// Its job waits for the end of the one that runs.
    QueueOne,
    /// Its job waits for the end of all earlier ones.
    QueueAll,
    /// Earlier ones are asked to stop.
    CancelPrevious,
    /// Its job runs beside them.
    Allow,
}

/// What becomes of slots that were missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CatchUp")]
pub enum CatchUpName {
    /// They are skipped.
    Skip,
    /// The latest gets a job, which stands for the earlier ones.
    #[default]
    One,
    /// The latest get a job each.
    All,
}

/// What becomes of slots that have passed without a decision when the schedule is changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OnEdit")]
pub enum OnEditName {
    /// They are decided as was agreed before.
    #[default]
    Keep,
    /// They are skipped.
    Drop,
}

/// A wish that a schedule pause.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseAsk {
    /// Why, for people.
    pub reason: String,
}

/// A wish for a job of a schedule now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerAsk {
    /// Other args than those of the schedule.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// The id of the job, drawn by the client: asking again under it brings no other.
    #[schemars(regex(pattern = shape::ID))]
    pub id: Option<String>,
}

/// A wish for jobs of slots that have passed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillAsk {
    /// From this instant on.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub from: String,
    /// Until this one, but not later than now.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub to: String,
    /// Shows which slots there are, and does nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Also for slots that have had a job by the schedule.
    #[serde(default)]
    pub again: bool,
}

/// A schedule that somebody thinks of.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreviewAsk {
    /// When its slots would be.
    #[serde(deserialize_with = "shape::object_there")]
    pub spec: RuleSpec,
    /// By whose clocks.
    pub time_zone: Option<String>,
    /// Days that are left out.
    pub except: Vec<String>,
    /// No slot before it.
    pub starts_at: Option<String>,
    /// No slot after it.
    pub ends_at: Option<String>,
    /// After which instant; now if it is not said.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub from: Option<String>,
    /// How many slots: 1 to 1000, usually 10.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<u64>,
}
