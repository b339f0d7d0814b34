//! Queues as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tenure::{Invalid, Limit, QueueInfo, Rate, SpanCounts, StatsStep, Went, limits, seconds};

use super::{RetainDocument, RetrySpec, shape};

/// A queue: what was agreed about it. How many jobs are in it is told by itself, since that changes all the time.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct QueueDocument {
    /// Its name.
    pub name: String,
    /// Whether it hands out no jobs.
    pub paused: bool,
    /// How many of its jobs run at once, over all hosts; any number if it is not said.
    pub max_running: Option<u32>,
    /// How many of its jobs start in a time; any number if it is not said.
    pub rate: Option<RateDocument>,
    /// How many jobs may wait in it; any number if it is not said.
    pub max_depth: Option<u64>,
    /// How a job is tried again that does not say it; as its worker knows, or as usual, if this is not said either.
    pub default_retry: Option<RetrySpec>,
    /// For how long a job is kept after its end that does not say it; as usual if this is not said either.
    pub retain_seconds: Option<RetainDocument>,
    /// For how long a job is granted to a worker that does not say it; as usual if this is not said either.
    pub lease_seconds: Option<f64>,
    /// Where to go from here.
    pub links: QueueLinks,
}

/// So many starts in a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rate")]
pub struct RateDocument {
    /// How many start …
    #[serde(deserialize_with = "shape::whole_there")]
    #[schemars(range(min = 1, max = limits::RATE_TIMES))]
    pub limit: u32,
    /// … in this time.
    pub per_seconds: f64,
    /// How many may start at once when none has for a while; all of them if it is not said.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::RATE_TIMES))]
    pub burst: Option<u32>,
}

/// Where to go from a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueLinks {
    /// This document.
    #[serde(rename = "self")]
    pub this: String,
    /// How many jobs are in it.
    pub stats: String,
    /// Its jobs.
    pub jobs: String,
}

/// All queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueList {
    /// The queues, by name.
    pub items: Vec<QueueDocument>,
}

/// What is to be agreed about a queue. What is not said is as for a new one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// Whether it hands out no jobs.
    pub paused: bool,
    /// How many of its jobs run at once, over all hosts.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::LIMIT_MOST))]
    pub max_running: Option<u32>,
    /// How many of its jobs start in a time.
    #[serde(deserialize_with = "shape::object")]
    pub rate: Option<RateDocument>,
    /// How many jobs may wait in it; who enqueues one more is refused with `queue-full`.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::QUEUE_DEPTH))]
    pub max_depth: Option<u64>,
    /// How a job is tried again that does not say it.
    #[serde(deserialize_with = "shape::object")]
    pub default_retry: Option<RetrySpec>,
    /// For how long a job is kept after its end that does not say it.
    #[serde(deserialize_with = "shape::object")]
    pub retain_seconds: Option<RetainDocument>,
    /// For how long a job is granted to a worker that does not say it.
    #[schemars(range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    pub lease_seconds: Option<f64>,
}

/// What is to be changed about a queue. What is not said stays; `null` lifts a bound.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePatch {
    /// Whether it hands out no jobs.
    pub paused: Option<bool>,
    /// How many of its jobs run at once, over all hosts.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u32>", range(min = 1, max = limits::LIMIT_MOST))]
    pub max_running: Option<Option<u32>>,
    /// How many of its jobs start in a time.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RateDocument>")]
    pub rate: Option<Option<RateDocument>>,
    /// How many jobs may wait in it; who enqueues one more is refused with `queue-full`.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u64>", range(min = 1, max = limits::QUEUE_DEPTH))]
    pub max_depth: Option<Option<u64>>,
    /// How a job is tried again that does not say it.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RetrySpec>")]
    pub default_retry: Option<Option<RetrySpec>>,
    /// For how long a job is kept after its end that does not say it.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RetainDocument>")]
    pub retain_seconds: Option<Option<RetainDocument>>,
    /// For how long a job is granted to a worker that does not say it.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>", range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    pub lease_seconds: Option<Option<f64>>,
}

/// How many jobs are in a queue. Kept up to date with each change, not counted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueStats {
    /// The queue.
    pub queue: String,
    /// Whether it hands out no jobs.
    pub paused: bool,
    /// How many are in each state; states that none is in are left out. A job counts as scheduled until somebody has found
    /// it due.
    pub jobs: BTreeMap<&'static str, u64>,
    /// The same for each kind.
    pub lanes: Vec<LaneStats>,
    /// Since when its longest waiting job has been due; none if none is.
    pub oldest_due_at: Option<String>,
    /// For how long.
    pub oldest_due_seconds: Option<f64>,
    /// How things went in it, step by step, if a window was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<StepDocument>>,
}

