//! Whether it lives, whether it can be used, and what it is.

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tenure::limits;
use tenure::schedule::Zone;

use crate::answer;
use crate::api::Api;
use crate::problem::Problem;
use crate::query::Query;
use crate::troubles::Trouble;

/// Result of a readiness check.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    /// `ready`, `started`, or a short reason.
    status: &'static str,
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
    detail: &'static str,
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
    if !api.has_started() && store(&api).await.ok {
        api.start();
    }
    let (code, status) = match api.has_started() {
        true => (StatusCode::OK, "started"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store has not answered yet"),
    };
    answer::json(code, &Readiness { status, checks: None })
}

/// `GET /readyz`, and `GET /healthz`
pub(crate) async fn ready(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let is_verbose =
        Query::read(uri.query(), &["verbose"])?.text("verbose")?.is_some_and(|said| said != "false");
    let server = match api.is_leaving() {
        true => Check { name: "server", ok: false, detail: "shutting down" },
        false => Check { name: "server", ok: true, detail: "accepting requests" },
    };
    // Whoever is about to end need not know, unless it is asked.
    let asks_store = server.ok || is_verbose;
    let store = if asks_store { Some(store(&api).await) } else { None };
    let checks: Vec<Check> = [Some(server), store].into_iter().flatten().collect();
    let status = match checks.iter().find(|check| !check.ok).map(|check| check.name) {
        None => "ready",
        Some("server") => "draining",
        Some(_) => "store unavailable",
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer::json(code, &Readiness { status, checks: is_verbose.then_some(checks) }))
}

async fn store(api: &Api) -> Check {
    match api.tenure().queues().list().await {
        Ok(_) => Check { name: "store", ok: true, detail: "reachable" },
        Err(error) => {
            let trouble = Trouble { what: "not ready", why: error.to_string(), stays: false };
            api.troubles().note(&trouble, api.tenure().store().clock().moment());
            // What a store says of itself may name files and hosts: that is in the log.
            Check { name: "store", ok: false, detail: "unavailable" }
        }
    }
}

/// `GET /v1/version`
pub(crate) async fn version(api: Api) -> Response {
    let store = api.tenure().store().describe();
    let limits = json!({
        "args_bytes": limits::ARGS_BYTES, "output_bytes": limits::OUTPUT_BYTES, "json_depth": limits::JSON_DEPTH,
        "name_bytes": limits::NAME_BYTES, "page_jobs": limits::PAGE_JOBS,
    });
    let version = env!("CARGO_PKG_VERSION");
    let zones = Zone::database_version();
    let told = json!({ "version": version, "store": store, "time_zones": zones, "limits": limits });
    answer::json(StatusCode::OK, &told)
}
