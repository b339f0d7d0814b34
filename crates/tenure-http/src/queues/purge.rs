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

/// A request to delete jobs of a queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Purge {
    /// Name of the queue, repeated as a safeguard.
    confirm: String,
    /// States of the jobs to delete; default: all waiting states. Running jobs stay.
    #[serde(default)]
    states: Option<Vec<PurgedState>>,
}

/// The state of a job that is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PurgedState {
    /// Waiting for its due time.
    Scheduled,
    /// Waiting for a worker.
    Queued,
    /// Waiting for another job or a limit.
    Blocked,
    /// Succeeded.
    Succeeded,
    /// Failed.
    Failed,
    /// Cancelled.
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
            return Err(Invalid::new("states", "none", "at least one, or omit the field").into());
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
