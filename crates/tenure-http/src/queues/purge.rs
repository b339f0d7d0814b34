//! Emptying a queue.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tenure::{BulkAct, Filter, Invalid, QueueName, StateName};

use super::look::there;
use crate::api::Api;
use crate::body;
use crate::id::Named;
use crate::jobs::enqueue::answer;
use crate::problem::Problem;

const BODY_BYTES: usize = 16 * 1024;
/// What is removed if nothing else is said: all that waits.
const USUAL: [StateName; 3] = [StateName::Scheduled, StateName::Queued, StateName::Blocked];

/// Which jobs of a queue are to be removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Purge {
    /// The name of the queue once more, so that no slip of the pen empties another one.
    confirm: String,
    /// In which states: all that wait if it is not said. Those that run stay.
    #[serde(default)]
    states: Option<Vec<PurgedState>>,
}

/// The state of a job that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PurgedState {
    /// It waits for its time.
    Scheduled,
    /// It waits for a worker.
    Queued,
    /// It waits for something else.
    Blocked,
    /// It has succeeded.
    Succeeded,
    /// It has failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// `POST /v1/queues/{name}/purge`
pub(crate) async fn post(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let purge: Purge = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let queue = QueueName::new(&name)?;
    if purge.confirm != queue.as_str() {
        let found = format!("{:?}", purge.confirm.chars().take(128).collect::<String>());
        return Err(Invalid::new("confirm", found, format_args!("the name of the queue, {queue}")).into());
    }
    there(&api, &queue).await?;
    let states = match purge.states {
        None => USUAL.to_vec(),
        Some(states) if states.is_empty() => {
            return Err(Invalid::new("states", "none", "at least one, or leave it out").into());
        }
        Some(states) => states.into_iter().map(PurgedState::name).collect(),
    };
    let filter = Filter { queues: vec![queue], states, ..Filter::default() };
    let accepted = api.tenure().bulk(BulkAct::Delete, filter).await?.await?;
    answer(&api, &headers, accepted.id(), StatusCode::ACCEPTED).await
}

impl PurgedState {
    fn name(self) -> StateName {
        match self {
            Self::Scheduled => StateName::Scheduled,
            Self::Queued => StateName::Queued,
            Self::Blocked => StateName::Blocked,
            Self::Succeeded => StateName::Succeeded,
            Self::Failed => StateName::Failed,
            Self::Cancelled => StateName::Cancelled,
        }
    }
}
