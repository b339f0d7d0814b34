//! Health checks, and the version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
use tenure::schedule::Zone;
use tenure::{Clock, Fault, FaultCause, Invalid, Moment, Name, limits};

use crate::answer;
use crate::api::Api;
use crate::capabilities::store_for;
use crate::problem::Problem;
use crate::query::Query;
use crate::troubles::Trouble;

/// The age of a result that another check may use.
const FRESH: Duration = Duration::from_secs(1);
/// The time for a write or a read, before the server counts as not ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for the identity of the store in `/v1/version`.
const IDENTITY_WITHIN: Duration = Duration::from_secs(1);
/// The time for which the record of the last check is kept.
const KEEP: Duration = Duration::from_secs(3600);

/// Result of a readiness check.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    /// `ready`, `started`, or a short reason.
    status: String,
    /// The individual checks, if requested with `verbose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<Check>>,
}

/// One check.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// `server` or `store`. More names may be added.
    name: &'static str,
    /// `true` if the check passed.
    ok: bool,
    /// Result of the check.
    detail: String,
}

/// `GET /livez`
pub(crate) async fn live() -> Response {
    answer::json(StatusCode::OK, &json!({ "status": "alive" }))
}

/// `GET /startupz`
///
/// A schema that is brought up to date, or a database that comes up later than this program, is no reason to be killed; once
/// it has answered, an outage is none either.
pub(crate) async fn started(api: Api) -> Response {
    if !api.has_started() && in_time(&*api.tenure().store().clock(), reads(&api)).await.is_ok() {
        api.start();
    }
    let (code, status) = match api.has_started() {
        true => (StatusCode::OK, "started"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store has not answered yet"),
    };
    answer::json(code, &Readiness { status: status.to_owned(), checks: None })
}

/// `GET /readyz`, and `GET /healthz`
pub(crate) async fn ready(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let is_verbose =
        Query::read(uri.query(), &["verbose"])?.text("verbose")?.is_some_and(|said| said != "false");
    let server = match api.is_leaving() {
        true => Check { name: "server", ok: false, detail: "shutting down".to_owned() },
        false => Check { name: "server", ok: true, detail: "accepting requests".to_owned() },
    };
    // A server that shuts down does not need its store to say so.
    let asks_store = server.ok || is_verbose;
    let store = if asks_store { Some(store(&api).await) } else { None };
    let checks: Vec<Check> = [Some(server), store].into_iter().flatten().collect();
    let status = match checks.iter().find(|check| !check.ok) {
        None => "ready".to_owned(),
        Some(Check { name: "server", .. }) => "draining".to_owned(),
        Some(store) => format!("store unavailable: {}", store.detail),
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer::json(code, &Readiness { status, checks: is_verbose.then_some(checks) }))
}

/// Checks that the store answers and, unless this server is read-only, that it takes writes.
async fn store(api: &Api) -> Check {
    let look = || async { if api.is_read_only() { reads(api).await } else { writes(api).await } };
    let checked = api.readiness().check(look, api.tenure().store().clock()).await;
    let detail = match checked {
        Ok(()) if api.is_read_only() => "reachable".to_owned(),
        Ok(()) => "reachable and writable".to_owned(),
        Err(fault) => {
            let trouble = Trouble { what: "not ready", why: fault.to_string(), stays: false };
            api.troubles().note(&trouble, api.tenure().store().clock().moment());
            // Other causes may name files and hosts: they are in the log.
            let detail = fault.cause().map_or("see the server log", FaultCause::as_str).to_owned();
            return Check { name: "store", ok: false, detail };
        }
    };
    Check { name: "store", ok: true, detail }
}

/// Gives up a check that takes longer than a probe waits.
async fn in_time(clock: &dyn Clock, check: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    tokio::select! {
        result = check => result,
        () = clock.sleep(PATIENCE) => Err(Fault::Unknown(FaultCause::NoAnswer.as_str().to_owned())),
    }
}

async fn reads(api: &Api) -> Result<(), Fault> {
    api.tenure().store().counts().await.map(drop)
}

/// Writes a record that expires soon: only a write shows that the disk has room and that the database is writable.
async fn writes(api: &Api) -> Result<(), Fault> {
    let invalid = |invalid: Invalid| Fault::Broken(invalid.to_string());
    let value = NewValue { value: Document::new(*b"{}").map_err(invalid)?, keep: Some(KEEP) };
    let put = Put {
        shelf: Name::new("shelf", "readiness").map_err(invalid)?,
        key: RecordKey::new("write").map_err(invalid)?,
        only: Only::Any,
        to: Some(value),
    };
    let writes = Writes { records: vec![put], ..Writes::default() };
    api.tenure().store().write_records(writes).await.map(drop)
}

/// The last result of the store's check. Concurrent requests share one check, so many clients cost the store no more than one.
#[derive(Debug, Default)]
pub(crate) struct LastCheck(tokio::sync::Mutex<Option<(Moment, Result<(), Fault>)>>);

impl LastCheck {
    async fn check<F: Future<Output = Result<(), Fault>>>(
        &self,
        look: impl FnOnce() -> F,
        clock: Arc<dyn Clock>,
    ) -> Result<(), Fault> {
        let mut last = self.0.lock().await;
        if let Some((at, result)) = &*last
            && clock.moment().since(*at) < FRESH
        {
            return result.clone();
        }
        let result = in_time(&*clock, look()).await;
        *last = Some((clock.moment(), result.clone()));
        result
    }
}

/// Version of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// Version of Tenure.
    version: &'static str,
    /// Description of the store. Clients without the scope `read` for the whole store get only the name of its engine.
    store: String,
    /// Identity of the store: equal on all servers that share one. Omitted while the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_id: Option<String>,
    /// Version of the time zone database.
    time_zones: &'static str,
    /// Limits by name. `GET /v1/capabilities` lists all.
    limits: BTreeMap<&'static str, usize>,
}

/// `GET /v1/version`
pub(crate) async fn version(api: Api) -> Response {
    let limits = [
        ("args_bytes", limits::ARGS_BYTES),
        ("output_bytes", limits::OUTPUT_BYTES),
        ("json_depth", limits::JSON_DEPTH),
        ("name_bytes", limits::NAME_BYTES),
        ("page_jobs", limits::PAGE_JOBS),
    ];
    let store_id = tokio::select! {
        id = api.store_id() => id,
        () = api.tenure().store().clock().sleep(IDENTITY_WITHIN) => None,
    };
    let told = Version {
        version: env!("CARGO_PKG_VERSION"),
        store: store_for(&api),
        store_id,
        time_zones: Zone::database_version(),
        limits: limits.into(),
    };
    answer::json(StatusCode::OK, &told)
}
