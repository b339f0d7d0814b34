//! Looking at one job.

use std::time::Duration;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{End, Invalid, JobId, State as JobState};

use crate::answer::{Shown, json, look_next};
use crate::api::Api;
use crate::hide::View;
use crate::id::Id;
use crate::prefer::Prefer;
use crate::problem::{Problem, ProblemType, whole_seconds};
use crate::wait::until;
use crate::wire::AttemptDocument;

/// `GET /v1/jobs/{id}`
pub(crate) async fn get(api: Api, Id(id): Id, headers: HeaderMap) -> Result<Response, Problem> {
    let shown = shown(&api, id, &headers).await?;
    Ok(if shown.tag.is_known(&headers) { shown.not_modified() } else { shown.answer(StatusCode::OK) })
}

/// The job as it is, or once it is other than the client knows it, if that would rather wait. Who names nothing that it
/// knows waits for the end.
pub(crate) async fn shown(api: &Api, id: JobId, headers: &HeaderMap) -> Result<Shown, Problem> {
    let wait = Prefer::of(headers).wait.unwrap_or(Duration::ZERO);
    let knows = headers.contains_key(axum::http::header::IF_NONE_MATCH);
    let is_new =
        |job: &tenure::JobRecord| job.state.is_finished() || (knows && !api.shown(job).tag.is_known(headers));
    let job = until(api, id, wait, is_new).await?;
    Ok(api.shown(&job).on(api.site()))
}

/// `GET /v1/jobs/{id}/result`
pub(crate) async fn result(api: Api, Id(id): Id, headers: HeaderMap) -> Result<Response, Problem> {
    let wait = Prefer::of(&headers).wait.unwrap_or(Duration::ZERO);
    let job = until(&api, id, wait, |job| job.state.is_finished()).await?;
    let JobState::Finished { end, .. } = job.state else {
        let span = look_next(&job, api.tenure().now()).unwrap_or_default();
        return Ok((StatusCode::ACCEPTED, [(RETRY_AFTER, whole_seconds(span).to_string())]).into_response());
    };
    let is_hidden = api.view() == View::Hidden;
    let said = || {
        let said = job.failure.as_ref().map_or_else(String::new, ToString::to_string);
        if is_hidden { api.hiding().text(&said) } else { said }
    };
    match end {
        End::Failed => Err(Problem::new(ProblemType::JobFailed, format!("the job failed: {}", said()))),
        End::Cancelled => {
            Err(Problem::new(ProblemType::JobCancelled, format!("the job was cancelled: {}", said())))
        }
        End::Succeeded => {
            let value = job.output.map(|output| output.value).unwrap_or_default();
            if value.is_empty() || value == b"null" {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            let value = if is_hidden { hidden(&api, value) } else { value };
            let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let caching = (CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
            Ok(([kind, caching], value).into_response())
        }
    }
}

/// What a job returned, without what is hidden.
fn hidden(api: &Api, value: Vec<u8>) -> Vec<u8> {
    let shown = api.hiding().json(serde_json::from_slice(&value).ok());
    shown.map_or_else(|| b"null".to_vec(), |shown| shown.get().as_bytes().to_vec())
}

/// `GET /v1/jobs/{id}/attempts/{delivery}`
pub(crate) async fn attempt(
    api: Api,
    Path((id, number)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id: JobId = id.parse()?;
    let no_number =
        |_| Invalid::new("delivery", "invalid value", "a whole number; 1 is the job's first delivery");
    let number: u32 = number.parse().map_err(no_number)?;
    api.job(id).await?;
    let attempts = api.tenure().jobs().attempts(id).await?;
    let found = attempts.iter().find(|attempt| attempt.delivery == number);
    let none = || {
        Problem::new(
            ProblemType::NotFound,
            format!("job {id} has no delivery {number}, or it is no longer kept"),
        )
    };
    let mut document = AttemptDocument::of(found.ok_or_else(none)?);
    if api.view() == View::Hidden {
        document.error = document.error.map(|error| api.hiding().text(&error));
    }
    Ok(json(StatusCode::OK, &document))
}

/// `GET /v1/jobs/{id}/attempts`
pub(crate) async fn attempts(api: Api, Id(id): Id) -> Result<Response, Problem> {
    api.job(id).await?;
    let attempts = api.tenure().jobs().attempts(id).await?;
    let mut items: Vec<AttemptDocument> = attempts.iter().map(AttemptDocument::of).collect();
    if api.view() == View::Hidden {
        let errors = items.iter_mut().filter_map(|attempt| attempt.error.as_mut());
        errors.for_each(|error| *error = api.hiding().text(error));
    }
    Ok(json(StatusCode::OK, &serde_json::json!({ "items": items })))
}
