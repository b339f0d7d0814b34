//! What workers in other languages ask and tell.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, LEAVE, MANAGE, NOTHING, READ, Takes, WORK, empty};
use crate::access::Within;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::workers::verdict::{Complete, Fail, Release};
use crate::workers::{attempt, beat, claim, commands, logs, roll, settle};

/// What workers in other languages ask and tell.
pub(super) fn workers() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/claim",
            name: "claim_jobs",
            summary: "Grants due jobs to a worker, or none if there are none within the wait",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes {
                body: Some(Schemas::of::<claim::Claim>),
                needs_body: false,
                waits: true,
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "What was granted, each with its token",
                kind: JSON,
                body: Some(Schemas::of::<claim::ClaimAnswer>),
            }],
            refuses: &[ProblemType::WorkerQuiet],
            serve: || routing::post(claim::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/settle",
            name: "settle_jobs",
            summary: "Tells how up to a thousand jobs went, and claims the next ones",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<settle::Settle>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "What became of each, and what was granted",
                kind: JSON,
                body: Some(Schemas::of::<settle::SettleAnswer>),
            }],
            refuses: &[ProblemType::PayloadTooLarge],
            serve: || routing::post(settle::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/workers",
            name: "list_workers",
            summary: "The programs that run jobs and are alive",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "All of them",
                kind: JSON,
                body: Some(Schemas::items_of::<roll::WorkerDocument>),
            }],
            refuses: &[],
            serve: || routing::get(roll::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/workers/{id}",
            name: "get_worker",
            summary: "A program that runs jobs and is alive",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "It",
                kind: JSON,
                body: Some(Schemas::of::<roll::WorkerDocument>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(roll::get),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/workers/{id}",
            name: "delete_worker",
            summary: "A worker goes: it is not listed any more, and what it holds is given back at once",
            needs: LEAVE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "It is not listed")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::delete(roll::leave),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/workers/{id}/quiet",
            name: "quiet_worker",
            summary: "Tells a worker to take no more jobs; those that it has come to their ends",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![told()],
            refuses: &[ProblemType::NotFound, ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::post(commands::quiet),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/workers/{id}/resume",
            name: "resume_worker",
            summary: "Tells a worker that it may take jobs again",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![told()],
            refuses: &[ProblemType::NotFound, ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::post(commands::resume),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/workers/{id}/terminate",
            name: "terminate_worker",
            summary: "Tells a worker to end, and to give back what it cannot end soon",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![told()],
            refuses: &[ProblemType::NotFound, ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::post(commands::terminate),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/workers/{id}/heartbeat",
            name: "extend_jobs",
            summary: "Holds all jobs of a worker for longer, and tells which of them to stop and which are lost",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<beat::Beat>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "What became of each",
                kind: JSON,
                body: Some(Schemas::of::<beat::BeatAnswer>),
            }],
            refuses: &[ProblemType::PayloadTooLarge],
            serve: || routing::post(beat::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/logs",
            name: "log_lines",
            summary: "Keeps lines that a worker logs about its job",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<logs::Lines>), ..NOTHING },
            answers: vec![empty(204, "They are kept, as far as the limits allow")],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::LeaseLost],
            serve: || routing::post(logs::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/heartbeat",
            name: "extend_job",
            summary: "Holds a job for longer, tells how far it has come, and learns whether to stop",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<attempt::Heartbeat>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "It is held",
                kind: JSON,
                body: Some(Schemas::of::<attempt::HeartbeatAnswer>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::LeaseLost],
            serve: || routing::post(attempt::heartbeat),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/complete",
            name: "complete_job",
            summary: "The job is done",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Complete>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::LeaseLost],
            serve: || routing::post(attempt::complete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/fail",
            name: "fail_job",
            summary: "The attempt has failed",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Fail>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::LeaseLost],
            serve: || routing::post(attempt::fail),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/release",
            name: "release_job",
            summary: "The job is given back, and no attempt is spent",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Release>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::LeaseLost],
            serve: || routing::post(attempt::release),
        },
    ]
}

const fn told() -> Answer {
    Answer {
        status: 200,
        summary: "It hears of it with what it asks next",
        kind: JSON,
        body: Some(Schemas::of::<commands::CommandAnswer>),
    }
}

const fn settled() -> Answer {
    Answer {
        status: 200,
        summary: "It is so, or was told before",
        kind: JSON,
        body: Some(Schemas::of::<attempt::SettledAnswer>),
    }
}
