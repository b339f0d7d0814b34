//! How requests were answered, and how long that took.

use std::sync::{Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::tally::{BOUNDS, ByLabels, Spans};
use super::text::{Text, Type};
use crate::api::Api;

/// What was answered so far.
#[derive(Debug, Default)]
pub(super) struct Requests {
    spans: Mutex<ByLabels<3, Spans>>,
}

impl Requests {
    fn add(&self, labels: [&str; 3], seconds: f64) {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).of(labels).add(seconds);
    }

    pub(super) fn write(&self, text: &mut Text) {
        let help = "How long it took until the head of an answer was there";
        text.metric("http_server_request_duration_seconds", Type::Histogram, help);
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        for ([method, route, status], spans) in spans.iter() {
            let labels = [
                ("http_request_method", method),
                ("http_route", route),
                ("http_response_status_code", status),
            ];
            text.histogram(&labels, &BOUNDS, &spans.counts, spans.sum);
        }
    }
}

/// Measures a request.
pub(crate) async fn measured(State(api): State<Api>, request: Request, next: Next) -> Response {
    let clock = api.tenure().store().clock();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    // Methods are the client's words: those that nobody knows are counted as one.
    let method = request.method().clone();
    let began = clock.moment();
    let response = next.run(request).await;
    let seconds = clock.moment().since(began).as_secs_f64();
    let method = if super::KNOWN_METHODS.contains(&method.as_str()) { method.as_str() } else { "_OTHER" };
    let status = response.status();
    let labels = [method, route.as_deref().unwrap_or(""), status.as_str()];
    api.metrics().requests.add(labels, seconds);
    response
}
