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
        summary: "Does something with all jobs that a search means, as a job of its own",
        needs: MANAGE,
        within: Within::Whole,
        takes: Takes { body: Some(Schemas::of::<BulkAsk>), once: true, ..NOTHING },
        answers: vec![
            Answer {
                status: 200,
                summary: "Nothing was done: so many jobs are meant",
                kind: JSON,
                body: Some(Schemas::of::<Preview>),
            },
            job(202, "It is done by this job, which shows how far it has come"),
        ],
        refuses: &[ProblemType::KeyReused],
        serve: || routing::post(bulk::post),
    }]
}
