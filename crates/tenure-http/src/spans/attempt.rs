//! The spans of a job: that it was sent, received, done and settled.

use std::sync::Arc;

use tenure::{Claimed, Ending, Error, HostId, JobId, JobRecord, Reserve, Settled, Timestamp, Verdict};

use super::{Begun, Kind, Span, Value};
use crate::api::Api;
use crate::hide::ENCRYPTED;

/// Jobs to which a span of a claim leads at most.
const LINKS: usize = 128;

/// What was sent where.
pub(crate) struct SentJobs<'a> {
    pub queue: &'a str,
    pub kind: &'a str,
    /// The id of the job, if it is one.
    pub id: Option<JobId>,
    pub count: usize,
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn of(operation: &str, of_type: &str, queue: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("messaging.system", text("tenure")),
        ("messaging.operation.name", text(operation)),
        ("messaging.operation.type", text(of_type)),
        ("messaging.destination.name", text(queue)),
    ]
}

fn number(count: usize) -> Value {
    Value::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Tells that jobs were enqueued, or why not.
pub(crate) fn sent(
    api: &Api,
    begun: Option<Begun>,
    began: Timestamp,
    jobs: SentJobs<'_>,
    error: Option<String>,
) {
    let Some(Begun { context, parent }) = begun else { return };
    let mut attributes = of("send", "send", jobs.queue);
    attributes.push(("tenure.kind", text(jobs.kind)));
    attributes.extend(jobs.id.map(|id| ("messaging.message.id", text(id))));
    if jobs.count > 1 {
        attributes.push(("messaging.batch.message_count", number(jobs.count)));
    }
    let (ended, name) = (api.tenure().now(), format!("send {}", jobs.queue));
    let kind = Kind::Producer;
    api.spans().tell(Span { context, parent, links: vec![], name, kind, began, ended, attributes, error });
}

/// Settles and grants, and tells of both.
pub(crate) async fn settle(
    api: &Api,
    endings: Vec<Ending>,
    then: Option<Reserve>,
) -> Result<(Vec<Settled>, Claimed), Error> {
    let tenure = api.tenure();
    if !api.spans().is_on() {
        return tenure.remote().settle(endings, then).await;
    }
    let (began, holder) = (tenure.now(), then.as_ref().map(|ask| ask.holder));
    let ends: Vec<End> = endings.iter().map(End::of).collect();
    let (settled, claimed) = tenure.remote().settle(endings, then).await?;
    let ended = tenure.now();
    for (end, _) in ends.iter().zip(&settled).filter(|(_, settled)| matches!(settled, Settled::Done(_))) {
        end.tell(api, began, ended);
    }
    received(api, holder, &claimed.jobs, began, ended);
    Ok((settled, claimed))
}

/// How an attempt ended.
struct End {
    job: Arc<JobRecord>,
    outcome: &'static str,
    error: Option<(&'static str, String)>,
}

impl End {
    fn of(ending: &Ending) -> Self {
        let (outcome, error) = match &ending.verdict {
            Verdict::Succeeded(_) => ("succeeded", None),
            Verdict::Failed(failure) => ("failed", Some(failure)),
            Verdict::Retry { failure, .. } => ("retried", Some(failure)),
            Verdict::Snoozed(_) | Verdict::Released => ("released", None),
            Verdict::Cancelled(_) => ("cancelled", None),
        };
        let error = error.map(|failure| (failure.cause.as_str(), failure.message.clone()));
        Self { job: Arc::clone(&ending.job), outcome, error }
    }

    fn tell(&self, api: &Api, began: Timestamp, ended: Timestamp) {
        let job = &self.job;
        let Some(Begun { context, parent }) = api.spans().of_attempt(job) else { return };
        let queue = job.queue.as_str();
        let about = || {
            vec![
                ("messaging.message.id", text(job.id)),
                ("tenure.kind", text(&job.kind)),
                ("tenure.attempt", Value::Number(job.attempt.into())),
                ("tenure.outcome", text(self.outcome)),
            ]
        };
        let mut attributes = of("process", "process", queue);
        attributes.extend(about());
        attributes.push(("tenure.max_attempts", Value::Number(job.terms.max_attempts().into())));
        attributes.push(("tenure.lease.fence", text(job.fence.number())));
        attributes.push(("messaging.message.body.size", number(job.args.as_bytes().len())));
        attributes.extend(job.holder.map(|holder| ("messaging.client.id", text(holder))));
        attributes.extend(self.error.iter().map(|(cause, _)| ("error.type", text(cause))));
        let process = Span {
            context,
            parent,
            links: Vec::new(),
            name: format!("process {queue}"),
            kind: Kind::Consumer,
            began: job.started.unwrap_or(began),
            ended: began,
            attributes,
            error: self.error.as_ref().map(|(_, message)| shown(api, message)),
        };
        api.spans().tell(process);
        let operation = match self.outcome {
            "succeeded" => "ack",
            "released" => "release",
            _ => "nack",
        };
        let mut attributes = of(operation, "settle", queue);
        attributes.extend(about());
        let settle = Span {
            context: context.in_trace(),
            parent: Some(context.span),
            links: Vec::new(),
            name: format!("settle {queue}"),
            kind: Kind::Client,
            began,
            ended,
            attributes,
            error: None,
        };
        api.spans().tell(settle);
    }
}

/// Returns the error as a trace may show it: the collector does not encrypt it.
fn shown(api: &Api, message: &str) -> String {
    if api.tenure().encryption_keys().is_empty() { api.hiding().text(message) } else { ENCRYPTED.to_owned() }
}

/// Tells of a claim that was granted something: a trace of its own, which leads to those of the jobs.
fn received(api: &Api, holder: Option<HostId>, jobs: &[Arc<JobRecord>], began: Timestamp, ended: Timestamp) {
    let (Some(first), Some(begun)) = (jobs.first(), api.spans().begin(None)) else { return };
    let queue = first.queue.as_str();
    let links = jobs.iter().filter_map(|job| api.spans().of_attempt(job)).map(|begun| begun.context);
    let mut attributes = of("receive", "receive", queue);
    attributes.push(("messaging.batch.message_count", number(jobs.len())));
    attributes.extend(holder.map(|holder| ("messaging.client.id", text(holder))));
    api.spans().tell(Span {
        context: begun.context,
        parent: None,
        links: links.take(LINKS).collect(),
        name: format!("receive {queue}"),
        kind: Kind::Client,
        began,
        ended,
        attributes,
        error: None,
    });
}
