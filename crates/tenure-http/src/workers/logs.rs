//! Lines that a worker logs about a job.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes, Written};
use tenure::{Fault, Invalid, JobId, LogLine, Name, Report, Reported, held, limits};

use super::attempt::HeartbeatProgress;
use super::granted::{lost, of_token};
use crate::api::Api;
use crate::body;
use crate::id::Id;
use crate::problem::Problem;
use crate::wire::shape;

/// Lines of one request.
const MOST_LINES: usize = 1_000;
/// The largest body.
const BODY_BYTES: usize = 4 * 1024 * 1024;

/// On which shelf it stands which number is drawn next, and for how long: then the lines themselves tell.
const SHELF: &str = "log";
const KEPT: Duration = Duration::from_secs(3600);
/// Each try that is lost is one that somebody else has won.
const TRIES: u32 = 200;

/// What a worker has to say about its job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lines {
    /// What was given with the job.
    token: String,
    /// The number of the first of these lines among those of this delivery, from 1: lines that are there already are not
    /// kept twice, so that saying the same again is harmless. Behind those that are there if it is not said.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::LOG_LINES))]
    first: Option<u32>,
    /// The lines, a thousand at most; one at least unless there is progress. What is longer than 4 KiB is cut and marked.
    #[schemars(length(max = MOST_LINES))]
    lines: Vec<String>,
    /// How far it has come. Unlike a heartbeat this does not hold the job for longer.
    #[serde(default, deserialize_with = "shape::object")]
    progress: Option<HeartbeatProgress>,
}

/// `POST /v1/jobs/{id}/logs`
pub(crate) async fn post(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let said: Lines = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    said.check()?;
    let progress = said.progress.map(HeartbeatProgress::checked).transpose()?;
    let job = of_token(&api, id, &said.token).await?;
    let now = api.tenure().now();
    let first = match said.first {
        Some(first) => first,
        None if said.lines.is_empty() => 1,
        None => drawn(&api, id, job.delivery, said.lines.len()).await?,
    };
    let numbered = (first..).zip(&said.lines);
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
            let found = format!("{} of them", self.lines.len());
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

/// The first of so many numbers that nobody else draws, whichever server he asks: what was drawn last stands in a record
/// that only one of two can change.
async fn drawn(api: &Api, id: JobId, delivery: u32, count: usize) -> Result<u32, Problem> {
    let store = api.tenure().store();
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(&format!("{id}.{delivery}"))?);
    for _ in 0..TRIES {
        let there = store.record(&shelf, &key).await?;
        let known = there.as_ref().and_then(|there| serde_json::from_slice(there.value.as_bytes()).ok());
        let first: u32 = match known {
            Some(next) => next,
            None => last_of(api, id, delivery).await?.saturating_add(1),
        };
        let next = first.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        let to = Some(NewValue { value: Document::new(next.to_string().into_bytes())?, keep: Some(KEPT) });
        let only = there.map_or(Only::Absent, |there| Only::Version(there.version));
        let put = Put { shelf: shelf.clone(), key: key.clone(), only, to };
        let written = store.write_records(Writes { records: vec![put], ..Writes::default() }).await?;
        if matches!(written, Written::Done { .. }) {
            return Ok(first);
        }
    }
    Err(Fault::Unavailable(format!("too many log lines of job {id} at once")).into())
}

/// The number of the last line that is kept of a delivery; 0 if none is. It asks for a line behind one number and another,
/// halving what is left, and not for the lines.
async fn last_of(api: &Api, id: JobId, delivery: u32) -> Result<u32, Problem> {
    let (mut last, mut beyond) = (0, limits::LOG_LINES);
    while last < beyond {
        let middle = last + (beyond - last) / 2;
        let found = api.tenure().store().logs(id, (delivery, middle), 1).await?;
        match found.first().filter(|line| line.delivery == delivery) {
            Some(line) => last = line.number,
            None => beyond = middle,
        }
    }
    Ok(last)
}
