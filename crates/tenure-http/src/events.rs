//! What happens to a job, as it happens: server-sent events.
//!
//! The number of an event is the tag of the document that it carries. Whoever comes back with the last one that he has
//! seen is told what has become of the job since, from whichever server he asks: nothing has to be remembered for him.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use tenure::JobId;

use crate::answer::Shown;
use crate::api::Api;
use crate::id::Id;
use crate::prefer::Prefer;
use crate::problem::{Problem, ProblemType};
use crate::watchers::Watcher;

/// So often something is sent although nothing has happened, so that nobody takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(25);
/// When a client that was cut off should come back.
const RETRY: Duration = Duration::from_secs(1);

type Events = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// `GET /v1/jobs/{id}/events`
pub(crate) async fn get(api: Api, Id(id): Id, headers: HeaderMap) -> Result<Response, Problem> {
    of_job(api, id, &headers).await
}

/// The events of a job, from the one on that the client has seen last.
pub(crate) async fn of_job(api: Api, id: JobId, headers: &HeaderMap) -> Result<Response, Problem> {
    let watcher = api.watchers().watch(id);
    let shown = api.shown(&api.job(id).await?);
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok()).map(str::to_owned);
    if shown.is_finished && seen.as_deref() == Some(number(&shown).as_str()) {
        // He has seen the end: this keeps him from coming back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let over: Over = match Prefer::of(headers).wait {
        Some(wait) => api.tenure().store().clock().sleep(wait),
        None => Box::pin(std::future::pending()),
    };
    let following = Following { api, id, watcher, seen, step: Step::Look, over };
    let events: Events = Box::pin(stream::unfold(following, Following::next));
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // Some intermediaries gather what they pass on.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}

/// Somebody who follows a job.
struct Following {
    api: Api,
    id: JobId,
    watcher: Watcher,
    seen: Option<String>,
    step: Step,
    /// Ends when he has followed for as long as he would.
    over: Over,
}

type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Step {
    Look,
    Wait,
    End,
}

impl Following {
    /// The next event, and how it goes on after it.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            match self.step {
                Step::End => return None,
                Step::Wait => {
                    tokio::select! {
                        biased;
                        // He comes back with what he has seen last, to another server.
                        () = self.api.ended() => return None,
                        () = &mut self.over => return None,
                        () = self.watcher.changed() => self.step = Step::Look,
                    }
                }
                Step::Look => {
                    self.step = Step::Wait;
                    let job = match self.api.job(self.id).await {
                        Ok(job) => job,
                        Err(problem) if problem.problem_type() == ProblemType::NotFound => {
                            self.step = Step::End;
                            return Some((Ok(Event::default().event("gone").data("{}")), self));
                        }
                        // He comes back, perhaps to another server, with what he has seen last.
                        Err(_) => return None,
                    };
                    let shown = self.api.shown(&job).on(self.api.site());
                    let number = number(&shown);
                    if self.seen.as_deref() == Some(&number) {
                        continue;
                    }
                    let name = if shown.is_finished { "end" } else { "job" };
                    if shown.is_finished {
                        self.step = Step::End;
                    }
                    let data = String::from_utf8_lossy(shown.body());
                    let event = Event::default().id(&number).event(name).retry(RETRY).data(data);
                    self.seen = Some(number);
                    return Some((Ok(event), self));
                }
            }
        }
    }
}

fn number(shown: &Shown) -> String {
    shown.tag.as_str().trim_matches('"').to_owned()
}
