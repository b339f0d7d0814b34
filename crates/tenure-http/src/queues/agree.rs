//! Agreeing about a queue.

use axum::body::Body;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{QueueInfo, QueueName};

use super::look::{find, shown, tag, there};
use crate::api::Api;
use crate::body;
use crate::callbacks;
use crate::id::Named;
use crate::jobs::act::Nothing;
use crate::problem::{Problem, ProblemType};
use crate::wire::{QueuePatch, QueueSpec};

const BODY_BYTES: usize = 16 * 1024;

/// `PUT /v1/queues/{name}`
pub(crate) async fn put(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let spec: QueueSpec = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let (name, limit) = (QueueName::new(&name)?, spec.limit()?);
    may_agree(&api, &name)?;
    let before = find(&api, &name).await?;
    check(before.as_ref(), &headers)?;
    api.tenure().queues().limit(name.as_str(), limit).await?;
    pause(&api, &name, spec.paused, before.as_ref().is_some_and(|queue| queue.paused)).await?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok(shown(status, &there(&api, &name).await?))
}

/// `PATCH /v1/queues/{name}`
pub(crate) async fn patch(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let patch: QueuePatch = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let name = QueueName::new(&name)?;
    let queue = there(&api, &name).await?;
    may_agree(&api, &name)?;
    let limit = patch.limit(queue.limit)?;
    check(Some(&queue), &headers)?;
    if let Some(limit) = limit {
        api.tenure().queues().limit(name.as_str(), limit).await?;
    }
    if let Some(paused) = patch.paused {
        pause(&api, &name, paused, queue.paused).await?;
    }
    Ok(shown(StatusCode::OK, &there(&api, &name).await?))
}

/// `POST /v1/queues/{name}/pause`
pub(crate) async fn pause_now(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    set(&api, &name, &headers, body, true).await
}

/// `POST /v1/queues/{name}/resume`
pub(crate) async fn resume(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    set(&api, &name, &headers, body, false).await
}

async fn set(
    api: &Api,
    name: &str,
    headers: &HeaderMap,
    body: Body,
    paused: bool,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(headers, &body::read(api, body, BODY_BYTES).await?)?;
    let name = QueueName::new(name)?;
    // A queue that nobody has named is not made by a slip of the pen.
    let queue = there(api, &name).await?;
    may_agree(api, &name)?;
    check(Some(&queue), headers)?;
    pause(api, &name, paused, queue.paused).await?;
    Ok(shown(StatusCode::OK, &there(api, &name).await?))
}

async fn pause(api: &Api, name: &QueueName, paused: bool, was: bool) -> Result<(), Problem> {
    let queues = api.tenure().queues();
    if paused {
        queues.pause(name.as_str()).await?
    } else {
        queues.resume(name.as_str()).await?
    };
    if paused != was {
        callbacks::note_queue(api, name, paused).await;
    }
    Ok(())
}

/// Refuses whoever does not reach all jobs of the queue: what is agreed holds for all of them.
fn may_agree(api: &Api, name: &QueueName) -> Result<(), Problem> {
    let reach = api.reach();
    if reach.covers_queue(name.as_str()) && reach.has_all_kinds() {
        return Ok(());
    }
    Err(api.beyond(&format!("all jobs of queue {name}")))
}

/// Refuses a change of what has changed since it was looked at.
fn check(queue: Option<&QueueInfo>, headers: &HeaderMap) -> Result<(), Problem> {
    let is_refused = match queue {
        Some(queue) => tag(queue).is_refused(headers),
        None => headers.contains_key(IF_MATCH),
    };
    if !is_refused {
        return Ok(());
    }
    let detail = queue.map_or_else(
        || "there is no such queue yet".to_owned(),
        |queue| format!("queue {} has changed since it was looked at", queue.name),
    );
    Err(Problem::new(ProblemType::PreconditionFailed, detail))
}
