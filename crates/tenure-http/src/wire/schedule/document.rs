//! A schedule as it stands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tenure::{CatchUp, OnEdit, Overlap, Skipped, Timer, TimerJob};

use super::super::job::raw;
use super::{CatchUpName, OnEditName, OverlapName, RuleSpec};
use crate::hide::Hiding;

/// A schedule and its state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub struct ScheduleDocument {
    /// Schedule name.
    pub name: String,
    /// The rule.
    pub spec: RuleSpec,
    /// Time zone.
    pub time_zone: String,
    /// Days to skip.
    pub except: Vec<String>,
    /// Maximum random delay of each run.
    pub jitter_seconds: Option<f64>,
    /// No runs before this time.
    pub starts_at: Option<String>,
    /// No runs after this time.
    pub ends_at: Option<String>,
    /// Maximum number of runs in total.
    pub max_runs: Option<u64>,
    /// The schedule in plain words.
    pub description: String,
    /// Policy for a run that is due while earlier jobs are unfinished.
    pub overlap: OverlapName,
    /// With `allow`: maximum number of concurrent jobs.
    pub overlap_max: Option<u32>,
    /// Policy for missed runs.
    pub catch_up: CatchUpName,
    /// With `all`: maximum number of missed runs to catch up.
    pub catch_up_max: Option<u32>,
    /// A run that is later than this is skipped.
    pub max_lateness_seconds: Option<f64>,
    /// Policy for past, undecided runs when the schedule changes.
    pub on_edit: OnEditName,
    /// `true` if a program that declares the schedule also enqueues a job when it starts.
    pub run_on_start: bool,
    /// Version of the declared schedule.
    pub revision: u64,
    /// The job of each run.
    pub job: ScheduledJob,
    /// Start and reason of the pause, if paused.
    pub paused: Option<PauseDocument>,
    /// Next run; omitted if there is none or the schedule is paused.
    pub next_run_at: Option<String>,
    /// The latest enqueued job.
    pub last_run: Option<LastRun>,
    /// The latest skipped run.
    pub last_skip: Option<LastSkip>,
    /// Number of jobs enqueued by the current rule.
    pub runs: u64,
    /// Jobs that were unfinished at the last decision: at most 1000, oldest first.
    pub open_jobs: Vec<String>,
    /// Creation time.
    pub created_at: String,
    /// Time of the last change.
    pub changed_at: String,
    /// Links to related resources.
    pub links: ScheduleLinks,
}

/// The job of each run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduledJob {
    /// Kind of work; selects the handler.
    pub kind: String,
    /// Queue.
    pub queue: String,
    /// Arguments for the handler.
    #[schemars(with = "serde_json::Value")]
    pub args: Option<Box<RawValue>>,
    /// Priority among the due jobs of its queue.
    pub priority: i64,
    /// Maximum number of attempts, if set.
    pub max_attempts: Option<u32>,
    /// Time limit of one attempt.
    pub timeout_seconds: Option<f64>,
    /// Tags for search.
    pub tags: Vec<String>,
    /// User-defined metadata.
    pub meta: BTreeMap<String, String>,
}

/// Start and reason of a pause.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct PauseDocument {
    /// Start of the pause.
    pub since: String,
    /// Reason.
    pub reason: String,
}

/// The latest job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LastRun {
    /// Time at which the job was enqueued.
    pub at: String,
    /// Delay after the scheduled time.
    pub lateness_seconds: Option<f64>,
}

/// A skipped run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LastSkip {
    /// Scheduled time.
    pub at: String,
    /// Reason: `busy`, `missed`, `too_many`, `too_late`, `paused`, `edited` or `id_taken`.
    pub why: &'static str,
}

/// Links of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduleLinks {
    /// This document.
    #[serde(rename = "self")]
    pub this: String,
    /// The next runs.
    pub next: String,
    /// The run history.
    pub runs: String,
}

/// A page of schedules.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SchedulePage {
    /// Schedules by name or next run.
    pub items: Vec<ScheduleDocument>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
    /// `true` if other schedules may run earlier: `order=next` examines only the first 10,000 schedules by name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub capped: bool,
}

impl ScheduleDocument {
    /// Hides secrets in the args and metadata of its job.
    pub(crate) fn hidden(mut self, hiding: &Hiding) -> Self {
        self.job.args = hiding.json(self.job.args);
        hiding.notes(&mut self.job.meta);
        self
    }

