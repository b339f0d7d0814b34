//! A job as clients see it.

use std::collections::BTreeMap;

use crate::hide::Hiding;
use crate::site::Site;
use crate::trace;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tenure::{JobRecord as Job, State, StateName, Timestamp, Why};

/// A job. More fields and values may be added; clients must ignore those they do not know.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct JobDocument {
    /// Job ID, a UUID. IDs made by the server contain the creation time.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
    /// Kind of work; selects the handler.
    pub kind: String,
    /// Queue.
    pub queue: String,
    /// `scheduled`, `queued`, `blocked`, `running`, `succeeded`, `failed` or `cancelled`.
    pub state: &'static str,
    /// The state in the vocabulary of long-running operations: `NotStarted`, `Running`, `Succeeded`, `Failed` or
    /// `Canceled`.
    pub status: &'static str,
    /// Arguments for the handler.
    #[schemars(with = "serde_json::Value")]
    pub args: Option<Box<RawValue>>,
    /// Tags for search.
    pub tags: Vec<String>,
    /// User-defined metadata.
    pub meta: BTreeMap<String, String>,
    /// Name of the access token that enqueued the job.
    pub enqueued_by: Option<String>,
    /// W3C Trace Context `traceparent` of the enqueuing request.
    pub traceparent: Option<String>,
    /// W3C Trace Context `tracestate`.
    pub tracestate: Option<String>,
    /// Priority among the due jobs of its queue: -100 (first) to 100 (last).
    pub priority: i64,
    /// Number of attempts so far, including the running one.
    pub attempt: u32,
    /// Maximum number of attempts, if set for this job.
    pub max_attempts: Option<u32>,
    /// Creation time.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// Time at which the job is or was last due; omitted once it has ended.
    #[schemars(extend("format" = "date-time"))]
    pub run_at: Option<String>,
    /// Start of the current or last attempt.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: Option<String>,
    /// Time at which the job ended.
    #[schemars(extend("format" = "date-time"))]
    pub finished_at: Option<String>,
    /// Time from which the job may be deleted. It moves on while unfinished jobs depend on the job.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// Reason for waiting: `enqueued`, `retry`, `snoozed`, `released`, `lost` or `asked`.
    pub waits_because: Option<&'static str>,
    /// Time at which cancellation was requested.
    #[schemars(extend("format" = "date-time"))]
    pub cancel_requested_at: Option<String>,
    /// Time limit of one attempt.
    pub timeout_seconds: Option<f64>,
    /// Progress.
    pub progress: Option<ProgressDocument>,
    /// The job's lease, while it is running.
    pub lease: Option<LeaseDocument>,
    /// Jobs with the same ordering key run one at a time, in order.
    pub ordering_key: Option<String>,
    /// Schedule that created the job.
    pub schedule: Option<String>,
    /// Jobs with the same limit key share a limit.
    pub limit_key: Option<String>,
    /// Maximum number of running jobs with this limit key, as this job set it. `GET /v1/limits/{key}` shows the limit
    /// in effect.
    pub limit_max_running: Option<u32>,
    /// Jobs with different share keys take turns in their queue.
    pub share_key: Option<String>,
    /// Result, once the job has succeeded.
    #[schemars(with = "serde_json::Value")]
    pub result: Option<Box<RawValue>>,
    /// Path of the resource that the job created.
    pub resource_location: Option<String>,
    /// The same as an absolute URL, for clients of long-running operations. It is not described: many generators of clients
    /// would give both fields one name.
    #[schemars(skip)]
    #[serde(rename = "resourceLocation", skip_serializing_if = "Option::is_none")]
    pub resource_location_again: Option<String>,
    /// The last error.
    pub error: Option<ErrorDocument>,
    /// Links to related resources.
    pub links: Links,
}

/// Progress of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Progress")]
pub struct ProgressDocument {
    /// Fraction done, from 0 to 1.
    pub fraction: f64,
    /// Current step.
    pub message: String,
}

