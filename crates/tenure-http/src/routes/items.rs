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
            summary: "Where a job stands; once it has made something, the way there",
            needs: FOLLOW,
            within: Within::Jobs,
            takes: Takes {
                query: &[("redirect", "`false`: never leads elsewhere"), REVEAL],
                waits: true,
                ..NOTHING
            },
            answers: vec![
                job(200, "It has not ended, or has left nothing to go to"),
                job(303, "It has succeeded; `Location` is what it made"),
                empty(304, "As the client knows it"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(item::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/queue/{id}",
            name: "delete_queue_item",
            summary: "Cancels a job that has not ended, and removes one that has",
            needs: END,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![job(202, "It runs, and was asked to stop"), empty(204, "It is cancelled, or gone")],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::PreconditionFailed],
            serve: || routing::delete(item::delete),
        },
    ]
}
