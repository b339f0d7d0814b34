//! What is said about kinds.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, READ, Takes, empty};
use crate::access::Within;
use crate::kinds::routes::{self, KindAsk, KindDocument};
use crate::openapi::Schemas;
use crate::problem::ProblemType;

/// What is said about kinds.
pub(super) fn kinds() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::PUT,
            path: "/v1/kinds/{name}",
            name: "put_kind",
            summary: "Set the description and args schema of a kind; fields that you omit are cleared",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<KindAsk>), needs_body: false, ..NOTHING },
            answers: vec![
                kind(201, "The description was created"),
                kind(200, "The description was replaced"),
            ],
            refuses: &[],
            serve: || routing::put(routes::put),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/kinds/{name}",
            name: "get_kind",
            summary: "Show a kind",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![kind(200, "The kind's description")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/kinds/{name}",
            name: "delete_kind",
            summary: "Delete a kind's description; its jobs stay",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "The description was deleted")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::delete),
        },
    ]
}

const fn kind(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<KindDocument>) }
}
