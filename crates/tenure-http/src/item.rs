//! The item in the queue: what a client is sent to when its job was accepted, and what leads it on to what the job made.

use axum::extract::OriginalUri;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{ChangeOutcome, End, JobRecord, State as JobState};

use crate::accept;
use crate::api::Api;
use crate::events;
use crate::id::Id;
use crate::jobs::act::{self, Removal, end_or_remove};
use crate::jobs::look;
use crate::problem::Problem;
use crate::query::Query;

/// `GET /queue/{id}`
pub(crate) async fn get(
    api: Api,
    Id(id): Id,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["redirect", "reveal"])?;
    let redirects = query.one::<Word>("redirect")?.is_none_or(|Word(word)| word != "false");
    if wants_events(&headers) {
        return events::of_job(api, id, &headers).await;
    }
    let shown = look::shown(&api, id, &headers).await?;
    let place = if redirects && shown.is_finished { made(&api.job(id).await?) } else { None };
    if let Some(place) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
        let mut response = shown.answer(StatusCode::SEE_OTHER);
        response.headers_mut().insert(LOCATION, place);
        return Ok(response);
    }
    Ok(if shown.tag.is_known(&headers) { shown.not_modified() } else { shown.answer(StatusCode::OK) })
}

/// `DELETE /queue/{id}`
pub(crate) async fn delete(api: Api, Id(id): Id, headers: HeaderMap) -> Result<Response, Problem> {
    match end_or_remove(&api, &headers, id).await? {
        // It runs: it is asked to stop, and can be watched while it does.
        Removal::Ended(ChangeOutcome::Asked | ChangeOutcome::Already) => {
            act::shown(&api, id, ChangeOutcome::Asked, StatusCode::ACCEPTED).await
        }
        Removal::Ended(_) | Removal::Removed => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Where what the job made can be found.
pub(crate) fn made(job: &JobRecord) -> Option<String> {
    let succeeded = matches!(job.state, JobState::Finished { end: End::Succeeded, .. });
    job.output.as_ref().filter(|_| succeeded).and_then(|output| output.place.clone())
}

fn wants_events(headers: &HeaderMap) -> bool {
    accept::best(headers, &[("application/json", false), ("text/event-stream", true)], false)
}

/// A word.
struct Word(String);

impl std::str::FromStr for Word {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" | "false" => Ok(Self(text.to_owned())),
            _ => Err(tenure::Invalid::new("redirect", "invalid value", "true or false")),
        }
    }
}
