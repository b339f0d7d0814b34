//! Something done with many jobs: all that a search means, or a list of them.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{
    BulkAct, Count, Filter, Invalid, JobId, Kind, PageAsk, Priority, QueueName, StateName, Values, limits,
    seconds,
};

use crate::answer::json;
use crate::api::Api;
use crate::audit::{Detail, NotAudited};
use crate::body;
use crate::hide::{self, View};
use crate::jobs::enqueue::{accept, answer, say_replayed};
use crate::once::Once;
use crate::problem::Problem;
use crate::wire::{check_queue, shape};

/// How long a handler has to stop, unless the client says otherwise.
const GRACE: Duration = Duration::from_secs(30);
/// The largest body: a thousand ids and a search.
const BODY_BYTES: usize = 64 * 1024;

/// A bulk operation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bulk")]
pub(crate) struct BulkAsk {
    /// Action applied to each job; jobs whose state does not allow it are skipped.
    action: Action,
    /// The jobs, as a search.
    #[serde(default, deserialize_with = "shape::object")]
    filter: Option<BulkFilter>,
    /// The jobs, as up to 1000 IDs.
    #[serde(default)]
    #[schemars(length(max = limits::PAGE_JOBS), inner(regex(pattern = shape::ID)))]
    ids: Vec<String>,
    /// Set to `true` to select all jobs; required if `filter` and `ids` are both omitted.
    #[serde(default)]
    all: bool,
    /// Parameters of the action.
    #[serde(default, deserialize_with = "shape::object")]
    params: Option<BulkParams>,
    /// Count the matching jobs and change nothing.
    #[serde(default)]
    dry_run: bool,
}

/// The action applied to each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BulkAction")]
enum Action {
    /// Cancel the job.
    Cancel,
    /// Retry the job.
    Retry,
    /// Delete the job.
    Delete,
    /// Move the job to another queue.
    Move,
    /// Change the job's priority.
    Reprioritize,
    /// Make the job due now.
    RunNow,
}

/// A selection of jobs by search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BulkFilter {
    /// Search expression, such as `state:failed kind:mail`.
    #[schemars(length(max = limits::SEARCH_CHARS))]
    q: String,
}

/// Parameters of a bulk action.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct BulkParams {
    /// For `move`: the target queue.
    #[schemars(regex(pattern = shape::NAME))]
    queue: Option<String>,
    /// For `reprioritize`: the priority, from -100 (first) to 100 (last).
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    priority: Option<i64>,
    /// For `cancel`: the reason, for people.
    #[schemars(length(max = limits::REASON_BYTES))]
    reason: Option<String>,
    /// For `cancel`: time that a running job has to stop; default 30.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    grace_seconds: Option<f64>,
}

/// Result of a dry run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BulkPreview")]
pub(crate) struct Preview {
    /// Number of matching jobs.
    matched: u64,
    /// `true` if there may be more; the search examines a bounded number of jobs.
    capped: bool,
    /// IDs of the newest matching jobs.
    #[schemars(inner(regex(pattern = shape::ID)))]
    sample: Vec<String>,
}

/// `POST /v1/bulk`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let ask: BulkAsk = body::json(&headers, &text)?;
    let act = act(ask.action, ask.params.unwrap_or_default())?;
    let filter = filter(&api, ask.filter, &ask.ids, ask.all)?;
    let once = Once::of(&api, &headers, &[b"POST /v1/bulk", &text])?;
    // Keep the text while the request waits: its memory counts against the client, and that of the values in it does not.
    drop(ask.ids);
    if ask.dry_run {
        let meant = api.tenure().jobs().meant(&filter).await?;
        let sample = meant.some.iter().map(JobId::to_string).collect();
        let preview = Preview { matched: meant.jobs, capped: meant.is_cut, sample };
        let mut response = json(StatusCode::OK, &preview);
        response.extensions_mut().insert(Detail(detail(&headers, &text)));
        // An error may say more than the client sees, and the number of matches tells whether a guess is right.
        if api.view() != View::Hidden || !hide::asks_for_failures(&filter) {
            response.extensions_mut().insert(NotAudited);
        }
        return Ok(response);
    }
    if let BulkAct::Move { queue } = &act {
        admit_move(&api, queue, &filter).await?;
    }
    let draft = api.tenure().bulk_draft(act, filter).await?;
    let (accepted, replayed) = accept(api.tenure(), once, draft).await?;
    let mut response = answer(&api, &headers, accepted.id(), StatusCode::ACCEPTED).await?;
    say_replayed(&mut response, replayed);
    response.extensions_mut().insert(Detail(detail(&headers, &text)));
    Ok(response)
}

