//! Agreeing about a queue.

use axum::body::Body;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{Invalid, QueueEdit, QueueEdited, QueueInfo, QueueName, QueueRemoved, QueueSeen};

use super::look::{find, shown, tag, there};
use crate::api::Api;
use crate::body;
use crate::callbacks;
use crate::id::Named;
use crate::jobs::act::Nothing;
use crate::problem::{Problem, ProblemType};
use crate::wire::{QueuePatch, QueueSpec, not_own};

const BODY_BYTES: usize = 16 * 1024;
/// Tries to change what others change as well.
const TRIES: u32 = 10;

/// `PUT /v1/queues/{name}`
pub(crate) async fn put(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let spec: QueueSpec = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let (name, limit, terms) = (QueueName::new(&name)?, spec.limit()?, spec.terms()?);
    may_agree(&api, &name)?;
    let before = find(&api, &name).await?;
    if before.is_none() {
        not_own("queue", name.as_str())?;
    }
    check(before.as_ref(), &headers)?;
    if before.is_some() && is_to_be_new(&headers) {
        return Err(Problem::new(ProblemType::PreconditionFailed, format!("queue {name} already exists")));
    }
    api.admit_queue(&name).await?;
    let seen = seen(before.as_ref(), &headers);
    let edit = QueueEdit { seen, paused: Some(spec.paused), limit: Some(limit), terms: Some(terms) };
    let QueueEdited::Done { before } = api.tenure().queues().agree(name.as_str(), edit).await? else {
        return Err(changed(&name));
    };
    let was_paused = before.as_ref().is_some_and(|before| before.paused);
    tell(&api, &name, was_paused, spec.paused).await;
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
    change(&api, &name, &headers, |queue| {
        let (limit, terms) = (patch.limit(queue.limit)?, patch.terms(&queue.terms)?);
        Ok(QueueEdit { paused: patch.paused, limit, terms, ..QueueEdit::default() })
    })
    .await
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
    change(api, name, headers, |_| Ok(QueueEdit { paused: Some(paused), ..QueueEdit::default() })).await
}

/// `DELETE /v1/queues/{name}`
pub(crate) async fn delete(api: Api, Named(name): Named, headers: HeaderMap) -> Result<Response, Problem> {
    let name = QueueName::new(&name)?;
    let queue = there(&api, &name).await?;
    may_agree(&api, &name)?;
    check(Some(&queue), &headers)?;
    let seen = seen(Some(&queue), &headers);
    match api.tenure().queues().remove(name.as_str(), seen).await? {
        QueueRemoved::Done => {
            api.queues().forget();
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        QueueRemoved::NotEmpty => {
            let detail = format!("queue {name} still has jobs; wait for them to end, then purge it");
            Err(Problem::new(ProblemType::StateConflict, detail))
        }
        QueueRemoved::Otherwise(Some(_)) => Err(changed(&name)),
        QueueRemoved::Otherwise(None) => there(&api, &name).await.map(|_| ()).and(Err(changed(&name))),
    }
}

/// Changes a queue that is there as it is decided from how it is, in one step: if somebody else was faster it is decided anew,
/// unless the client has said how it has to be.
async fn change(
    api: &Api,
    name: &str,
    headers: &HeaderMap,
    decide: impl Fn(&QueueInfo) -> Result<QueueEdit, Invalid>,
) -> Result<Response, Problem> {
    let name = QueueName::new(name)?;
    for _ in 0..TRIES {
        // A queue that nobody has named is not made by a slip of the pen.
        let queue = there(api, &name).await?;
        may_agree(api, &name)?;
        let edit = decide(&queue)?;
        check(Some(&queue), headers)?;
        let edit = QueueEdit { seen: QueueSeen::As(queue.agreed()), ..edit };
        let paused = edit.paused.unwrap_or(queue.paused);
        if let QueueEdited::Done { .. } = api.tenure().queues().agree(name.as_str(), edit).await? {
            tell(api, &name, queue.paused, paused).await;
            return Ok(shown(StatusCode::OK, &there(api, &name).await?));
        }
    }
    Err(changed(&name))
}

async fn tell(api: &Api, name: &QueueName, was: bool, paused: bool) {
    api.queues().forget();
    if paused != was {
        callbacks::note_queue(api, name, paused).await;
    }
}

/// Refuses whoever does not reach all jobs of the queue: what is agreed holds for all of them.
fn may_agree(api: &Api, name: &QueueName) -> Result<(), Problem> {
    let reach = api.reach();
    if reach.covers_queue(name.as_str()) && reach.has_all_kinds() {
        return Ok(());
    }
    Err(api.beyond(&format!("all jobs of queue {name}")))
}

/// How a queue has to be for whoever has said that it has to be as he has seen it.
fn seen(queue: Option<&QueueInfo>, headers: &HeaderMap) -> QueueSeen {
    match queue.filter(|_| headers.contains_key(IF_MATCH)) {
        Some(queue) => QueueSeen::As(queue.agreed()),
        None if is_to_be_new(headers) => QueueSeen::Absent,
        None => QueueSeen::Anything,
    }
}

/// Whether the client wants something made, and nothing changed.
fn is_to_be_new(headers: &HeaderMap) -> bool {
    headers.get(IF_NONE_MATCH).is_some_and(|said| said.as_bytes() == b"*")
}

/// Refuses a change of what has changed since it was looked at.
fn check(queue: Option<&QueueInfo>, headers: &HeaderMap) -> Result<(), Problem> {
    match queue {
        Some(queue) if tag(queue).is_refused(headers) => Err(changed(&queue.name)),
        None if headers.contains_key(IF_MATCH) => {
            Err(Problem::new(ProblemType::PreconditionFailed, "the queue does not exist"))
        }
        Some(_) | None => Ok(()),
    }
}

fn changed(name: &QueueName) -> Problem {
    let detail = format!("queue {name} has changed since it was read; read it again");
    Problem::new(ProblemType::PreconditionFailed, detail)
}
