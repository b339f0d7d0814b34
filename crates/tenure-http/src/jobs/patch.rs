//! Changing what was agreed about a job that waits.

use axum::body::Body;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::{ChangeOutcome, Invalid, Priority, QueueName, Timestamp, seconds};

use super::act::{refusal, shown};
use crate::api::Api;
use crate::body;
use crate::id::Id;
use crate::problem::{Problem, ProblemType};
use crate::wire::{instant, not_own, shape};

const BODY_BYTES: usize = 16 * 1024;

/// What shall be otherwise. What is not said stays.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "JobEdit")]
pub(crate) struct JobPatch {
    /// Where it waits.
    #[schemars(regex(pattern = shape::NAME))]
    queue: Option<String>,
    /// Its place among the due jobs of its queue: from -100, the first, to 100.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    priority: Option<i64>,
    /// When it is due: RFC 3339 with an offset.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    run_at: Option<String>,
    /// In how many seconds it is due.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    delay_seconds: Option<f64>,
}

/// What is done, one after the other.
struct Changes {
    queue: Option<QueueName>,
    priority: Option<Priority>,
    due: Option<Timestamp>,
}

/// `PATCH /v1/jobs/{id}`
pub(crate) async fn patch(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let patch: JobPatch = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let changes = patch.changes(&api)?;
    let job = api.job(id).await?;
    if !headers.contains_key(IF_MATCH) {
        let detail = "a job is changed as it was looked at: send its etag in the header if-match";
        return Err(Problem::new(ProblemType::PreconditionRequired, detail));
    }
    if let Some(queue) = changes.queue.as_ref().filter(|queue| !api.reach().covers_queue(queue.as_str())) {
        return Err(api.beyond(&format!("jobs of queue {queue}")));
    }
    if api.shown(&job).tag.is_refused(&headers) {
        let detail = format!("job {id} has changed since it was looked at");
        return Err(Problem::new(ProblemType::PreconditionFailed, detail));
    }
    let (jobs, mut outcome) = (api.tenure().jobs(), ChangeOutcome::Already);
    // Its time comes last: a job that is due now may begin as soon as that is said.
    if let Some(queue) = &changes.queue {
        outcome = granted(&api, id, jobs.move_to(id, queue.as_str()).await?)?;
    }
    if let Some(priority) = changes.priority {
        outcome = granted(&api, id, jobs.reprioritise(id, priority.number()).await?)?;
    }
    if let Some(due) = changes.due {
        outcome = granted(&api, id, jobs.reschedule(id, due).await?)?;
    }
    shown(&api, &headers, id, outcome, StatusCode::OK).await
}

fn granted(api: &Api, id: tenure::JobId, outcome: ChangeOutcome) -> Result<ChangeOutcome, Problem> {
    refusal(api, id, outcome).map_or(Ok(outcome), Err)
}

impl JobPatch {
    fn changes(self, api: &Api) -> Result<Changes, Invalid> {
        let due = match (self.run_at, self.delay_seconds) {
            (None, None) => None,
            (Some(at), None) => Some(instant("run_at", &at)?),
            (None, Some(delay)) => Some(api.tenure().now().after(seconds("delay_seconds", delay)?)),
            (Some(_), Some(_)) => {
                return Err(Invalid::new("delay_seconds", "both it and run_at", "one of the two"));
            }
        };
        self.queue.as_deref().map_or(Ok(()), |queue| not_own("queue", queue))?;
        let queue = self.queue.map(|queue| QueueName::new(&queue)).transpose()?;
        Ok(Changes { queue, priority: self.priority.map(Priority::new).transpose()?, due })
    }
}
