//! Metrics for Prometheus: what this server has seen, and how the store stands.

mod export;
mod requests;
mod seen;
mod shared;
mod standing;
mod storage;
mod table;
mod tally;
mod text;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use tenure::Timestamp;

use self::requests::Requests;
use self::shared::SharedStanding;
use self::standing::Standing;
use self::text::{Format, Text};
use crate::api::Api;
use crate::problem::Problem;
use crate::troubles::Trouble;

pub(crate) use requests::measured;
pub(crate) use seen::KindLabels;

const KNOWN_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Which commit this was built from, as far as whoever built it has said.
const COMMIT: &str = match option_env!("TENURE_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// What is counted here. What jobs, leases and timers go through is counted by their handle, calls by the store.
#[derive(Debug)]
pub(crate) struct Metrics {
    began: Timestamp,
    requests: Requests,
    standing: SharedStanding,
}

impl Metrics {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { began: now, requests: Requests::default(), standing: SharedStanding::default() }
    }
}

/// `GET /metrics`
///
/// A store that cannot answer is told of as well: then somebody looks.
pub(crate) async fn get(api: Api, headers: HeaderMap) -> Result<Response, Problem> {
    let tenure = api.tenure();
    let format = Format::accepted(&headers);
    let standing = match api.metrics().standing.ask(tenure).await {
        Ok(standing) => Some(standing),
        Err(why) => {
            let trouble = Trouble { what: "metrics of the store are missing", why, stays: false };
            api.troubles().note(&trouble, tenure.store().clock().moment());
            None
        }
    };
    let mut text = Text::new(format);
    text.begin(&table::BUILD_INFO);
    text.value(&[env!("CARGO_PKG_VERSION"), COMMIT, tenure.store().about().engine], 1.0);
    text.begin(&table::START);
    text.value(&[], seconds(api.metrics().began));
    text.begin(&table::STORAGE_UP);
    text.value(&[], f64::from(u8::from(standing.is_some())));
    // Of a store that does not answer nothing is known: better than to tell what was.
    let unknown = Standing::default();
    standing.as_deref().unwrap_or(&unknown).write(&mut text, tenure.now());
    let totals = tenure.totals();
    seen::write_jobs(&mut text, &totals, api.kind_labels());
    text.begin(&table::CLAIMS_WAITING);
    text.value(&[], api.lines().waiting() as f64);
    seen::write_schedules(&mut text, &totals, tenure.timers().heartbeat().last);
    seen::write_losses(&mut text, &totals, tenure.leases().tally().lost);
    storage::write(&mut text, &**tenure.store());
    text.begin(&table::EVENTS_SUBSCRIBERS);
    text.value(&[], api.watchers().count() as f64);
    text.begin(&table::SPANS);
    let (sent, dropped) = api.spans().counts().unwrap_or_default();
    text.value(&["sent"], sent as f64);
    text.value(&["dropped"], dropped as f64);
    export::write(&mut text, api.exported_entries(), tenure.now());
    api.metrics().requests.write(&mut text);
    let headers = [(CONTENT_TYPE, format.content_type()), (CACHE_CONTROL, "no-store")];
    Ok((headers, text.end()).into_response())
}

/// An instant as Prometheus writes it.
fn seconds(at: Timestamp) -> f64 {
    at.as_micros() as f64 / 1e6
}
