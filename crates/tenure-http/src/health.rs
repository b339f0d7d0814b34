//! Whether it lives, whether it can be used, and what it is.

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tenure::limits;

use crate::answer;
use crate::api::Api;
use crate::problem::Problem;
use crate::query::Query;
use crate::troubles::Trouble;

/// Whether requests should be sent here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    /// `ready` or `started`, or why not in a few words.
    status: &'static str,
    /// What was looked at, if that was asked for with `verbose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<Check>>,
}

/// Something that has to be well.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What: `server` or `store`. Names may be added.
    name: &'static str,
    /// Whether it is.
    ok: bool,
    /// What is told of it.
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
        true => Check { name: "server", ok: false, detail: "it is about to end" },
        false => Check { name: "server", ok: true, detail: "it takes requests" },
    };
    // Whoever is about to end need not know, unless it is asked.
    let asks_store = server.ok || is_verbose;
    let store = if asks_store { Some(store(&api).await) } else { None };
    let checks: Vec<Check> = [Some(server), store].into_iter().flatten().collect();
    let status = match checks.iter().find(|check| !check.ok).map(|check| check.name) {
        None => "ready",
        Some("server") => "draining",
        Some(_) => "the store cannot answer",
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer::json(code, &Readiness { status, checks: is_verbose.then_some(checks) }))
}

async fn store(api: &Api) -> Check {
    match api.tenure().queues().list().await {
        Ok(_) => Check { name: "store", ok: true, detail: "it answers" },
        Err(error) => {
            let trouble = Trouble { what: "not ready", why: error.to_string(), stays: false };
            api.troubles().note(&trouble, api.tenure().store().clock().moment());
            // What a store says of itself may name files and hosts: that is in the log.
            Check { name: "store", ok: false, detail: "it cannot answer" }
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
    answer::json(StatusCode::OK, &json!({ "version": version, "store": store, "limits": limits }))
}
