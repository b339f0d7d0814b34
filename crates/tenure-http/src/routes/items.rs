//! The item in the queue.

use axum::http::Method;
use axum::routing;

use super::{END, Endpoint, FOLLOW, NOTHING, REVEAL, Takes, empty, job};
use crate::access::Within;
use crate::item;
use crate::problem::ProblemType;

/// The item in the queue.
pub(crate) fn items() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/queue/{id}",
            name: "get_queue_item",
            summary: "Show a job's status; redirects to the resource once the job has created it",
            needs: FOLLOW,
            within: Within::Jobs,
            takes: Takes {
                query: &[("redirect", "`false` disables the redirect"), REVEAL],
                accepts: &["text/event-stream"],
                waits: true,
                ..NOTHING
            },
            answers: vec![
                job(200, "The job has not ended, or created no resource"),
                job(303, "The job succeeded; `Location` is the resource it created"),
                empty(304, "Not modified"),
            ],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(item::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/queue/{id}",
            name: "delete_queue_item",
            summary: "Cancel an unfinished job, or delete a finished one",
            needs: END,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![
                job(202, "The job is running and was asked to stop"),
                empty(204, "The job was cancelled or deleted"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::delete(item::delete),
        },
    ]
}
