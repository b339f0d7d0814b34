//! Limits of limit keys.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, PAGED, READ, Takes, empty};
use crate::access::Within;
use crate::limits;
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::wire::{LimitDocument, LimitPage, LimitSpec};

/// Limits of limit keys.
pub(super) fn limits() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/limits",
            name: "list_limits",
            summary: "List limits by limit key; those that are set or used by a job",
            needs: READ,
            within: Within::Whole,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of limits",
                kind: JSON,
                body: Some(Schemas::of::<LimitPage>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(limits::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/limits/{key}",
            name: "get_limit",
            summary: "Show the limit of a limit key, and its usage",
            needs: READ,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![limit("The limit")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(limits::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/limits/{key}",
            name: "put_limit",
            summary: "Set the limit of a limit key; it overrides the numbers of jobs",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<LimitSpec>), needs_body: false, ..NOTHING },
            answers: vec![limit("The limit, as set")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::put(limits::put),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/limits/{key}",
            name: "delete_limit",
            summary: "Remove the limit of a limit key; its jobs set the number again",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "The limit was removed")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::delete(limits::delete),
        },
    ]
}

const fn limit(summary: &'static str) -> Answer {
    Answer { status: 200, summary, kind: JSON, body: Some(Schemas::of::<LimitDocument>) }
}
