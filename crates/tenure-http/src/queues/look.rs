//! Looking at queues.

use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{QueueInfo, QueueName};

use crate::answer::{not_modified, page, tagged};
use crate::api::Api;
use crate::id::Named;
use crate::paging::Paging;
use crate::problem::{Problem, ProblemType};
use crate::tag::Tag;
use crate::wire::{QueueDocument, QueueList};

/// `GET /v1/queues`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let paging = Paging::read(uri.query())?;
    let queues = api.tenure().queues().list().await?;
    let reached = queues.iter().filter(|queue| is_reached(&api, queue));
    let (queues, next_cursor) = paging.cut(reached, |queue| queue.name.to_string());
    let items = queues.into_iter().map(QueueDocument::of).collect();
    Ok(page(&uri, next_cursor.clone().as_deref(), &QueueList { items, next_cursor }))
}

/// `GET /v1/queues/{name}`
pub(crate) async fn get(api: Api, Named(name): Named, headers: HeaderMap) -> Result<Response, Problem> {
    let queue = there(&api, &QueueName::new(&name)?).await?;
    let tag = tag(&queue);
    Ok(if tag.is_known(&headers) { not_modified(&tag) } else { shown(StatusCode::OK, &queue) })
}

/// Whether whoever asks reaches jobs of this queue.
pub(crate) fn is_reached(api: &Api, queue: &QueueInfo) -> bool {
    api.reach().covers_queue(queue.name.as_str())
}

/// The queue of this name, if there is one that whoever asks reaches.
pub(crate) async fn find(api: &Api, name: &QueueName) -> Result<Option<QueueInfo>, Problem> {
    let queues = api.tenure().queues().list().await?;
    Ok(queues.into_iter().find(|queue| queue.name == *name && is_reached(api, queue)))
}

/// The queue of this name.
pub(crate) async fn there(api: &Api, name: &QueueName) -> Result<QueueInfo, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, format!("queue {name} not found"));
    find(api, name).await?.ok_or_else(missing)
}

/// What tells one agreement about a queue from another.
pub(crate) fn tag(queue: &QueueInfo) -> Tag {
    Tag::of(&serde_json::to_vec(&QueueDocument::of(queue)).unwrap_or_default())
}

/// The answer that shows it.
pub(crate) fn shown(status: StatusCode, queue: &QueueInfo) -> Response {
    tagged(status, &tag(queue), &QueueDocument::of(queue))
}
