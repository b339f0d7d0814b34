//! Metrics for Prometheus: what this server has seen, and how the store stands.

mod jobs;
mod requests;
mod tally;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use tenure::{Count, Host, QueueInfo, StateName, Tenure, Timestamp};

use self::jobs::Jobs;
use self::requests::Requests;
use self::text::{Format, Text, Type};
use crate::api::Api;
use crate::callbacks::delivery;
use crate::problem::Problem;

pub(crate) use requests::measured;

const KNOWN_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What is counted. Jobs are counted from when somebody asks for the first time: until then nobody pays for it.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    jobs: Arc<Jobs>,
    requests: Requests,
    hears: AtomicBool,
}

impl Metrics {
    fn hear(&self, tenure: &Tenure) {
        if !self.hears.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(&self.jobs).hear(tenure.events()));
        }
    }
}

/// `GET /metrics`
pub(crate) async fn get(api: Api, headers: HeaderMap) -> Result<Response, Problem> {
    let tenure = api.tenure();
    api.metrics().hear(tenure);
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    let (counts, queues) = (tenure.counts().await?, tenure.queues().list().await?);
    let hosts = tenure.hosts().await?;
    let mut text = Text::new(format);
    text.metric("tenure_build_info", Type::Gauge, "The version that answers");
    text.value(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    write_queues(&mut text, &counts, &queues, tenure.now());
    write_workers(&mut text, &hosts);
    text.metric("tenure_claims_waiting", Type::Gauge, "Claims at this server that wait for something to do");
    text.value(&[], api.lines().waiting() as f64);
    text.metric(
        "tenure_events_subscribers",
        Type::Gauge,
        "Jobs at this server of which somebody waits for a change",
    );
    text.value(&[], api.watchers().count() as f64);
    write_deliveries(&mut text, &counts);
    let (sent, dropped) = api.spans().counts().unwrap_or_default();
    text.metric("tenure_spans_total", Type::Counter, "Spans for a collector, told and left out");
    text.value(&[("outcome", "sent")], sent as f64);
    text.value(&[("outcome", "dropped")], dropped as f64);
    api.metrics().jobs.write(&mut text);
    api.metrics().requests.write(&mut text);
    let headers = [(CONTENT_TYPE, format.content_type()), (CACHE_CONTROL, "no-store")];
    Ok((headers, text.end()).into_response())
}

fn write_queues(text: &mut Text, counts: &[Count], queues: &[QueueInfo], now: Timestamp) {
    let mut depth: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for count in counts.iter().filter(|count| !has_ended(count.state)) {
        *depth.entry((count.queue.as_str(), count.state.as_str())).or_default() += count.jobs;
    }
    text.metric("tenure_queue_depth", Type::Gauge, "Jobs that have not ended, by state");
    for ((queue, state), jobs) in depth {
        text.value(&[("queue", queue), ("state", state)], jobs as f64);
    }
    text.metric("tenure_queue_oldest_age_seconds", Type::Gauge, "For how long the first due job has waited");
    for queue in queues {
        let age = queue.oldest_due.map_or(0.0, |due| now.since(due).as_secs_f64());
        text.value(&[("queue", queue.name.as_str())], age);
    }
    text.metric("tenure_queue_paused", Type::Gauge, "1 if a queue hands out no jobs");
    for queue in queues {
        text.value(&[("queue", queue.name.as_str())], f64::from(u8::from(queue.paused)));
    }
}

/// Deliveries that have not come to their end.
fn write_deliveries(text: &mut Text, counts: &[Count]) {
    let waits = |count: &&Count| count.queue.as_str() == delivery::QUEUE && !has_ended(count.state);
    let pending: u64 = counts.iter().filter(waits).map(|count| count.jobs).sum();
    text.metric("tenure_webhook_pending", Type::Gauge, "What webhooks are still to be told");
    text.value(&[], pending as f64);
}

fn has_ended(state: StateName) -> bool {
    matches!(state, StateName::Succeeded | StateName::Failed | StateName::Cancelled)
}

fn write_workers(text: &mut Text, hosts: &[Host]) {
    text.metric("tenure_workers", Type::Gauge, "Programs that run jobs or fire timers and are alive");
    text.value(&[("state", "alive")], hosts.len() as f64);
    let mut slots: BTreeMap<&str, u64> = BTreeMap::new();
    for serves in hosts.iter().flat_map(|host| &host.serves) {
        *slots.entry(serves.queue.as_str()).or_default() += u64::from(serves.slots);
    }
    text.metric(
        "tenure_worker_slots",
        Type::Gauge,
        "Jobs of a queue that all workers together can run at once",
    );
    for (queue, slots) in slots {
        text.value(&[("queue", queue)], slots as f64);
    }
}