/// The lease of a running job.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JobLease")]
pub struct LeaseDocument {
    /// ID of the host or worker.
    #[schemars(extend("format" = "uuid"))]
    pub worker_id: String,
    /// Fencing token; larger for every later delivery.
    pub fence: String,
    /// `true` if the lease has expired, so that another worker can take the job.
    pub lapsed: bool,
}

/// An error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JobError")]
pub struct ErrorDocument {
    /// Error category, such as `error`, `panic` or `timed_out`.
    #[serde(rename = "type")]
    pub cause: &'static str,
    /// Error message.
    pub detail: String,
    /// Attempt that failed.
    pub attempt: u32,
}

/// Links of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JobLinks")]
pub struct Links {
    /// This document.
    #[serde(rename = "self")]
    pub this: String,
    /// Status page of the job, which redirects to the resource it created.
    pub queue_item: String,
    /// Cancels the job, while it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelLink>,
    /// The job's result.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The job's attempts.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<String>,
    /// The job's log.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
    /// Stream of the job's changes.
    pub events: String,
}

/// The cancel operation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CancelLink")]
pub struct CancelLink {
    /// URL.
    pub href: String,
    /// HTTP method.
    pub method: &'static str,
}

impl JobDocument {
    /// What there is to tell of a job at this instant.
    #[must_use]
    pub fn of(job: &Job, now: Timestamp) -> Self {
        let state = job.state.name(now);
        let place = job.output.as_ref().and_then(|output| output.place.clone());
        Self {
            id: job.id.to_string(),
            kind: job.kind.as_str().to_owned(),
            queue: job.queue.as_str().to_owned(),
            state: state.as_str(),
            status: status(state, job.attempt),
            args: raw(job.args.as_bytes()),
            tags: job.terms.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
            meta: job.terms.meta.clone(),
            enqueued_by: job.terms.owner.clone(),
            traceparent: job.terms.meta.get(trace::PARENT).cloned(),
            tracestate: job.terms.meta.get(trace::STATE).cloned(),
            priority: job.priority.number(),
            attempt: job.attempt,
            max_attempts: job.terms.attempts.or(job.terms.retry.as_ref().map(|retry| retry.max_attempts)),
            created_at: job.created.to_string(),
            run_at: job.state.due().map(|due| due.to_string()),
            started_at: job.started.map(|started| started.to_string()),
            finished_at: match job.state {
                State::Finished { at, .. } => Some(at.to_string()),
                State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
            },
            expires_at: job.expires.map(|expires| expires.to_string()),
            waits_because: waits_because(&job.state),
            cancel_requested_at: job.cancel.as_ref().map(|cancel| cancel.at.to_string()),
            timeout_seconds: job.terms.timeout.map(|timeout| timeout.as_secs_f64()),
            progress: job.progress.as_ref().map(|progress| ProgressDocument {
                fraction: progress.fraction,
                message: progress.message.clone(),
            }),
            lease: lease(job, now),
            ordering_key: job.terms.ordering.as_ref().map(|ordering| ordering.key.as_str().to_owned()),
            schedule: job.terms.slot.as_ref().map(|slot| slot.timer.as_str().to_owned()),
            limit_key: job.terms.limit.as_ref().map(|limit| limit.key.as_str().to_owned()),
            limit_max_running: job.terms.limit.as_ref().and_then(|limit| limit.most),
            share_key: job.terms.share.as_ref().map(|key| key.as_str().to_owned()),
            result: job.output.as_ref().and_then(|output| raw(&output.value)),
            resource_location_again: place.clone(),
            resource_location: place,
            error: job.failure.as_ref().map(|failure| ErrorDocument {
                cause: failure.cause.as_str(),
                detail: failure.message.clone(),
                attempt: job.attempt,
            }),
            links: Links::of(job),
        }
    }
}

