//! Every way of asking, each with what is told about it: what stands here is served and documented, and nothing else is.

mod access;
mod apps;
mod around;
mod bulk;
mod callbacks;
mod items;
mod jobs;
mod kinds;
mod leases;
mod limits;
mod push;
mod queues;
mod schedules;
mod workers;

pub(crate) use items::items;

use axum::Router;
use axum::http::Method;
use axum::middleware;
use axum::routing::{self, MethodRouter};

use crate::access::{Guard, Needs, Scope, Within, guarded};
use crate::api::{Api, Served};
use crate::audit::{Look, Target};
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::troubles::noted;
use crate::wire::JobDocument;

/// One way of asking.
pub(crate) struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// By which generated clients call it.
    pub name: &'static str,
    /// An imperative line of at most 60 characters; details may follow after a semicolon.
    pub summary: &'static str,
    /// Which right whoever asks has to have.
    pub needs: Needs,
    /// How it keeps to the jobs that whoever asks reaches.
    pub within: Within,
    pub takes: Takes,
    pub answers: Vec<Answer>,
    /// What it may refuse with, beside what anything may.
    pub refuses: &'static [ProblemType],
    pub serve: fn() -> MethodRouter<Served>,
}

/// What is sent with it.
#[derive(Clone, Copy)]
pub(crate) struct Takes {
    /// What may stand behind the question mark, and what it means.
    pub query: &'static [(&'static str, &'static str)],
    /// The body.
    pub body: Option<fn(&mut Schemas) -> serde_json::Value>,
    /// Schema of a line, if the body may also be `application/x-ndjson`.
    pub line: Option<fn(&mut Schemas) -> serde_json::Value>,
    /// Whether it cannot be empty.
    pub needs_body: bool,
    /// Other types of the response, which the client chooses with `Accept`.
    pub accepts: &'static [&'static str],
    /// Whether the client may ask to have it done once, however often it is sent.
    pub once: bool,
    /// Whether the client may say how long it would rather wait.
    pub waits: bool,
    /// Whether the client has to say as what it has looked at the thing.
    pub matches: bool,
}

/// How it is answered.
pub(crate) struct Answer {
    pub status: u16,
    pub summary: &'static str,
    pub kind: &'static str,
    pub body: Option<fn(&mut Schemas) -> serde_json::Value>,
}

const NOTHING_NEEDED: Needs = Needs::Nothing;
const READ: Needs = Needs::One(&[Scope::Read]);
/// Whoever enqueues may see what becomes of a job whose id he knows.
const FOLLOW: Needs = Needs::One(&[Scope::Read, Scope::Enqueue]);
const ENQUEUE: Needs = Needs::One(&[Scope::Enqueue]);
/// Whoever enqueues may end what he began.
const END: Needs = Needs::One(&[Scope::Enqueue, Scope::Manage]);
const WORK: Needs = Needs::One(&[Scope::Work]);
/// A worker goes by itself, or somebody has it go.
const LEAVE: Needs = Needs::One(&[Scope::Work, Scope::Manage]);
const MANAGE: Needs = Needs::One(&[Scope::Manage]);
const ADMIN: Needs = Needs::One(&[Scope::Admin]);

const NOTHING: Takes = Takes {
    query: &[],
    body: None,
    line: None,
    needs_body: true,
    accepts: &[],
    once: false,
    waits: false,
    matches: false,
};
/// What may stand behind the question mark of a list.
const PAGED: [(&str, &str); 2] = [
    ("cursor", "`next_cursor` of the previous page"),
    ("limit", "Maximum number of results: 1 to 1000; default 50"),
];
/// What may stand behind the question mark of what shows jobs.
const REVEAL: (&str, &str) =
    ("reveal", "`true` shows hidden values; requires the scope `manage` and is audited");
const JSON: &str = "application/json";

const fn job(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<JobDocument>) }
}

const fn empty(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: "", body: None }
}

/// All of them.
pub(crate) fn all() -> Vec<Endpoint> {
    [
        jobs::jobs(),
        bulk::bulk(),
        items(),
        workers::workers(),
        leases::leases(),
        queues::queues(),
        limits::limits(),
        kinds::kinds(),
        schedules::schedules(),
        callbacks::callbacks(),
        apps::apps(),
        push::endpoints(),
        access::access(),
        around::around(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A router for these, each behind its guard; whatever else is asked for is told so by a problem.
pub(crate) fn router(endpoints: Vec<Endpoint>, api: &Api) -> Router<Served> {
    let shows =
        |endpoint: &Endpoint| (endpoint.method == Method::GET).then_some((endpoint.path, endpoint.serve));
    let tokens: Look = || routing::get(crate::access::routes::show);
    let mut looks: Vec<(&'static str, Look)> = endpoints.iter().filter_map(shows).collect();
    looks.push(("/v1/tokens/{token_id}", tokens));
    endpoints.into_iter().fold(Router::new(), |router, endpoint| {
        let target = Target::of(endpoint.path, &looks);
        let guard = Guard { api: api.clone(), needs: endpoint.needs, within: endpoint.within, target };
        let guard = middleware::from_fn_with_state(guard, guarded);
        let noting = middleware::from_fn_with_state(api.clone(), noted);
        router.route(endpoint.path, (endpoint.serve)().route_layer(guard).route_layer(noting))
    })
}
