//! What a server can do, and in which bounds.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tenure::{Keep, Retention, limits};

use crate::access::Access;
use crate::answer;
use crate::api::Api;
use crate::audit::KEEP as AUDIT_KEEP;
use crate::jobs::batch;
use crate::once;
use crate::prefer;

/// Features and limits of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Capabilities {
    /// Version of the server.
    build: Build,
    /// Description of the store. Clients without the scope `read` for the whole store get only the name of its engine.
    store: String,
    /// Features by name; `true` if enabled. More names may be added.
    features: BTreeMap<&'static str, bool>,
    /// Limits by name. More names may be added.
    limits: BTreeMap<&'static str, u64>,
    /// Default retention of finished jobs in seconds; null means forever.
    retention: RetentionDocument,
}

/// Version of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Build {
    version: &'static str,
    /// Operating system that the server was built for.
    os: &'static str,
    /// CPU architecture that the server was built for.
    arch: &'static str,
}

/// Default retention of finished jobs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Retention")]
pub(crate) struct RetentionDocument {
    succeeded_seconds: Option<u64>,
    failed_seconds: Option<u64>,
    idempotency_key_seconds: u64,
    audit_seconds: u64,
}

/// `GET /v1/capabilities`
pub(crate) async fn get(api: Api) -> Response {
    let build =
        Build { version: env!("CARGO_PKG_VERSION"), os: std::env::consts::OS, arch: std::env::consts::ARCH };
    let document = Capabilities {
        build,
        store: store_for(&api),
        features: features(&api),
        limits: bounds(),
        retention: retention(),
    };
    answer::json(StatusCode::OK, &document)
}

/// Returns the description of the store for this client. Only clients that may read the whole store see its host or file.
pub(crate) fn store_for(api: &Api) -> String {
    let about = api.tenure().store().about();
    let is_shown = api.may_read() && api.reach().is_whole();
    if is_shown { about.place } else { about.engine.to_owned() }
}

fn features(api: &Api) -> BTreeMap<&'static str, bool> {
    let tokens = api.access() == Access::Tokens;
    let always =
        ["bulk", "claims", "explain", "idempotency_keys", "leases", "schedules", "search", "waiting"];
    let always = always.into_iter().map(|name| (name, true));
    always.chain([("access_tokens", tokens), ("reach", tokens), ("changes", !api.is_read_only())]).collect()
}

fn bounds() -> BTreeMap<&'static str, u64> {
    let counts = [
        ("args_bytes", limits::ARGS_BYTES),
        ("batch_jobs", batch::MOST_JOBS),
        ("batch_bytes", batch::MOST_BYTES),
        ("claim_jobs", limits::RESERVE_JOBS),
        ("idempotency_key_bytes", once::KEY_BYTES),
        ("json_depth", limits::JSON_DEPTH),
        ("line_bytes", limits::LINE_BYTES),
        ("meta_entries", limits::META_ENTRIES),
        ("number_bytes", limits::NUMBER_BYTES),
        ("name_bytes", limits::NAME_BYTES),
        ("output_bytes", limits::OUTPUT_BYTES),
        ("page_jobs", limits::PAGE_JOBS),
        ("search_chars", limits::SEARCH_CHARS),
        ("search_values", limits::SEARCH_VALUES),
        ("tags", limits::TAGS),
    ];
    let counts = counts.into_iter().map(|(name, most)| (name, u64::try_from(most).unwrap_or(u64::MAX)));
    let spans = [("lease_seconds", limits::LONGEST_LEASE), ("wait_seconds", prefer::LONGEST_WAIT)];
    counts
        .chain(spans.map(|(name, span)| (name, span.as_secs())))
        .chain([
            ("log_lines", u64::from(limits::LOG_LINES)),
            ("max_attempts", u64::from(limits::MAX_ATTEMPTS)),
        ])
        .collect()
}

fn retention() -> RetentionDocument {
    let usual = Retention::default();
    let seconds = |keep: Keep| match keep {
        Keep::For(span) => Some(span.as_secs()),
        Keep::Forever => None,
    };
    RetentionDocument {
        succeeded_seconds: seconds(usual.succeeded),
        failed_seconds: seconds(usual.failed),
        idempotency_key_seconds: once::KEEP.as_secs(),
        audit_seconds: AUDIT_KEEP.as_secs(),
    }
}
