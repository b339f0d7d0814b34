//! Why a job is where it is.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::json;
use crate::api::Api;
use crate::hide::View;
use crate::id::Id;
use crate::problem::Problem;

/// The reason for which a job is not running, or why it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explanation {
    /// Reason code, such as `queue_paused` or `queue_not_served`. More may be added.
    reason: String,
    /// The reason as a sentence.
    detail: String,
}

/// `GET /v1/jobs/{id}/explain`
pub(crate) async fn get(api: Api, Id(id): Id) -> Result<Response, Problem> {
    // What is not there is told of as everywhere.
    api.job(id).await?;
    let reason = api.tenure().explain(id).await?;
    let named = serde_json::to_value(&reason).unwrap_or_default();
    let name = named["reason"].as_str().unwrap_or_default().to_owned();
    let detail = reason.to_string();
    let detail = if api.view() == View::Hidden { api.hiding().text(&detail) } else { detail };
    Ok(json(StatusCode::OK, &Explanation { reason: name, detail }))
}
