//! Enqueueing one job.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use tenure::{Accepted, Draft, JobId};

use crate::answer::{PREFERENCE_APPLIED, Shown, json, locate};
use crate::api::Api;
use crate::body;
use crate::prefer::Prefer;
use crate::problem::Problem;
use crate::wait::until;
use crate::wire::{BODY_BYTES, Submit};

/// `POST /v1/jobs`
pub(crate) async fn post(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let submit: Submit = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let accepted = api.tenure().enqueue_draft(submit.draft(None)?).await?;
    let status = match accepted {
        Accepted::New(_) | Accepted::Repeated(_) | Accepted::Replaced { .. } => StatusCode::ACCEPTED,
        Accepted::Existing(_) => StatusCode::OK,
    };
    answer(&api, &headers, accepted.id(), status).await
}

/// `PUT /v1/jobs/{id}`
pub(crate) async fn put(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let id: JobId = id.parse()?;
    let submit: Submit = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let accepted = api.tenure().enqueue_draft(submit.draft(Some(id))?).await?;
    let status = match accepted {
        Accepted::New(_) | Accepted::Replaced { .. } => StatusCode::CREATED,
        Accepted::Repeated(_) | Accepted::Existing(_) => StatusCode::OK,
    };
    answer(&api, &headers, accepted.id(), status).await
}

/// Enqueues a job as a client asked, and answers as the pattern wants it.
pub(crate) async fn enqueue(api: &Api, headers: &HeaderMap, draft: Draft) -> Result<Response, Problem> {
    let accepted = api.tenure().enqueue_draft(draft).await?;
    answer(api, headers, accepted.id(), StatusCode::ACCEPTED).await
}

/// Shows a job that was accepted; whoever would rather wait for its end may see that.
async fn answer(api: &Api, headers: &HeaderMap, id: JobId, status: StatusCode) -> Result<Response, Problem> {
    let prefer = Prefer::of(headers);
    let wait = prefer.wait.unwrap_or(Duration::ZERO);
    let job = until(api, id, wait, |job| job.state.is_finished()).await?;
    let shown = Shown::of(&job, api.tenure().now());
    let status = if prefer.wait.is_some() && shown.is_finished { StatusCode::OK } else { status };
    let mut response = if prefer.minimal {
        json(status, &serde_json::json!({ "id": id.to_string() }))
    } else {
        shown.answer(status)
    };
    locate(response.headers_mut(), headers, id);
    if let Some(applied) = prefer.applied().and_then(|applied| HeaderValue::from_str(&applied).ok()) {
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    Ok(response)
}
