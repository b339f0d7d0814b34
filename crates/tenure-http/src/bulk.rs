//! Something done with many jobs: all that a search means, or a list of them.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{BulkAct, Filter, Invalid, JobId, Priority, QueueName, limits, seconds};

use crate::access::OnlyLooked;
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::hide::View;
use crate::jobs::enqueue::{accept, answer, say_replayed};
use crate::once::Once;
use crate::problem::Problem;
use crate::wire::shape;

/// How long a handler has to stop, unless the client says otherwise.
const GRACE: Duration = Duration::from_secs(30);
/// The largest body: a thousand ids and a search.
const BODY_BYTES: usize = 64 * 1024;

/// What is to be done with many jobs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bulk")]
pub(crate) struct BulkAsk {
    /// What is done with each; a job in whose state it cannot be done is left as it is.
    action: Action,
    /// With which jobs: all that this means.
    #[serde(default, deserialize_with = "shape::object")]
    filter: Option<BulkFilter>,
    /// With which jobs: these, a thousand at most.
    #[serde(default)]
    #[schemars(length(max = limits::PAGE_JOBS), inner(regex(pattern = shape::ID)))]
    ids: Vec<String>,
    /// Whether it is meant that neither a filter nor ids are said.
    #[serde(default)]
    all: bool,
    /// What else has to be said for it.
    #[serde(default, deserialize_with = "shape::object")]
    params: Option<BulkParams>,
    /// Whether nothing is done: it is told how many jobs are meant.
    #[serde(default)]
    dry_run: bool,
}

/// What is done with each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BulkAction")]
enum Action {
    /// It ends.
    Cancel,
    /// It is done again.
    Retry,
    /// It is removed.
    Delete,
    /// It waits in another queue.
    Move,
    /// It gets another place in line.
    Reprioritize,
    /// It is due now.
    RunNow,
}

/// All jobs that a search means.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BulkFilter {
    /// The search, such as `state:failed kind:mail`.
    #[schemars(length(max = limits::SEARCH_CHARS))]
    q: String,
}

/// What else has to be said.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct BulkParams {
    /// To move: in which queue they wait.
    #[schemars(regex(pattern = shape::NAME))]
    queue: Option<String>,
    /// To reprioritize: from -100, the first, to 100.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    priority: Option<i64>,
    /// To cancel: why, for people.
    #[schemars(length(max = limits::REASON_BYTES))]
    reason: Option<String>,
    /// To cancel: how long a holder has to stop; 30 if it is not said.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    grace_seconds: Option<f64>,
}

/// How many jobs are meant at the moment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BulkPreview")]
pub(crate) struct Preview {
    /// So many were found.
    matched: u64,
    /// Whether there may be more: only a bounded number is looked at.
    capped: bool,
    /// The ids of the newest of them.
    sample: Vec<String>,
}

/// `POST /v1/bulk`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let ask: BulkAsk = body::json(&headers, &text)?;
    let act = act(ask.action, ask.params.unwrap_or_default())?;
    let filter = filter(&api, ask.filter, &ask.ids, ask.all)?;
    if ask.dry_run {
        let meant = api.tenure().jobs().meant(&filter).await?;
        let sample = meant.some.iter().map(JobId::to_string).collect();
        let preview = Preview { matched: meant.jobs, capped: meant.is_cut, sample };
        let mut response = json(StatusCode::OK, &preview);
        response.extensions_mut().insert(OnlyLooked);
        return Ok(response);
    }
    let once = Once::of(&headers, &[b"POST /v1/bulk", &text])?;
    let draft = api.tenure().bulk_draft(act, filter).await?;
    let (accepted, replayed) = accept(api.tenure(), once, draft).await?;
    let mut response = answer(&api, &headers, accepted.id(), StatusCode::ACCEPTED).await?;
    say_replayed(&mut response, replayed);
    Ok(response)
}

/// Which jobs are meant.
fn filter(api: &Api, said: Option<BulkFilter>, ids: &[String], all: bool) -> Result<Filter, Problem> {
    let none = || Invalid::new("filter", "neither a filter nor ids", "one of the two, or \"all\": true");
    match (said, ids.is_empty(), all) {
        (Some(_), false, _) => Err(Invalid::new("ids", "both a filter and ids", "one of the two").into()),
        (Some(filter), true, all) => {
            let read = tenure::search(&filter.q, api.tenure().now())?;
            if api.view() == View::Hidden {
                api.hiding().check(&read)?;
            }
            if read.means_all() && !all { Err(none().into()) } else { Ok(read) }
        }
        (None, false, _) => {
            if ids.len() > limits::PAGE_JOBS {
                let allowed = format!("at most {}", limits::PAGE_JOBS);
                return Err(Invalid::new("ids", format_args!("{} of them", ids.len()), allowed).into());
            }
            let ids: Result<Vec<JobId>, Invalid> = ids.iter().map(|id| id.parse()).collect();
            Ok(Filter { ids: ids?, ..Filter::default() })
        }
        (None, true, true) => Ok(Filter::default()),
        (None, true, false) => Err(none().into()),
    }
}

/// What is done, with what it needs and nothing that it does not.
fn act(action: Action, params: BulkParams) -> Result<BulkAct, Problem> {
    let BulkParams { queue, priority, reason, grace_seconds } = params;
    let said = [
        ("params.queue", queue.is_some(), action == Action::Move),
        ("params.priority", priority.is_some(), action == Action::Reprioritize),
        ("params.reason", reason.is_some(), action == Action::Cancel),
        ("params.grace_seconds", grace_seconds.is_some(), action == Action::Cancel),
    ];
    if let Some((field, _, _)) = said.iter().find(|(_, said, of_use)| *said && !of_use) {
        return Err(Invalid::new(*field, "something that this action does not use", "nothing").into());
    }
    let missing = |field: &str| Invalid::new(field, "nothing", "a value: this action needs it");
    Ok(match action {
        Action::Cancel => BulkAct::Cancel {
            grace: grace_seconds.map_or(Ok(GRACE), |grace| seconds("params.grace_seconds", grace))?,
            reason: reason.unwrap_or_default(),
        },
        Action::Retry => BulkAct::Retry,
        Action::Delete => BulkAct::Delete,
        Action::Move => {
            BulkAct::Move { queue: QueueName::new(&queue.ok_or_else(|| missing("params.queue"))?)? }
        }
        Action::Reprioritize => {
            let priority = priority.ok_or_else(|| missing("params.priority"))?;
            BulkAct::Reprioritise { priority: Priority::new(priority)? }
        }
        Action::RunNow => BulkAct::RunNow,
    })
}
