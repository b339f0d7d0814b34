//! Every way of asking, each with what is told about it: what stands here is served and documented, and nothing else is.

use axum::Router;
use axum::http::Method;
use axum::routing::{self, MethodRouter};

use crate::api::Api;
use crate::jobs::{act, batch, enqueue, list, look};
use crate::openapi::Schemas;
use crate::problem::Kind;
use crate::wire::{AttemptDocument, JobDocument, JobPage, LogPage, Submit};
use crate::workers::verdict::{Complete, Fail, Release};
use crate::workers::{attempt, claim, settle};
use crate::{events, health, item, openapi};

/// One way of asking.
pub(crate) struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// By which generated clients call it.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    pub takes: Takes,
    pub answers: Vec<Answer>,
    /// What it may refuse with, beside what anything may.
    pub refuses: &'static [Kind],
    pub serve: fn() -> MethodRouter<Api>,
}

/// What is sent with it.
#[derive(Clone, Copy)]
pub(crate) struct Takes {
    /// What may stand behind the question mark, and what it means.
    pub query: &'static [(&'static str, &'static str)],
    /// The body.
    pub body: Option<fn(&mut Schemas) -> serde_json::Value>,
    /// Whether the client may say how long it would rather wait.
    pub waits: bool,
}

/// How it is answered.
pub(crate) struct Answer {
    pub status: u16,
    pub summary: &'static str,
    pub kind: &'static str,
    pub body: Option<fn(&mut Schemas) -> serde_json::Value>,
}

const NOTHING: Takes = Takes { query: &[], body: None, waits: false };
const JSON: &str = "application/json";

const fn job(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<JobDocument>) }
}

const fn empty(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: "", body: None }
}

/// All of them.
pub(crate) fn all() -> Vec<Endpoint> {
    let mut all = jobs();
    all.extend(items());
    all.extend(workers());
    all.extend(around());
    all
}

/// The item in the queue.
pub(crate) fn items() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/queue/{id}",
            name: "get_queue_item",
            summary: "Where a job stands; once it has made something, the way there",
            takes: Takes { query: &[("redirect", "`false`: never leads elsewhere")], waits: true, ..NOTHING },
            answers: vec![
                job(200, "It has not ended, or has left nothing to go to"),
                job(303, "It has succeeded; `Location` is what it made"),
                empty(304, "As the client knows it"),
            ],
            refuses: &[Kind::NotFound, Kind::Gone],
            serve: || routing::get(item::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/queue/{id}",
            name: "delete_queue_item",
            summary: "Cancels a job that has not ended, and removes one that has",
            takes: NOTHING,
            answers: vec![job(202, "It runs, and was asked to stop"), empty(204, "It is cancelled, or gone")],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::PreconditionFailed],
            serve: || routing::delete(item::delete),
        },
    ]
}

fn jobs() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs",
            name: "enqueue_job",
            summary: "Enqueues a job",
            takes: Takes { body: Some(Schemas::of::<Submit>), waits: true, ..NOTHING },
            answers: vec![
                job(200, "It has ended within the wait, or another job holds its unique key"),
                job(202, "It was accepted"),
            ],
            refuses: &[Kind::UniqueConflict, Kind::PayloadTooLarge],
            serve: || routing::post(enqueue::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/batch",
            name: "enqueue_jobs",
            summary: "Enqueues up to a thousand jobs, all or none; also a job a line as application/x-ndjson",
            takes: Takes { body: Some(Schemas::of::<batch::Batch>), ..NOTHING },
            answers: vec![Answer {
                status: 202,
                summary: "All were accepted",
                kind: JSON,
                body: Some(Schemas::of::<batch::BatchAnswer>),
            }],
            refuses: &[Kind::UniqueConflict, Kind::PayloadTooLarge],
            serve: || routing::post(batch::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs",
            name: "list_jobs",
            summary: "Lists jobs, the newest first, page by page",
            takes: Takes {
                query: &[
                    ("state", "In one of these states"),
                    ("queue", "In one of these queues"),
                    ("kind", "Of one of these kinds"),
                    ("tag", "With all of these tags"),
                    ("created_from", "Accepted then or later"),
                    ("created_before", "Accepted before that"),
                    ("cursor", "`next_cursor` of the page before"),
                    ("limit", "How many at most: 1 to 1000, usually 50"),
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
                kind: JSON,
                body: Some(Schemas::of::<JobPage>),
            }],
            refuses: &[],
            serve: || routing::get(list::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/jobs/{id}",
            name: "put_job",
            summary: "Enqueues a job under an id of the client's; repeating it is harmless",
            takes: Takes { body: Some(Schemas::of::<Submit>), waits: true, ..NOTHING },
            answers: vec![job(200, "It was there already"), job(201, "It was accepted")],
            refuses: &[Kind::IdTaken, Kind::UniqueConflict, Kind::PayloadTooLarge],
            serve: || routing::put(enqueue::put),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}",
            name: "get_job",
            summary: "Shows a job; never leads elsewhere",
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![job(200, "The job"), empty(304, "As the client knows it")],
            refuses: &[Kind::NotFound, Kind::Gone],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/jobs/{id}",
            name: "delete_job",
            summary: "Cancels a job that has not ended, and removes one that has",
            takes: NOTHING,
            answers: vec![
                job(200, "It was cancelled"),
                job(202, "It runs, and was asked to stop"),
                empty(204, "It is gone"),
            ],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::PreconditionFailed],
            serve: || routing::delete(act::delete),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/result",
            name: "get_job_result",
            summary: "What a job has returned",
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![
                Answer { status: 200, summary: "What it returned", kind: JSON, body: Some(Schemas::any) },
                empty(202, "It has not ended"),
                empty(204, "It has returned nothing"),
            ],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::JobFailed, Kind::JobCancelled],
            serve: || routing::get(look::result),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/attempts",
            name: "list_attempts",
            summary: "The attempts of a job, the first first",
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The attempts",
                kind: JSON,
                body: Some(Schemas::items_of::<AttemptDocument>),
            }],
            refuses: &[Kind::NotFound, Kind::Gone],
            serve: || routing::get(look::attempts),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/logs",
            name: "list_log_lines",
            summary: "What the attempts of a job have logged, page by page",
            takes: Takes {
                query: &[
                    ("after", "`next_after` of the page before"),
                    ("limit", "How many at most: 1 to 1000, usually 100"),
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
                kind: JSON,
                body: Some(Schemas::of::<LogPage>),
            }],
            refuses: &[Kind::NotFound, Kind::Gone],
            serve: || routing::get(look::logs),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/events",
            name: "follow_job",
            summary: "What happens to a job, as it happens",
            takes: NOTHING,
            answers: vec![
                Answer {
                    status: 200,
                    summary: "Events `job` and at last `end`, each with the job",
                    kind: "text/event-stream",
                    body: None,
                },
                empty(204, "The client has seen the end"),
            ],
            refuses: &[Kind::NotFound, Kind::Gone],
            serve: || routing::get(events::get),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/cancel",
            name: "cancel_job",
            summary: "Ends a job: at once if it waits; if it runs, its holder is asked to stop",
            takes: Takes { body: Some(Schemas::of::<act::CancelAsk>), ..NOTHING },
            answers: vec![job(200, "It is cancelled"), job(202, "It runs, and was asked to stop")],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::StateConflict],
            serve: || routing::post(act::cancel),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/retry",
            name: "retry_job",
            summary: "Does a job that has ended again, with all its attempts",
            takes: Takes { body: Some(Schemas::of::<act::Nothing>), ..NOTHING },
            answers: vec![job(202, "It waits again")],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::StateConflict, Kind::UniqueConflict],
            serve: || routing::post(act::retry),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/run-now",
            name: "run_job_now",
            summary: "Lets a job that waits for its time be due at once",
            takes: Takes { body: Some(Schemas::of::<act::Nothing>), ..NOTHING },
            answers: vec![job(202, "It is due")],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::StateConflict],
            serve: || routing::post(act::run_now),
        },
    ]
}

