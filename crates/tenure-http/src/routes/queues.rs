//! Queues.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, READ, Takes, empty, job};
use crate::access::Within;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::queues::{agree, explain, look, purge, stats};
use crate::wire::{KindList, QueueDocument, QueueList, QueuePatch, QueueSpec, QueueStats, Reasons, Stats};

/// For how things went.
const WINDOW: [(&str, &str); 2] = [
    ("window_seconds", "How far back it is told how things went, 60 to 604800; not at all if it is not said"),
    ("step_seconds", "In which steps; 60 if it is not said. At most 1500 steps"),
];

/// Queues, and how many jobs there are.
pub(super) fn queues() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/queues",
            name: "list_queues",
            summary: "Lists all queues that were ever named",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "They",
                kind: JSON,
                body: Some(Schemas::of::<QueueList>),
            }],
            refuses: &[],
            serve: || routing::get(look::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}",
            name: "get_queue",
            summary: "Shows what was agreed about a queue",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![queue(200, "The queue"), empty(304, "As the client knows it")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}/explain",
            name: "explain_queue",
            summary: "Why the jobs of a queue do not run",
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
            summary: "Agrees about a queue; what is not said is as for a new one",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<QueueSpec>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "It is so"), queue(201, "It was not there before")],
            refuses: &[ProblemType::PreconditionFailed],
            serve: || routing::put(agree::put),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/queues/{name}",
            name: "patch_queue",
            summary: "Changes what was agreed about a queue; what is not said stays",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<QueuePatch>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "It is so")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::patch(agree::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/queues/{name}",
            name: "delete_queue",
            summary: "Removes a queue in which no job is kept, and what was agreed about it",
            needs: MANAGE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "It is gone; it is there again as soon as somebody names it")],
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
            summary: "Hands out no more jobs of a queue; what runs goes on",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "It is paused, or was")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(agree::pause_now),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/queues/{name}/resume",
            name: "resume_queue",
            summary: "Hands out jobs of a queue again",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![queue(200, "It is not paused")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(agree::resume),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/queues/{name}/purge",
            name: "purge_queue",
            summary: "Removes the jobs of a queue that do not run, by a job of its own",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<purge::Purge>), ..NOTHING },
            answers: vec![job(202, "It is done by this job")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(purge::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/queues/{name}/stats",
            name: "get_queue_stats",
            summary: "How many jobs are in a queue, by kind and state, and how long the oldest has waited",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &WINDOW, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "So many",
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
            summary: "The same for all queues",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &WINDOW, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "So many",
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
            summary: "Lists the kinds of which jobs are kept, and how many of each, and those about which something is said",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "They",
                kind: JSON,
                body: Some(Schemas::of::<KindList>),
            }],
            refuses: &[],
            serve: || routing::get(stats::kinds),
        },
    ]
}

const fn queue(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<QueueDocument>) }
}
