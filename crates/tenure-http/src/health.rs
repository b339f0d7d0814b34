//! Whether it lives, whether it can be used, and what it is.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tenure::limits;

use crate::answer;
use crate::api::Api;

/// `GET /livez`
pub(crate) async fn live() -> Response {
    answer::json(StatusCode::OK, &json!({ "status": "alive" }))
}

/// `GET /readyz`
pub(crate) async fn ready(api: Api) -> Response {
    if api.is_leaving() {
        return answer::json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "draining" }));
    }
    match api.tenure().queues().list().await {
        Ok(_) => answer::json(StatusCode::OK, &json!({ "status": "ready" })),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            answer::json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "the store cannot answer" }))
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
