//! Queues.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, READ, Takes, empty, job};
use crate::access::Within;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::paging::LISTED;
use crate::problem::ProblemType;
use crate::queues::{agree, explain, look, purge, stats};
use crate::wire::{KindList, QueueDocument, QueueList, QueuePatch, QueueSpec, QueueStats, Reasons, Stats};

/// For how things went.
const WINDOW: [(&str, &str); 2] = [
    ("window_seconds", "Length of the history in seconds: 60 to 604800; default: no history"),
    ("step_seconds", "Length of one step in seconds; default 60, at most 1500 steps"),
];

/// For the statistics of a page of queues.
const STATS: [(&str, &str); 4] = [WINDOW[0], WINDOW[1], LISTED[0], LISTED[1]];

/// Queues, and how many jobs there are.
pub(super) fn queues() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/queues",
            name: "list_queues",
            summary: "List queues",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &LISTED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of queues",
                kind: JSON,
                body: Some(Schemas::of::<QueueList>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(look::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}",
            name: "get_queue",
            summary: "Show a queue's settings",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![queue(200, "The queue"), empty(304, "Not modified")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}/explain",
            name: "explain_queue",
            summary: "Explain why a queue's jobs are not running",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The reasons",
                kind: JSON,
                body: Some(Schemas::of::<Reasons>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(explain::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/queues/{name}",
            name: "put_queue",
            summary: "Create or replace a queue's settings; omitted fields get their defaults",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<QueueSpec>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "The updated queue"), queue(201, "The new queue")],
            refuses: &[ProblemType::PreconditionFailed],
            serve: || routing::put(agree::put),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/queues/{name}",
            name: "patch_queue",
            summary: "Update a queue's settings; omitted fields keep their values",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<QueuePatch>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "The updated queue")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::patch(agree::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/queues/{name}",
            name: "delete_queue",
            summary: "Delete an empty queue and its settings",
            needs: MANAGE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "The queue was deleted; a job that names it creates it again")],
            refuses: &[
                ProblemType::NotFound,
                ProblemType::Validation,
                ProblemType::StateConflict,
                ProblemType::PreconditionFailed,
            ],
            serve: || routing::delete(agree::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/queues/{name}/pause",
            name: "pause_queue",
            summary: "Pause a queue; running jobs continue",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "The paused queue")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(agree::pause_now),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/queues/{name}/resume",
            name: "resume_queue",
            summary: "Resume a queue",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "The resumed queue")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(agree::resume),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/queues/{name}/purge",
            name: "purge_queue",
            summary: "Delete a queue's jobs that are not running; in a background job",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<purge::Purge>), ..NOTHING },
            answers: vec![job(202, "Accepted; the returned job reports progress")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(purge::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}/stats",
            name: "get_queue_stats",
            summary: "Show a queue's job counts; by kind and state, with the age of its oldest due job",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &WINDOW, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The job counts",
                kind: JSON,
                body: Some(Schemas::of::<QueueStats>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(stats::of_one),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/stats",
            name: "get_stats",
            summary: "Show job counts of all queues",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &STATS, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The job counts",
                kind: JSON,
                body: Some(Schemas::of::<Stats>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(stats::of_all),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/kinds",
            name: "list_kinds",
            summary: "List kinds with their job counts and descriptions",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &LISTED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of kinds",
                kind: JSON,
                body: Some(Schemas::of::<KindList>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(stats::kinds),
        },
    ]
}

const fn queue(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<QueueDocument>) }
}
