//! Lines that a worker logs about a job.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::{Invalid, JobId, LogLine, Report, Reported, held, limits};

use super::attempt::HeartbeatProgress;
use super::granted::{lost, of_token};
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Id;
use crate::problem::Problem;
use crate::wire::shape;

/// Lines of one request.
const MOST_LINES: usize = 1_000;
/// The largest body.
const BODY_BYTES: usize = 4 * 1024 * 1024;

/// Log lines of a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lines {
    /// Token of the job.
    token: String,
    /// Number of the first line within this delivery, from 1. Lines that are already stored are skipped, so the request
    /// is safe to repeat. Default: append.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::LOG_LINES))]
    first: Option<u32>,
    /// Lines; at most 1000, and at least one unless there is progress. Lines over 4 KiB are truncated and marked.
    #[schemars(length(max = MOST_LINES))]
    lines: Vec<String>,
    /// Progress. Unlike a heartbeat, this does not renew the lease.
    #[serde(default, deserialize_with = "shape::object")]
    progress: Option<HeartbeatProgress>,
}

/// `POST /v1/jobs/{id}/logs`
pub(crate) async fn post(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (said, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    finish(loan, report(api, id, said)).await
}

async fn report(api: Api, id: JobId, said: Lines) -> Result<Response, Problem> {
    said.check()?;
    let progress = said.progress.map(HeartbeatProgress::checked).transpose()?;
    let job = of_token(&api, id, &said.token).await?;
    let now = api.tenure().now();
    let number = |nth| said.first.map_or(LogLine::NEXT, |first| first.saturating_add(nth));
    let numbered = (0..).map(number).zip(&said.lines);
    let lines = numbered.map(|(number, text)| LogLine::new(job.delivery, number, now, text)).collect();
    let reports = vec![Report { held: held(&job), progress, lines }];
    match api.tenure().remote().report(reports).await?.first() {
        Some(Reported::Kept) => {
            api.followers().tell(id);
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Some(Reported::Fenced) | None => Err(lost(id)),
    }
}

impl Lines {
    fn check(&self) -> Result<(), Invalid> {
        let least = usize::from(self.progress.is_none());
        if !(least..=MOST_LINES).contains(&self.lines.len()) {
            let found = format!("{} entries", self.lines.len());
            return Err(Invalid::new("lines", found, format_args!("{least} to {MOST_LINES}")));
        }
        match self.first {
            Some(first) if !(1..=limits::LOG_LINES).contains(&first) => {
                Err(Invalid::new("first", first, format_args!("1 to {}", limits::LOG_LINES)))
            }
            Some(_) | None => Ok(()),
        }
    }
}
