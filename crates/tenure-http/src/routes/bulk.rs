//! Many jobs at once.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, Takes, job};
use crate::access::Within;
use crate::bulk::{self, BulkAsk, Preview};
use crate::openapi::Schemas;
use crate::problem::ProblemType;

/// Many jobs at once.
pub(super) fn bulk() -> Vec<Endpoint> {
    vec![Endpoint {
        method: Method::POST,
        path: "/v1/bulk",
        name: "operate_on_jobs",
        summary: "Apply an action to all jobs that match a search; it runs as a background job",
        needs: MANAGE,
        within: Within::Whole,
        takes: Takes { body: Some(Schemas::of::<BulkAsk>), once: true, ..NOTHING },
        answers: vec![
            Answer {
                status: 200,
                summary: "Dry run: the number of matching jobs",
                kind: JSON,
                body: Some(Schemas::of::<Preview>),
            },
            job(202, "Accepted; the returned job reports progress"),
        ],
        refuses: &[ProblemType::KeyReused],
        serve: || routing::post(bulk::post),
    }]
}
