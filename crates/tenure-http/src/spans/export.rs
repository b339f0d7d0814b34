//! Telling spans to a collector: OTLP over HTTP, in JSON.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method};
use serde_json::json;
use tenure::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::span::attribute;
use super::{Span, Told, Traces, Value};
use crate::callbacks::caller::{Call, Caller};
use crate::callbacks::target::Target;

/// Spans of one request.
const TOGETHER: usize = 512;
/// For so long more are waited for.
const GATHERED: Duration = Duration::from_secs(1);
/// How long a collector may take.
const WITHIN: Duration = Duration::from_secs(10);
/// As much of its answer is read.
const ANSWER_BYTES: usize = 64 * 1024;
/// The waits between attempts.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// What tells.
pub(super) struct Export {
    traces: Traces,
    caller: Caller,
    clock: Arc<dyn Clock>,
    told: Arc<Told>,
}

/// What became of a request.
enum Came {
    Taken,
    Later,
    Never(String),
}

impl Export {
    pub(super) fn new(traces: Traces, caller: Caller, clock: Arc<dyn Clock>, told: Arc<Told>) -> Self {
        Self { traces, caller, clock, told }
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
            match self.once(body.clone()).await {
                Came::Taken => return Ok(()),
                Came::Never(why) => return Err(why),
                Came::Later => "unreachable or overloaded".clone_into(&mut why),
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

    async fn once(&self, body: bytes::Bytes) -> Came {
        let target = match Target::read(&self.traces.endpoint) {
            Ok(target) => target,
            Err(wrong) => return Came::Never(wrong.to_string()),
        };
        let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        for (name, value) in &self.traces.headers {
            let named = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value).ok());
            headers.extend(named);
        }
        let call = Call { method: Method::POST, target, headers, body, within: WITHIN, most: ANSWER_BYTES };
        match self.caller.call(call).await {
            Ok(heard) if heard.status.is_success() => Came::Taken,
            Ok(heard) if matches!(heard.status.as_u16(), 429 | 502..=504) => Came::Later,
            Ok(heard) => Came::Never(format!("it answered with status {}", heard.status.as_u16())),
            Err(_) => Came::Later,
        }
    }

    fn body(&self, spans: &[Span]) -> Vec<u8> {
        let named = self.traces.attributes.iter();
        let service = attribute("service.name", &Value::Text(self.traces.service.clone()));
        let attributes: Vec<_> = std::iter::once(service)
            .chain(named.map(|(name, value)| attribute(name, &Value::Text(value.clone()))))
            .collect();
        let spans: Vec<_> = spans.iter().map(Span::document).collect();
        let scope = json!({ "name": "tenure", "version": env!("CARGO_PKG_VERSION") });
        let document = json!({ "resourceSpans": [{
            "resource": { "attributes": attributes },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] });
        document.to_string().into_bytes()
    }
}
