//! A schedule as it stands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tenure::{CatchUp, OnEdit, Overlap, Skipped, Timer, TimerJob};

use super::super::job::raw;
use super::{CatchUpName, OnEditName, OverlapName, RuleSpec};

/// A schedule: what was agreed, and how it stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub struct ScheduleDocument {
    /// Its name.
    pub name: String,
    /// When its slots are.
    pub spec: RuleSpec,
    /// By whose clocks.
    pub time_zone: String,
    /// Days that are left out.
    pub except: Vec<String>,
    /// By how long each slot is put off at most.
    pub jitter_seconds: Option<f64>,
    /// No slot before it.
    pub starts_at: Option<String>,
    /// No slot after it.
    pub ends_at: Option<String>,
    /// So many jobs in all.
    pub max_runs: Option<u64>,
    /// What all that means, in plain words.
    pub description: String,
    /// What becomes of a slot while jobs of earlier ones have not ended.
    pub overlap: OverlapName,
    /// With `allow`: how many jobs run at once.
    pub overlap_max: Option<u32>,
    /// What becomes of slots that were missed.
    pub catch_up: CatchUpName,
    /// With `all`: how many at most.
    pub catch_up_max: Option<u32>,
    /// A slot that is later than this is skipped.
    pub max_lateness_seconds: Option<f64>,
    /// What becomes of slots that have passed without a decision when the schedule is changed.
    pub on_edit: OnEditName,
    /// Whether a program that starts and declares it brings one more job.
    pub run_on_start: bool,
    /// The version of what was declared.
    pub revision: u64,
    /// The job of each slot.
    pub job: ScheduledJob,
    /// Since when and why it does not fire.
    pub paused: Option<PauseDocument>,
    /// Its next slot; none if there is none or while it is paused.
    pub next_run_at: Option<String>,
    /// When a job of it was last enqueued.
    pub last_run: Option<LastRun>,
    /// The last slot that was skipped.
    pub last_skip: Option<LastSkip>,
    /// How many jobs it has brought by this rule.
    pub runs: u64,
    /// Jobs that had not ended when it was last decided about: at most a thousand, the oldest first.
    pub open_jobs: Vec<String>,
    /// When it was first set.
    pub created_at: String,
    /// When it was last changed.
    pub changed_at: String,
    /// Where to go from here.
    pub links: ScheduleLinks,
}

/// The job of each slot.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduledJob {
    /// What sort of work it is.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// What its handler is given.
    #[schemars(with = "serde_json::Value")]
    pub args: Option<Box<RawValue>>,
    /// Its place among the due jobs of its queue.
    pub priority: i64,
    /// Attempts in all, if that was said.
    pub max_attempts: Option<u32>,
    /// How long one attempt may take.
    pub timeout_seconds: Option<f64>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Notes.
    pub meta: BTreeMap<String, String>,
}

/// Since when and why a schedule does not fire.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct PauseDocument {
    /// Since when.
    pub since: String,
    /// Why.
    pub reason: String,
}

/// The last job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LastRun {
    /// When it was enqueued.
    pub at: String,
    /// By how much that was later than its slot.
    pub lateness_seconds: Option<f64>,
}

/// A slot that was skipped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LastSkip {
    /// The slot.
    pub at: String,
    /// Why: `busy`, `missed`, `too_many`, `too_late`, `paused` or `edited`.
    pub why: &'static str,
}

/// Where to go from a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScheduleLinks {
    /// This document.
    #[serde(rename = "self")]
    pub this: String,
    /// Its next slots.
    pub next: String,
    /// What became of its slots.
    pub runs: String,
}

/// A page of schedules.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SchedulePage {
    /// The schedules, by name or by what comes.
    pub items: Vec<ScheduleDocument>,
    /// What to give as `cursor` for the next page; none at the end.
    pub next_cursor: Option<String>,
    /// Whether others may fire sooner: by `order=next` only the first ten thousand by name are looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub capped: bool,
}

impl ScheduleDocument {
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
    }
}