/// Refuses a move that could bring more kinds into the queue than the quotas allow.
async fn admit_move(api: &Api, queue: &QueueName, filter: &Filter) -> Result<(), Problem> {
    api.admit_queue(queue).await?;
    // Without an access token, no kind counts.
    if api.who().name().is_none() {
        return Ok(());
    }
    for kind in moved_kinds(api, filter).await? {
        let of_queue = |problem: Problem| problem.with("field", "params.queue");
        api.admit_kind(queue, &kind).await.map_err(of_queue)?;
    }
    Ok(())
}

/// Returns the kinds of the waiting jobs that a filter can match. A move leaves Tenure's own jobs where they are.
async fn moved_kinds(api: &Api, filter: &Filter) -> Result<BTreeSet<Kind>, Problem> {
    let kinds: BTreeSet<Kind> = if filter.ids.is_empty() {
        let waits = |state| matches!(state, StateName::Scheduled | StateName::Queued | StateName::Blocked);
        let can_match = |count: &Count| {
            waits(count.state)
                && (filter.states.is_empty() || filter.states.contains(&count.state))
                && (filter.queues.is_empty() || filter.queues.contains(&count.queue))
                && (filter.kinds.is_empty() || filter.kinds.contains(&count.kind))
        };
        let counts = api.tenure().counts().await?;
        counts.into_iter().filter(can_match).map(|count| count.kind).collect()
    } else {
        let (filter, at_most, values) = (filter.clone(), limits::PAGE_JOBS, Values::Omitted);
        let ask = PageAsk { filter, at_most, values, ..PageAsk::default() };
        api.tenure().jobs().page(ask).await?.jobs.iter().map(|job| job.kind.clone()).collect()
    };
    Ok(kinds.into_iter().filter(|kind| !kind.is_own()).collect())
}

/// Reads the body with the route's parser, and returns the action, the filter and the parameters for the audit log.
fn detail(headers: &HeaderMap, text: &[u8]) -> serde_json::Value {
    body::json(headers, text).unwrap_or_default()
}

/// Which jobs are meant.
fn filter(api: &Api, said: Option<BulkFilter>, ids: &[String], all: bool) -> Result<Filter, Problem> {
    let none = || Invalid::new("filter", "neither filter nor ids", "one of them, or \"all\": true");
    match (said, ids.is_empty(), all) {
        (Some(_), false, _) => Err(Invalid::new("ids", "both filter and ids", "only one of them").into()),
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
                return Err(Invalid::new("ids", format_args!("{} IDs", ids.len()), allowed).into());
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
        return Err(Invalid::new(*field, "a parameter that this action does not use", "nothing").into());
    }
    let missing = |field: &str| Invalid::new(field, "nothing", "a value, which this action requires");
    Ok(match action {
        Action::Cancel => BulkAct::Cancel {
            grace: grace_seconds.map_or(Ok(GRACE), |grace| seconds("params.grace_seconds", grace))?,
            reason: reason.unwrap_or_default(),
        },
        Action::Retry => BulkAct::Retry,
        Action::Delete => BulkAct::Delete,
        Action::Move => {
            let queue = queue.ok_or_else(|| missing("params.queue"))?;
            check_queue("params.queue", &queue)?;
            BulkAct::Move { queue: QueueName::new(&queue)? }
        }
        Action::Reprioritize => {
            let priority = priority.ok_or_else(|| missing("params.priority"))?;
            BulkAct::Reprioritise { priority: Priority::new(priority)? }
        }
        Action::RunNow => BulkAct::RunNow,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn a_byte_order_mark_hides_nothing_from_the_audit_log() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, "application/json".parse().unwrap())]);
        let text = "\u{feff}{\"action\":\"cancel\",\"all\":true}".as_bytes();
        assert!(body::json::<BulkAsk>(&headers, text).is_ok());
        assert_eq!(detail(&headers, text)["action"], "cancel");
    }
}
