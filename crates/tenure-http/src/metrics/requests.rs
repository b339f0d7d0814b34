//! How requests were answered, and how long that took.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tenure::Histogram;

use super::table;
use super::tally::ByLabels;
use super::text::Text;
use crate::api::Api;

/// What was answered so far.
#[derive(Debug, Default)]
pub(super) struct Requests {
    took: Mutex<ByLabels<3, Histogram>>,
    active: AtomicI64,
}

/// A request that somebody waits for, until this is dropped: also if nobody waits any more.
struct Active(Api);

impl Active {
    fn begin(api: &Api) -> Self {
        api.metrics().requests.active.fetch_add(1, Ordering::Relaxed);
        Self(api.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.metrics().requests.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Requests {
    fn add(&self, labels: [&str; 3], seconds: f64) {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).of(labels).add(seconds);
    }

    pub(super) fn write(&self, text: &mut Text) {
        text.begin(&table::REQUESTS);
        let took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        for (labels, took) in took.iter() {
            text.histogram(&labels, took);
        }
        text.begin(&table::ACTIVE_REQUESTS);
        text.value(&[], self.active.load(Ordering::Relaxed) as f64);
    }
}

/// Measures a request.
pub(crate) async fn measured(State(api): State<Api>, request: Request, next: Next) -> Response {
    let clock = api.tenure().store().clock();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    // Methods are the client's words: those that nobody knows are counted as one.
    let method = request.method().clone();
    let _active = Active::begin(&api);
    let began = clock.moment();
    let response = next.run(request).await;
    let seconds = clock.moment().since(began).as_secs_f64();
    let method = if super::KNOWN_METHODS.contains(&method.as_str()) { method.as_str() } else { "_OTHER" };
    let status = response.status();
    let labels = [method, route.as_deref().unwrap_or(""), status.as_str()];
    api.metrics().requests.add(labels, seconds);
    response
}
