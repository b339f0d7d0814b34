//! Changing what was agreed about a job that waits.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::{Due, Edit, Invalid, Name, Priority, QueueName, limits, seconds};

use super::act::{changed, shown};
use crate::api::Api;
use crate::body;
use crate::id::Id;
use crate::problem::{Problem, ProblemType};
use crate::wire::{check_queue, instant, shape};

const BODY_BYTES: usize = 16 * 1024;

/// Changes to a job. Omitted fields keep their values.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "JobEdit")]
pub(crate) struct JobPatch {
    /// Queue.
    #[schemars(regex(pattern = shape::NAME))]
    queue: Option<String>,
    /// Priority among the due jobs of the queue: -100 (first) to 100 (last).
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    priority: Option<i64>,
    /// Due time: RFC 3339 with an offset.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    run_at: Option<String>,
    /// Delay until the job is due.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    delay_seconds: Option<f64>,
    /// Maximum number of attempts, including those already made.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::MAX_ATTEMPTS))]
    max_attempts: Option<u32>,
    /// Tags; replace the current tags.
    #[schemars(length(max = limits::TAGS), inner(regex(pattern = shape::NAME)))]
    tags: Option<Vec<String>>,
    /// Metadata to merge: a value replaces the entry of that name, `null` removes it.
    meta: Option<BTreeMap<String, Option<String>>>,
}

/// `PATCH /v1/jobs/{id}`
pub(crate) async fn patch(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let patch: JobPatch = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let edit = patch.edit()?;
    let job = api.job(id).await?;
    if !headers.contains_key(IF_MATCH) {
        let detail = "changing a job requires the header If-Match with the job's ETag";
        return Err(Problem::new(ProblemType::PreconditionRequired, detail));
    }
    if let Some(queue) = edit.edit.queue.as_ref().filter(|queue| !api.reach().covers_queue(queue.as_str())) {
        return Err(api.beyond(&format!("jobs of queue {queue}")));
    }
    if edit.edit.queue.is_some() && job.kind.is_own() {
        let detail =
            format!("job {id} is an internal job of kind {}; it cannot be moved to another queue", job.kind);
        return Err(Problem::new(ProblemType::StateConflict, detail));
    }
    if api.shown(&job).tag.is_refused(&headers) {
        return Err(changed(id));
    }
    if let Some(queue) = &edit.edit.queue {
        let of_queue = |problem: Problem| problem.with("field", "queue");
        api.admit_kind(queue, &job.kind).await.map_err(of_queue)?;
    }
    let Edited { mut edit, notes } = edit;
    edit.meta = notes.map(|notes| merged(&job.terms.meta, notes));
    // Somebody may change it at this moment: the store looks once more. Whoever takes it as it is need not be told.
    let as_it_is = headers.get(IF_MATCH).is_some_and(|tags| tags.as_bytes().trim_ascii() == b"*");
    if !as_it_is || edit.meta.is_some() {
        edit.seen = Some(Box::new(job));
    }
    let outcome = api.tenure().jobs().edit(id, edit).await?;
    shown(&api, id, outcome, StatusCode::OK).await
}

/// Notes, and what shall be otherwise with them.
fn merged(
    notes: &BTreeMap<String, String>,
    patch: BTreeMap<String, Option<String>>,
) -> BTreeMap<String, String> {
    let mut merged = notes.clone();
    for (name, value) in patch {
        match value {
            Some(value) => merged.insert(name, value),
            None => merged.remove(&name),
        };
    }
    merged
}

/// Under the name that a field has here.
fn named(wrong: Invalid) -> Invalid {
    let field = if wrong.field == "attempts" { "max_attempts".to_owned() } else { wrong.field };
    Invalid { field, ..wrong }
}

/// What is asked for; what becomes of the notes depends on those that are there.
struct Edited {
    edit: Edit,
    notes: Option<BTreeMap<String, Option<String>>>,
}

impl JobPatch {
    fn edit(self) -> Result<Edited, Invalid> {
        let due = match (self.run_at, self.delay_seconds) {
            (None, None) => None,
            (Some(at), None) => Some(Due::At(instant("run_at", &at)?)),
            (None, Some(delay)) => Some(Due::In(seconds("delay_seconds", delay)?)),
            (Some(_), Some(_)) => {
                return Err(Invalid::new("delay_seconds", "set together with run_at", "only one of them"));
            }
        };
        self.queue.as_deref().map_or(Ok(()), |queue| check_queue("queue", queue))?;
        let tags =
            self.tags.map(|tags| tags.iter().map(|tag| Name::new("tags", tag)).collect()).transpose()?;
        let edit = Edit {
            seen: None,
            queue: self.queue.map(|queue| QueueName::new(&queue)).transpose()?,
            priority: self.priority.map(Priority::new).transpose()?,
            due,
            tags,
            meta: None,
            attempts: self.max_attempts,
        };
        edit.check().map_err(named)?;
        Ok(Edited { edit, notes: self.meta })
    }
}
