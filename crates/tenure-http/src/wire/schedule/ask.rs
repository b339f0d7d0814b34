//! What clients want of schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure::limits;

use super::super::Submit;
use super::super::queue::said;
use super::super::shape;
use super::RuleSpec;

/// A schedule to create or replace. Omitted fields get their defaults.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
    /// Schedule name. Required for `POST`; for `PUT` it may repeat the name in the path.
    #[schemars(regex(pattern = shape::NAME))]
    pub name: Option<String>,
    /// The rule.
    #[serde(deserialize_with = "shape::object_there")]
    pub spec: RuleSpec,
    /// Time zone, such as `Europe/Copenhagen`; default UTC.
    pub time_zone: Option<String>,
    /// Days to skip: `2026-12-25`, `12-25` for every year, or `sat`.
    #[serde(default)]
    pub except: Vec<String>,
    /// Maximum random delay of each run; the delay of a given run is always the same.
    pub jitter_seconds: Option<f64>,
    /// No runs before this time.
    pub starts_at: Option<String>,
    /// No runs after this time.
    pub ends_at: Option<String>,
    /// Maximum number of runs in total.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub max_runs: Option<u32>,
    /// Policy for a run that is due while earlier jobs are unfinished.
    #[serde(default)]
    pub overlap: OverlapName,
    /// With `allow`: maximum number of concurrent jobs; default 1000.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::OPEN_JOBS))]
    pub overlap_max: Option<u32>,
    /// Policy for missed runs.
    #[serde(default)]
    pub catch_up: CatchUpName,
    /// With `all`: maximum number of missed runs to catch up; default 1000.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::CATCH_UP))]
    pub catch_up_max: Option<u32>,
    /// A run that is later than this is skipped.
    pub max_lateness_seconds: Option<f64>,
    /// Policy for past, undecided runs when the schedule changes.
    #[serde(default)]
    pub on_edit: OnEditName,
    /// Version of a declared schedule; a lower version cannot replace a higher one.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 0, max = i64::MAX))]
    pub revision: Option<u64>,
    /// The job of each run. Its due time is that of the run, so it has no `run_at`.
    #[serde(deserialize_with = "shape::object_there")]
    pub job: Submit,
}

/// Changes to a schedule. Omitted fields keep their values; `null` restores the default.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulePatch {
    /// The rule.
    #[serde(deserialize_with = "shape::object")]
    pub spec: Option<RuleSpec>,
    /// Time zone.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub time_zone: Option<Option<String>>,
    /// Days to skip; replaces the whole list.
    pub except: Option<Vec<String>>,
    /// Maximum random delay of each run.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>")]
    pub jitter_seconds: Option<Option<f64>>,
    /// No runs before this time.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub starts_at: Option<Option<String>>,
    /// No runs after this time.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub ends_at: Option<Option<String>>,
    /// Maximum number of runs in total.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u32>", range(min = 1, max = u32::MAX))]
    pub max_runs: Option<Option<u32>>,
    /// Policy for a run that is due while earlier jobs are unfinished.
    pub overlap: Option<OverlapName>,
    /// With `allow`: maximum number of concurrent jobs.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::OPEN_JOBS))]
    pub overlap_max: Option<u32>,
    /// Policy for missed runs.
    pub catch_up: Option<CatchUpName>,
    /// With `all`: maximum number of missed runs to catch up.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::CATCH_UP))]
    pub catch_up_max: Option<u32>,
    /// A run that is later than this is skipped.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>")]
    pub max_lateness_seconds: Option<Option<f64>>,
    /// Policy for past, undecided runs when the schedule changes.
    pub on_edit: Option<OnEditName>,
    /// Changes to the job of each run.
    #[serde(deserialize_with = "shape::object")]
    pub job: Option<JobPatch>,
}

/// Changes to the job of a schedule. To change other fields, replace the schedule.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobPatch {
    /// Arguments for the handler.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// Queue.
    #[schemars(regex(pattern = shape::NAME))]
    pub queue: Option<String>,
    /// Priority among the due jobs of its queue: -100 (first) to 100 (last).
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i64>,
}

/// Policy for a run that is due while earlier jobs are unfinished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Overlap")]
pub enum OverlapName {
    /// Skip the run.
    #[default]
    Skip,
    /// Start the job after the running one has ended.
    QueueOne,
    /// Start the job after all earlier ones have ended.
    QueueAll,
    /// Cancel the earlier jobs.
    CancelPrevious,
    /// Run the job concurrently.
    Allow,
}

/// Policy for missed runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CatchUp")]
pub enum CatchUpName {
    /// Skip them.
    Skip,
    /// Enqueue one job, for the latest missed run.
    #[default]
    One,
    /// Enqueue a job for each of the latest missed runs.
    All,
}

/// Policy for past, undecided runs when the schedule changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OnEdit")]
pub enum OnEditName {
    /// Decide them by the old rule.
    #[default]
    Keep,
    /// Skip them.
    Drop,
}

/// A request to pause a schedule.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseAsk {
    /// Reason, for people.
    pub reason: String,
}

/// A request to run a schedule now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerAsk {
    /// Arguments that replace those of the schedule.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// Job ID chosen by the client, of any version but 8; repeating the request with it creates no second job.
    #[schemars(regex(pattern = shape::CHOSEN_ID))]
    pub id: Option<String>,
}

/// A request to enqueue jobs for past runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillAsk {
    /// Start of the range, inclusive.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub from: String,
    /// End of the range, inclusive; at most the current time.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub to: String,
    /// List the runs and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Include runs that already had a job.
    #[serde(default)]
    pub again: bool,
}

/// A schedule to preview.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreviewAsk {
    /// The rule.
    #[serde(deserialize_with = "shape::object_there")]
    pub spec: RuleSpec,
    /// Time zone.
    pub time_zone: Option<String>,
    /// Days to skip.
    pub except: Vec<String>,
    /// No runs before this time.
    pub starts_at: Option<String>,
    /// No runs after this time.
    pub ends_at: Option<String>,
    /// Maximum number of runs, counted from the first that the preview lists.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub max_runs: Option<u32>,
    /// Maximum random delay of each run. The preview lists the times before it.
    pub jitter_seconds: Option<f64>,
    /// List runs after this time; default: now.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub from: Option<String>,
    /// Number of runs: 1 to 1000; default 10.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<u64>,
}
