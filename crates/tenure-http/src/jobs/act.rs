//! Asking something of a job.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::{ChangeOutcome, JobId, seconds};

use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::id::Id;
use crate::problem::{Problem, ProblemType};
use crate::wire::shape;

/// How long a holder has to stop, unless the client says otherwise.
const GRACE: Duration = Duration::from_secs(30);
/// The largest body of a wish.
const BODY_BYTES: usize = 16 * 1024;

/// A request to cancel a job.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CancelAsk {
    /// Reason, for people.
    #[schemars(length(max = tenure::limits::REASON_BYTES))]
    reason: Option<String>,
    /// Time that a running job has to stop; default 30.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    grace_seconds: Option<f64>,
}

/// An empty object.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// `POST /v1/jobs/{id}/cancel`
pub(crate) async fn cancel(
    api: Api,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: CancelAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    api.reached(id).await?;
    let grace = ask.grace_seconds.map_or(Ok(GRACE), |grace| seconds("grace_seconds", grace))?;
    let outcome = api.tenure().jobs().cancel(id, grace, &ask.reason.unwrap_or_default()).await?;
    shown(&api, id, outcome, StatusCode::OK).await
}

/// `POST /v1/jobs/{id}/retry`
pub(crate) async fn retry(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    api.reached(id).await?;
    let outcome = api.tenure().jobs().redo(id).await?;
    shown(&api, id, outcome, StatusCode::ACCEPTED).await
}

/// `POST /v1/jobs/{id}/run-now`
pub(crate) async fn run_now(
    api: Api,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    api.reached(id).await?;
    let outcome = api.tenure().jobs().reschedule(id, api.tenure().now()).await?;
    shown(&api, id, outcome, StatusCode::ACCEPTED).await
}

/// `DELETE /v1/jobs/{id}`
pub(crate) async fn delete(api: Api, Id(id): Id, headers: HeaderMap) -> Result<Response, Problem> {
    match end_or_remove(&api, &headers, id).await? {
        Removal::Removed => Ok(StatusCode::NO_CONTENT.into_response()),
        Removal::Ended(outcome) => shown(&api, id, outcome, StatusCode::OK).await,
    }
}

/// What deleting a job came to.
pub(crate) enum Removal {
    /// It had ended, and is gone.
    Removed,
    /// It had not ended: it was to be cancelled first.
    Ended(ChangeOutcome),
}

/// Removes a job that has ended, and cancels one that has not.
pub(crate) async fn end_or_remove(api: &Api, headers: &HeaderMap, id: JobId) -> Result<Removal, Problem> {
    let job = api.job(id).await?;
    if api.shown(&job).tag.is_refused(headers) {
        return Err(changed(id));
    }
    if !job.state.is_finished() {
        let outcome = api.tenure().jobs().cancel(id, GRACE, "").await?;
        if outcome != ChangeOutcome::RefusedFinished {
            return refusal(api, id, outcome).map_or(Ok(Removal::Ended(outcome)), Err);
        }
        // It has ended since it was looked at: what it has come to is removed only by whoever has not said as what he has
        // seen it.
        if headers.contains_key(IF_MATCH) {
            return Err(changed(id));
        }
    }
    let outcome = api.tenure().jobs().delete(id).await?;
    refusal(api, id, outcome).map_or(Ok(Removal::Removed), Err)
}

/// Shows what a wish came to.
pub(crate) async fn shown(
    api: &Api,
    id: JobId,
    outcome: ChangeOutcome,
    done: StatusCode,
) -> Result<Response, Problem> {
    if let Some(problem) = refusal(api, id, outcome) {
        return Err(problem);
    }
    let status = if outcome == ChangeOutcome::Asked { StatusCode::ACCEPTED } else { done };
    // It was done, and that is told even if the job cannot be looked at any more.
    let mut response = match api.job(id).await {
        Ok(job) => api.shown(&job).on(api.site()).answer(status),
        Err(_) => json(status, &serde_json::json!({ "id": id.to_string() })),
    };
    if status == StatusCode::ACCEPTED {
        api.site().locate(response.headers_mut(), id);
    }
    Ok(response)
}

/// That a job is not as whoever asks has seen it.
pub(super) fn changed(id: JobId) -> Problem {
    Problem::new(
        ProblemType::PreconditionFailed,
        format!("job {id} has changed since it was read; read it again"),
    )
}

/// A problem for a job with a row that cannot be read.
fn unreadable(id: JobId) -> Problem {
    let detail = format!(
        "job {id} cannot be read, so it cannot be changed: update the server, or let an operator run `tenure db check`"
    );
    Problem::new(ProblemType::UnreadableData, detail)
}

/// What is told of a wish that was not granted.
pub(super) fn refusal(api: &Api, id: JobId, outcome: ChangeOutcome) -> Option<Problem> {
    let why = match outcome {
        ChangeOutcome::Done | ChangeOutcome::Asked | ChangeOutcome::Already => return None,
        ChangeOutcome::NotFound => return Some(api.missing(id)),
        ChangeOutcome::RefusedRunning => "it is running",
        ChangeOutcome::RefusedFinished => "it has ended",
        ChangeOutcome::RefusedUnfinished => "it has not ended",
        ChangeOutcome::RefusedChanged => return Some(changed(id)),
        ChangeOutcome::RefusedUnreadable => return Some(unreadable(id)),
        ChangeOutcome::RefusedKeyHeld(other) => {
            if !api.reach().is_whole() {
                // It may be one that whoever asks does not reach.
                let detail = format!("another job holds the unique key of job {id}");
                return Some(Problem::new(ProblemType::UniqueConflict, detail));
            }
            let detail = format!("job {other} holds the unique key of job {id}");
            return Some(Problem::new(ProblemType::UniqueConflict, detail).with("job_id", other.to_string()));
        }
    };
    Some(Problem::new(ProblemType::StateConflict, format!("not possible for job {id}: {why}")))
}