/// How things went in one step of a series.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StatsStep")]
pub struct StepDocument {
    /// When it began.
    pub at: String,
    /// Jobs that were enqueued.
    pub enqueued: u64,
    /// Jobs that have succeeded.
    pub succeeded: u64,
    /// Jobs that have failed for good.
    pub failed: u64,
    /// Jobs that were cancelled while they ran.
    pub cancelled: u64,
    /// Attempts that failed, and are made again.
    pub retried: u64,
    /// Attempts that were given back or put off.
    pub released: u64,
    /// Half of the attempts began within so long after their jobs were due; none if none ended.
    pub wait_p50_seconds: Option<f64>,
    /// And 95 of 100 within so long.
    pub wait_p95_seconds: Option<f64>,
    /// Half of the attempts took so long or less.
    pub run_p50_seconds: Option<f64>,
    /// And 95 of 100 so long or less.
    pub run_p95_seconds: Option<f64>,
}

/// How many jobs of one kind are in a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LaneStats {
    /// The kind.
    pub kind: String,
    /// How many are in each state.
    pub jobs: BTreeMap<&'static str, u64>,
}

/// How many jobs are in all queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stats {
    /// The queues, by name.
    pub items: Vec<QueueStats>,
    /// How things went in all of them together, step by step, if a window was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<StepDocument>>,
}

/// All kinds of which jobs are kept, or about which something is said.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KindList {
    /// The kinds, by name.
    pub items: Vec<KindStats>,
}

/// How many jobs of a kind there are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KindStats {
    /// The kind.
    pub kind: String,
    /// In which queues they are.
    pub queues: Vec<String>,
    /// How many are in each state.
    pub jobs: BTreeMap<&'static str, u64>,
    /// What it is for, if that is said.
    pub description: Option<String>,
    /// Who answers for it, if that is said.
    pub owner: Option<String>,
    /// Whether its args are checked against a schema.
    pub has_schema: bool,
}

/// What is there, even if it is `null`; what is not there is left at its default.
pub(crate) fn said<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl QueueDocument {
    /// What there is to tell of a queue.
    #[must_use]
    pub fn of(queue: &QueueInfo) -> Self {
        // The name of a queue needs no encoding.
        let this = format!("/v1/queues/{}", queue.name);
        Self {
            name: queue.name.to_string(),
            paused: queue.paused,
            max_running: queue.limit.most,
            rate: queue.limit.rate.map(|rate| RateDocument::of(&rate)),
            max_depth: queue.terms.max_depth,
            default_retry: queue.terms.retry.as_ref().map(RetrySpec::of),
            retain_seconds: queue.terms.retention.as_ref().map(RetainDocument::of),
            lease_seconds: queue.terms.lease.map(|span| span.as_secs_f64()),
            links: QueueLinks {
                stats: format!("{this}/stats"),
                jobs: format!("/v1/jobs?queue={}", queue.name),
                this,
            },
        }
    }
}

impl StepDocument {
    /// What there is to tell of a step.
    #[must_use]
    pub fn of(step: &StatsStep) -> Self {
        let Went { enqueued, succeeded, failed, cancelled, retried, released, waited, ran } = &step.went;
        let within = |spans: &SpanCounts, share| spans.within(share).map(|span| span.as_secs_f64());
        Self {
            at: step.at.to_string(),
            enqueued: *enqueued,
            succeeded: *succeeded,
            failed: *failed,
            cancelled: *cancelled,
            retried: *retried,
            released: *released,
            wait_p50_seconds: within(waited, 0.5),
            wait_p95_seconds: within(waited, 0.95),
            run_p50_seconds: within(ran, 0.5),
            run_p95_seconds: within(ran, 0.95),
        }
    }
}

impl RateDocument {
    fn of(rate: &Rate) -> Self {
        Self { limit: rate.times, per_seconds: rate.per.as_secs_f64(), burst: Some(rate.burst) }
    }

    fn rate(self) -> Result<Rate, Invalid> {
        let rate = Rate::new(self.limit, seconds("rate.per_seconds", self.per_seconds)?);
        Ok(self.burst.map_or(rate, |burst| rate.burst(burst)))
    }
}

impl QueueSpec {
    /// The limit that is meant.
    pub(crate) fn limit(&self) -> Result<Limit, Invalid> {
        checked(Limit { most: self.max_running, rate: self.rate.map(RateDocument::rate).transpose()? })
    }
}

impl QueuePatch {
    /// What becomes of a limit, if it changes.
    pub(crate) fn limit(&self, now: Limit) -> Result<Option<Limit>, Invalid> {
        if self.max_running.is_none() && self.rate.is_none() {
            return Ok(None);
        }
        let rate = self.rate.map(|rate| rate.map(RateDocument::rate).transpose()).transpose()?;
        checked(Limit { most: self.max_running.unwrap_or(now.most), rate: rate.unwrap_or(now.rate) })
            .map(Some)
    }
}

/// A limit within the limits; what is wrong with it is told by its field here.
fn checked(limit: Limit) -> Result<Limit, Invalid> {
    let named = |wrong: Invalid| {
        let field = match wrong.field.as_str() {
            "limit.most" => "max_running",
            "limit.rate.times" => "rate.limit",
            "limit.rate.per" => "rate.per_seconds",
            "limit.rate.burst" => "rate.burst",
            _ => return wrong,
        };
        Invalid { field: field.to_owned(), ..wrong }
    };
    limit.check().map(|()| limit).map_err(named)
}
