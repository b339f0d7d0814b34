//! What happened to jobs, as far as this program can see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure::{Event, Happening, JobId, StateName, Timestamp};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::callbacks::delivery;

use super::tally::{BOUNDS, ByLabels, Spans};
use super::text::{Text, Type};

/// Attempts whose start is remembered at most.
const MOST_RUNNING: usize = 100_000;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    enqueued: ByLabels<2, u64>,
    attempts: ByLabels<3, u64>,
    runs: ByLabels<3, Spans>,
    /// When the running attempts began.
    running: BTreeMap<JobId, Timestamp>,
    missed: u64,
}

impl Jobs {
    /// Hears until the store is closed.
    pub(super) async fn hear(self: Arc<Self>, mut events: broadcast::Receiver<Arc<Event>>) {
        loop {
            match events.recv().await {
                Ok(event) => self.lock().note(&event),
                Err(RecvError::Lagged(missed)) => self.lock().missed += missed,
                Err(RecvError::Closed) => return,
            }
        }
    }

    pub(super) fn write(&self, text: &mut Text) {
        let seen = self.lock();
        text.metric("tenure_enqueued_total", Type::Counter, "Jobs that this program has accepted");
        for ([queue, kind], count) in seen.enqueued.iter() {
            text.value(&[("queue", queue), ("kind", kind)], *count as f64);
        }
        text.metric("tenure_attempts_total", Type::Counter, "Attempts that have ended through this program");
        for ([queue, kind, outcome], count) in seen.attempts.iter() {
            text.value(&[("queue", queue), ("kind", kind), ("outcome", outcome)], *count as f64);
        }
        let help = "Attempts of this program to tell a webhook something";
        text.metric("tenure_webhook_deliveries_total", Type::Counter, help);
        let deliveries = seen.attempts.iter().filter(|([_, kind, _], _)| *kind == delivery::KIND);
        for ([_, _, outcome], count) in deliveries {
            text.value(&[("outcome", outcome)], *count as f64);
        }
        let help = "How long attempts took that have ended through this program";
        text.metric("tenure_run_duration_seconds", Type::Histogram, help);
        for ([queue, kind, outcome], spans) in seen.runs.iter() {
            let labels = [("queue", queue), ("kind", kind), ("outcome", outcome)];
            text.histogram(&labels, &BOUNDS, &spans.counts, spans.sum);
        }
        text.metric("tenure_events_missed_total", Type::Counter, "Events that came too fast to be counted");
        text.value(&[], seen.missed as f64);
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn note(&mut self, event: &Event) {
        let (queue, kind) = (event.queue.as_str(), event.kind.as_str());
        match &event.what {
            Happening::Enqueued => *self.enqueued.of([queue, kind]) += 1,
            Happening::Started { .. } => {
                if self.running.len() < MOST_RUNNING {
                    self.running.insert(event.id, event.at);
                }
            }
            Happening::Became { state, failure } => {
                // What did not run here has not ended here.
                let Some(began) = self.running.remove(&event.id) else { return };
                let Some(outcome) = outcome(*state, failure.is_some()) else { return };
                *self.attempts.of([queue, kind, outcome]) += 1;
                self.runs.of([queue, kind, outcome]).add(event.at.since(began).as_secs_f64());
            }
            Happening::Deleted => {
                self.running.remove(&event.id);
            }
            Happening::Progressed { .. } | Happening::AskedToStop => {}
        }
    }
}

/// How an attempt ended whose job left the state of running for this one.
fn outcome(state: StateName, has_failed: bool) -> Option<&'static str> {
    match (state, has_failed) {
        (StateName::Succeeded, _) => Some("succeeded"),
        (StateName::Failed, _) => Some("failed"),
        (StateName::Cancelled, _) => Some("cancelled"),
        (StateName::Scheduled | StateName::Queued | StateName::Blocked, true) => Some("retried"),
        (StateName::Scheduled | StateName::Queued | StateName::Blocked, false) => Some("released"),
        (StateName::Running, _) => None,
    }
}
