//! Telling spans to a collector: OTLP over HTTP, in JSON.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tenure::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Span, Told};
use crate::otlp::{Collector, Sender, Sent, scope};

/// Spans of one request.
const TOGETHER: usize = 512;
/// For so long more are waited for.
const GATHERED: Duration = Duration::from_secs(1);
/// The waits between attempts.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// What tells.
pub(super) struct Export {
    sender: Sender,
    clock: Arc<dyn Clock>,
    told: Arc<Told>,
}

impl Export {
    pub(super) fn new(collector: Collector, clock: Arc<dyn Clock>, told: Arc<Told>) -> Self {
        Self { sender: Sender::new(collector, &clock), clock, told }
    }

    /// Tells until nobody has anything to tell any more, or until it is closed and all that was said before is told.
    pub(super) async fn run(self, mut from: mpsc::Receiver<Span>, closing: CancellationToken) {
        let mut some = Vec::with_capacity(TOGETHER);
        let mut is_troubled = false;
        loop {
            let came = tokio::select! {
                biased;
                came = from.recv_many(&mut some, TOGETHER) => came,
                () = closing.cancelled() => 0,
            };
            if came == 0 {
                return;
            }
            if some.len() < TOGETHER {
                tokio::select! {
                    biased;
                    () = closing.cancelled() => {}
                    () = self.clock.sleep(GATHERED) => {}
                }
                while some.len() < TOGETHER
                    && let Ok(span) = from.try_recv()
                {
                    some.push(span);
                }
            }
            let (count, body) = (some.len() as u64, self.body(&some));
            some.clear();
            match self.tell(body, &closing).await {
                Ok(()) => {
                    self.told.sent.fetch_add(count, Ordering::Relaxed);
                    is_troubled = false;
                }
                Err(why) => {
                    self.told.dropped.fetch_add(count, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_troubled, true) {
                        tracing::warn!(why, "the trace collector refuses spans; dropping them");
                    }
                }
            }
        }
    }

    async fn tell(&self, body: Vec<u8>, closing: &CancellationToken) -> Result<(), String> {
        let body = bytes::Bytes::from(body);
        let mut why = String::new();
        for wait in WAITS.into_iter().map(Some).chain([None]) {
            match self.sender.send(body.clone()).await {
                Sent::Taken(_) => return Ok(()),
                Sent::Refused(status) => return Err(format!("it answered with status {status}")),
                Sent::Later(later) => why = later,
            }
            let Some(wait) = wait else { break };
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                () = self.clock.sleep(wait) => {}
            }
        }
        Err(why)
    }

    fn body(&self, spans: &[Span]) -> Vec<u8> {
        let spans: Vec<_> = spans.iter().map(Span::document).collect();
        let document = json!({ "resourceSpans": [{
            "resource": self.sender.collector().resource(),
            "scopeSpans": [{ "scope": scope(), "spans": spans }],
        }] });
        document.to_string().into_bytes()
    }
}