    /// What there is to tell of a timer.
    #[must_use]
    pub fn of(timer: &Timer) -> Self {
        let (agreed, schedule) = (&timer.agreed, &timer.agreed.schedule);
        let (policies, bounds) = (agreed.policies, schedule.bounds());
        let this = format!("/v1/schedules/{}", timer.name());
        let (overlap, overlap_max) = overlap(policies.overlap);
        let (catch_up, catch_up_max) = catch_up(policies.catch_up);
        Self {
            name: timer.name().to_string(),
            spec: RuleSpec::of(schedule.rule()),
            time_zone: schedule.zone().name().to_owned(),
            except: schedule.calendar().clone().into(),
            jitter_seconds: schedule.jitter().map(|jitter| jitter.longest().as_secs_f64()),
            starts_at: bounds.starts_at.map(|at| at.to_string()),
            ends_at: bounds.ends_at.map(|at| at.to_string()),
            max_runs: bounds.most_runs,
            description: schedule.describe(),
            overlap,
            overlap_max,
            catch_up,
            catch_up_max,
            max_lateness_seconds: policies.max_lateness.map(|most| most.as_secs_f64()),
            on_edit: match policies.on_edit {
                OnEdit::Keep => OnEditName::Keep,
                OnEdit::Drop => OnEditName::Drop,
            },
            run_on_start: policies.run_on_start,
            revision: agreed.revision,
            job: ScheduledJob::of(&agreed.job),
            paused: timer
                .paused
                .as_ref()
                .map(|pause| PauseDocument { since: pause.since.to_string(), reason: pause.reason.clone() }),
            next_run_at: timer.next.filter(|_| timer.paused.is_none()).map(|next| next.to_string()),
            last_run: timer.fired.map(|fired| LastRun {
                at: fired.to_string(),
                lateness_seconds: timer.lateness.map(|late| late.as_secs_f64()),
            }),
            last_skip: timer
                .last_skip
                .as_ref()
                .map(|(at, why)| LastSkip { at: at.to_string(), why: skipped(why) }),
            runs: timer.runs,
            open_jobs: timer.open.iter().map(ToString::to_string).collect(),
            created_at: timer.created.to_string(),
            changed_at: timer.changed.to_string(),
            links: ScheduleLinks { next: format!("{this}/next"), runs: format!("{this}/runs"), this },
        }
    }
}

impl ScheduledJob {
    fn of(job: &TimerJob) -> Self {
        Self {
            kind: job.kind.to_string(),
            queue: job.queue.to_string(),
            args: raw(job.args.as_bytes()),
            priority: job.priority.number(),
            max_attempts: job.terms.attempts.or(job.terms.retry.as_ref().map(|retry| retry.max_attempts)),
            timeout_seconds: job.terms.timeout.map(|timeout| timeout.as_secs_f64()),
            tags: job.terms.tags.iter().map(ToString::to_string).collect(),
            meta: job.terms.meta.clone(),
        }
    }
}

fn overlap(overlap: Overlap) -> (OverlapName, Option<u32>) {
    match overlap {
        Overlap::Skip => (OverlapName::Skip, None),
        Overlap::QueueOne => (OverlapName::QueueOne, None),
        Overlap::QueueAll => (OverlapName::QueueAll, None),
        Overlap::CancelPrevious => (OverlapName::CancelPrevious, None),
        Overlap::Allow { most } => (OverlapName::Allow, Some(most)),
    }
}

fn catch_up(catch_up: CatchUp) -> (CatchUpName, Option<u32>) {
    match catch_up {
        CatchUp::Skip => (CatchUpName::Skip, None),
        CatchUp::One => (CatchUpName::One, None),
        CatchUp::All { most } => (CatchUpName::All, Some(most)),
    }
}

/// Why a slot was skipped, in a word.
pub(super) fn skipped(why: &Skipped) -> &'static str {
    match why {
        Skipped::Busy { .. } => "busy",
        Skipped::Missed => "missed",
        Skipped::TooMany => "too_many",
        Skipped::TooLate => "too_late",
        Skipped::Paused => "paused",
        Skipped::Edited => "edited",
        Skipped::IdTaken { .. } => "id_taken",
    }
}