/// What workers in other languages ask and tell.
fn workers() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/claim",
            name: "claim_jobs",
            summary: "Grants due jobs to a worker, or none if there are none within the wait",
            takes: Takes { body: Some(Schemas::of::<claim::Claim>), waits: true, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "What was granted, each with its token",
                kind: JSON,
                body: Some(Schemas::of::<claim::ClaimAnswer>),
            }],
            refuses: &[],
            serve: || routing::post(claim::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/settle",
            name: "settle_jobs",
            summary: "Tells how up to a thousand jobs went, and claims the next ones",
            takes: Takes { body: Some(Schemas::of::<settle::Settle>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "What became of each, and what was granted",
                kind: JSON,
                body: Some(Schemas::of::<settle::SettleAnswer>),
            }],
            refuses: &[Kind::PayloadTooLarge],
            serve: || routing::post(settle::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/heartbeat",
            name: "extend_job",
            summary: "Holds a job for longer, tells how far it has come, and learns whether to stop",
            takes: Takes { body: Some(Schemas::of::<attempt::Heartbeat>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "It is held",
                kind: JSON,
                body: Some(Schemas::of::<attempt::HeartbeatAnswer>),
            }],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::LeaseLost],
            serve: || routing::post(attempt::heartbeat),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/complete",
            name: "complete_job",
            summary: "The job is done",
            takes: Takes { body: Some(Schemas::of::<Complete>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::LeaseLost],
            serve: || routing::post(attempt::complete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/fail",
            name: "fail_job",
            summary: "The attempt has failed",
            takes: Takes { body: Some(Schemas::of::<Fail>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::LeaseLost],
            serve: || routing::post(attempt::fail),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/release",
            name: "release_job",
            summary: "The job is given back, and no attempt is spent",
            takes: Takes { body: Some(Schemas::of::<Release>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[Kind::NotFound, Kind::Gone, Kind::LeaseLost],
            serve: || routing::post(attempt::release),
        },
    ]
}

const fn settled() -> Answer {
    Answer {
        status: 200,
        summary: "It is so, or was told before",
        kind: JSON,
        body: Some(Schemas::of::<attempt::SettledAnswer>),
    }
}

fn around() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/livez",
            name: "live",
            summary: "Whether the program turns; asks no store",
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It does", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(health::live),
        },
        Endpoint {
            method: Method::GET,
            path: "/readyz",
            name: "ready",
            summary: "Whether requests should be sent here",
            takes: NOTHING,
            answers: vec![
                Answer { status: 200, summary: "They should", kind: JSON, body: Some(Schemas::any) },
                Answer { status: 503, summary: "They should not", kind: JSON, body: Some(Schemas::any) },
            ],
            refuses: &[],
            serve: || routing::get(health::ready),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/version",
            name: "version",
            summary: "Which version answers",
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "This one", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(health::version),
        },
        Endpoint {
            method: Method::GET,
            path: "/openapi.json",
            name: "openapi",
            summary: "This document",
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(openapi::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/openapi-3.0.json",
            name: "openapi_3_0",
            summary: "This document in the words of OpenAPI 3.0",
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(openapi::get_3_0),
        },
    ]
}

/// A router for these; whatever else is asked for is told so by a problem.
pub(crate) fn router(endpoints: Vec<Endpoint>) -> Router<Api> {
    endpoints
        .into_iter()
        .fold(Router::new(), |router, endpoint| router.route(endpoint.path, (endpoint.serve)()))
}
