//! Who is there: workers that say who they are are known to the store, so that a job that nobody takes can be explained.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use tenure::{Host, HostId, Kinds, Moment, Reserve, Serves};

use crate::answer::json;
use crate::api::Api;
use crate::problem::Problem;

/// For how long a worker counts as alive after it was heard of.
pub(crate) const ALIVE: Duration = Duration::from_secs(90);
/// So often the store is told at most.
const APART: Duration = Duration::from_secs(15);
/// Workers of which it is remembered when the store was told.
const MOST: usize = 100_000;

/// When the store was last told of which worker.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    told: Mutex<BTreeMap<HostId, Moment>>,
}

impl Roll {
    /// Whether it is time to tell the store of a worker; then somebody does.
    fn is_due(&self, id: HostId, now: Moment) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(&id).is_some_and(|last| now.since(*last) < APART) {
            return false;
        }
        if told.len() >= MOST {
            told.clear();
        }
        told.insert(id, now);
        true
    }

    fn forget(&self, id: HostId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// Tells the store that a worker is there, and what it takes. Nothing depends on it but what people are told.
pub(crate) fn note(api: &Api, name: Option<&str>, ask: &Reserve) {
    if !api.roll().is_due(ask.holder, api.tenure().store().clock().moment()) {
        return;
    }
    let slots = u32::try_from(ask.at_most).unwrap_or(u32::MAX);
    let serves = ask.wants.iter().map(|want| {
        let kinds = match &want.kinds {
            Kinds::All => None,
            Kinds::Only(kinds) => Some(kinds.to_vec()),
        };
        Serves { queue: want.queue.clone(), kinds, slots }
    });
    let (id, serves, store) = (ask.holder, serves.collect::<Vec<_>>(), api.tenure().store().clone());
    let name = name.unwrap_or("a worker over HTTP").to_owned();
    tokio::spawn(async move {
        if let Err(fault) = store.announce(id, &name, slots, &serves, ALIVE).await {
            tracing::debug!(%fault, "the store was not told of a worker");
        }
    });
}

/// A program that runs jobs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Worker")]
pub(crate) struct WorkerDocument {
    /// Its id.
    worker_id: String,
    /// A name for people.
    name: String,
    /// When it was first heard of.
    started_at: String,
    /// Until when it counts as alive unless it is heard of again.
    alive_until: String,
    /// How many jobs it runs at once.
    slots: u32,
    /// From which queues.
    serves: Vec<ServesDocument>,
}

/// What a worker takes from a queue.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Serves")]
pub(crate) struct ServesDocument {
    queue: String,
    /// Of which kinds; of any if it does not say.
    kinds: Option<Vec<String>>,
    slots: u32,
}

impl WorkerDocument {
    fn of(host: &Host) -> Self {
        let serves = host.serves.iter().map(|serves| ServesDocument {
            queue: serves.queue.as_str().to_owned(),
            kinds: serves
                .kinds
                .as_ref()
                .map(|kinds| kinds.iter().map(|kind| kind.as_str().to_owned()).collect()),
            slots: serves.slots,
        });
        Self {
            worker_id: host.id.to_string(),
            name: host.name.clone(),
            started_at: host.started.to_string(),
            alive_until: host.until.to_string(),
            slots: host.slots,
            serves: serves.collect(),
        }
    }
}

/// `GET /v1/workers`
pub(crate) async fn list(State(api): State<Api>) -> Result<Response, Problem> {
    let hosts = api.tenure().hosts().await?;
    let items: Vec<WorkerDocument> = hosts.iter().map(WorkerDocument::of).collect();
    Ok(json(StatusCode::OK, &serde_json::json!({ "items": items })))
}

/// `DELETE /v1/workers/{id}`
pub(crate) async fn leave(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    let id: HostId = id.parse()?;
    api.roll().forget(id);
    api.tenure().store().retire(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