impl JobDocument {
    /// Completes the URLs for a client of this site, and returns whether the text of the document is another one there.
    pub(crate) fn address(&mut self, site: &Site) -> bool {
        self.links.mount(site);
        let path = self.resource_location_again.as_mut().filter(|place| place.starts_with('/'));
        let path = path.filter(|_| !site.server().is_empty());
        let is_path = path.map(|path| path.insert_str(0, site.server())).is_some();
        is_path || site.has_only_items() || !site.prefix().is_empty()
    }

    /// Whether it runs, and the time of whoever has it is over.
    pub(crate) fn has_lapsed(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.lapsed)
    }

    /// The same for its tag: that the time of whoever has it passes makes it no other job.
    pub(crate) fn timeless(mut self) -> Self {
        if let Some(lease) = &mut self.lease {
            lease.lapsed = false;
        }
        self
    }

    /// The same without what is hidden.
    pub(crate) fn hidden(mut self, hiding: &Hiding) -> Self {
        self.args = hiding.json(self.args);
        self.result = hiding.json(self.result);
        hiding.notes(&mut self.meta);
        if let Some(error) = &mut self.error {
            error.detail = hiding.text(&error.detail);
        }
        if let Some(progress) = &mut self.progress {
            progress.message = hiding.text(&progress.message);
        }
        self
    }
}

impl Links {
    fn of(job: &Job) -> Self {
        let this = format!("/v1/jobs/{}", job.id);
        let item = format!("/queue/{}", job.id);
        let cancel = CancelLink { href: item.clone(), method: "DELETE" };
        Self {
            queue_item: item,
            cancel: (!job.state.is_finished()).then_some(cancel),
            result: Some(format!("{this}/result")),
            attempts: Some(format!("{this}/attempts")),
            logs: Some(format!("{this}/logs")),
            events: format!("{this}/events"),
            this,
        }
    }

    /// Leads to routes that this site has, under its prefix.
    fn mount(&mut self, site: &Site) {
        if site.has_only_items() {
            self.this = format!("{}?redirect=false", self.queue_item);
            self.events.clone_from(&self.queue_item);
            (self.result, self.attempts, self.logs) = (None, None, None);
        }
        if site.prefix().is_empty() {
            return;
        }
        let cancel = self.cancel.as_mut().map(|cancel| &mut cancel.href);
        let more = [&mut self.result, &mut self.attempts, &mut self.logs].into_iter().flatten();
        for link in
            [&mut self.this, &mut self.queue_item, &mut self.events].into_iter().chain(more).chain(cancel)
        {
            link.insert_str(0, site.prefix());
        }
    }
}

/// JSON text as it was given; nothing if there is none, or if it is none.
pub(super) fn raw(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}

fn status(state: StateName, attempt: u32) -> &'static str {
    match state {
        // It has begun once: who waits for it has seen it run.
        StateName::Scheduled | StateName::Queued if attempt > 0 => "Running",
        StateName::Scheduled | StateName::Queued | StateName::Blocked => "NotStarted",
        StateName::Running => "Running",
        StateName::Succeeded => "Succeeded",
        StateName::Failed => "Failed",
        StateName::Cancelled => "Canceled",
    }
}

fn waits_because(state: &State) -> Option<&'static str> {
    let why = match state {
        State::Waiting { why, .. } | State::Blocked { why, .. } => why,
        State::Running { .. } | State::Finished { .. } => return None,
    };
    Some(match why {
        Why::Enqueued => "enqueued",
        Why::Retry => "retry",
        Why::Snoozed => "snoozed",
        Why::Released => "released",
        Why::Lost => "lost",
        Why::Asked => "asked",
    })
}

fn lease(job: &Job, now: Timestamp) -> Option<LeaseDocument> {
    let State::Running { holder, until, .. } = job.state else { return None };
    // Until when is left out: with each renewal the document would be another one.
    Some(LeaseDocument { worker_id: holder.to_string(), fence: job.fence.to_string(), lapsed: until <= now })
}
