//! Queues as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tenure::{Invalid, Limit, QueueInfo, Rate, SpanCounts, StatsStep, Went, limits, seconds};

use super::{RetainDocument, RetrySpec, shape};

/// Settings of a queue. Job counts change all the time and are available separately.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct QueueDocument {
    /// Queue name.
    pub name: String,
    /// `true` if the queue is paused.
    pub paused: bool,
    /// Maximum number of running jobs across all workers; omitted if unlimited.
    pub max_running: Option<u32>,
    /// Rate limit on job starts; omitted if unlimited.
    pub rate: Option<RateDocument>,
    /// Maximum number of waiting jobs; omitted if unlimited.
    pub max_depth: Option<u64>,
    /// Retry policy of jobs that set none; if omitted, the worker's policy or the default applies.
    pub default_retry: Option<RetrySpec>,
    /// Retention of finished jobs that set none; if omitted, the default applies.
    pub retain_seconds: Option<RetainDocument>,
    /// Lease duration of jobs granted to workers that request none; if omitted, the default applies.
    pub lease_seconds: Option<f64>,
    /// Links to related resources.
    pub links: QueueLinks,
}

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rate")]
pub struct RateDocument {
    /// Number of jobs that may start …
    #[serde(deserialize_with = "shape::whole_there")]
    #[schemars(range(min = 1, max = limits::RATE_TIMES))]
    pub limit: u32,
    /// … per this many seconds.
    pub per_seconds: f64,
    /// Number of jobs that may start at once after a quiet period; default: `limit`.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::RATE_TIMES))]
    pub burst: Option<u32>,
}

/// Links of a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueLinks {
    /// This document.
    #[serde(rename = "self")]
    pub this: String,
    /// The queue's job counts.
    pub stats: String,
    /// The queue's jobs.
    pub jobs: String,
}

/// A page of queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueList {
    /// Queues by name.
    pub items: Vec<QueueDocument>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// Settings of a queue. Omitted fields get their defaults.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// `true` to pause the queue.
    pub paused: bool,
    /// Maximum number of running jobs across all workers.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::LIMIT_MOST))]
    pub max_running: Option<u32>,
    /// Rate limit on job starts.
    #[serde(deserialize_with = "shape::object")]
    pub rate: Option<RateDocument>,
    /// Maximum number of waiting jobs; further jobs are refused with `queue-full`.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::QUEUE_DEPTH))]
    pub max_depth: Option<u64>,
    /// Retry policy of jobs that set none.
    #[serde(deserialize_with = "shape::object")]
    pub default_retry: Option<RetrySpec>,
    /// Retention of finished jobs that set none.
    #[serde(deserialize_with = "shape::object")]
    pub retain_seconds: Option<RetainDocument>,
    /// Lease duration of jobs granted to workers that request none.
    #[schemars(range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    pub lease_seconds: Option<f64>,
}

/// Changes to a queue. Omitted fields keep their values; `null` removes a limit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePatch {
    /// `true` to pause the queue.
    pub paused: Option<bool>,
    /// Maximum number of running jobs across all workers.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u32>", range(min = 1, max = limits::LIMIT_MOST))]
    pub max_running: Option<Option<u32>>,
    /// Rate limit on job starts.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RateDocument>")]
    pub rate: Option<Option<RateDocument>>,
    /// Maximum number of waiting jobs; further jobs are refused with `queue-full`.
    #[serde(deserialize_with = "shape::whole_or_null")]
    #[schemars(with = "Option<u64>", range(min = 1, max = limits::QUEUE_DEPTH))]
    pub max_depth: Option<Option<u64>>,
    /// Retry policy of jobs that set none.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RetrySpec>")]
    pub default_retry: Option<Option<RetrySpec>>,
    /// Retention of finished jobs that set none.
    #[serde(deserialize_with = "shape::object_or_null")]
    #[schemars(with = "Option<RetainDocument>")]
    pub retain_seconds: Option<Option<RetainDocument>>,
    /// Lease duration of jobs granted to workers that request none.
    #[serde(deserialize_with = "said")]
    #[schemars(with = "Option<f64>", range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    pub lease_seconds: Option<Option<f64>>,
}

/// Job counts of a queue, maintained with every change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueStats {
    /// Queue name.
    pub queue: String,
    /// `true` if the queue is paused.
    pub paused: bool,
    /// Number of jobs by state, without states that have none. A job counts as scheduled until it is found due.
    pub jobs: BTreeMap<&'static str, u64>,
    /// Number of jobs by kind; at most 1000 kinds.
    pub lanes: Vec<LaneStats>,
    /// Due time of the oldest due job; omitted if no job is due.
    pub oldest_due_at: Option<String>,
    /// Age of the oldest due job.
    pub oldest_due_seconds: Option<f64>,
    /// Statistics per step, if a window was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<StepDocument>>,
}

/// Statistics of one step.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StatsStep")]
pub struct StepDocument {
    /// Start of the step.
    pub at: String,
    /// Jobs enqueued.
    pub enqueued: u64,
    /// Jobs succeeded.
    pub succeeded: u64,
    /// Jobs failed for good.
    pub failed: u64,
    /// Jobs cancelled while running.
    pub cancelled: u64,
    /// Attempts that failed and will be retried.
    pub retried: u64,
    /// Attempts released or snoozed.
    pub released: u64,
    /// Median wait between due time and start; omitted if no attempt ended.
    pub wait_p50_seconds: Option<f64>,
    /// 95th percentile of the wait.
    pub wait_p95_seconds: Option<f64>,
    /// Median run time.
    pub run_p50_seconds: Option<f64>,
    /// 95th percentile of the run time.
    pub run_p95_seconds: Option<f64>,
}

/// Job counts of one kind in a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LaneStats {
    /// Kind.
    pub kind: String,
    /// Number of jobs by state.
    pub jobs: BTreeMap<&'static str, u64>,
}

/// Job counts of a page of queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stats {
    /// Queues by name.
    pub items: Vec<QueueStats>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
    /// Statistics of all queues together, per step, on the first page, if a window was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<StepDocument>>,
}

/// A page of the kinds that have jobs or a description.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KindList {
    /// Kinds by name.
    pub items: Vec<KindStats>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// Job counts of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KindStats {
    /// Kind.
    pub kind: String,
    /// Queues that contain jobs of this kind; at most 1000.
    pub queues: Vec<String>,
    /// Number of jobs by state.
    pub jobs: BTreeMap<&'static str, u64>,
    /// Purpose of the kind, if described.
    pub description: Option<String>,
    /// Owner of the kind, if described.
    pub owner: Option<String>,
    /// `true` if args are validated against a schema.
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
    pub(super) fn of(rate: &Rate) -> Self {
        Self { limit: rate.times, per_seconds: rate.per.as_secs_f64(), burst: Some(rate.burst) }
    }

    pub(super) fn rate(self) -> Result<Rate, Invalid> {
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
pub(super) fn checked(limit: Limit) -> Result<Limit, Invalid> {
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
