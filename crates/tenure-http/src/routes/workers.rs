//! What workers in other languages ask and tell.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, LEAVE, MANAGE, NOTHING, READ, Takes, WORK, empty};
use crate::access::Within;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::paging::LISTED;
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
            summary: "Claim due jobs; with `Prefer: wait=N`, the server waits for them",
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
                summary: "The granted jobs, each with its token",
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
            summary: "Settle up to 1,000 jobs and claim the next ones",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<settle::Settle>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The result of each item, and the granted jobs",
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
            summary: "List workers online or lost in the last 24 hours",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &LISTED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of workers",
                kind: JSON,
                body: Some(Schemas::of::<roll::WorkerList>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(roll::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/workers/{id}",
            name: "get_worker",
            summary: "Show a worker",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The worker",
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
            summary: "Remove a worker; its jobs are released at once",
            needs: LEAVE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "The worker was removed")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::delete(roll::leave),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/workers/{id}/quiet",
            name: "quiet_worker",
            summary: "Quiet a worker; it claims no more jobs and finishes those it has",
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
            summary: "Resume a quiet worker",
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
            summary: "Terminate a worker; it stops and releases the jobs it cannot finish soon",
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
            summary: "Renew all jobs of a worker; reports cancelled and lost jobs",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<beat::Beat>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The result of each job",
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
            summary: "Append log lines to a job",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<logs::Lines>), ..NOTHING },
            answers: vec![empty(204, "The lines were stored, within the limits")],
            refuses: &[ProblemType::NotFound, ProblemType::LeaseLost],
            serve: || routing::post(logs::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/heartbeat",
            name: "extend_job",
            summary: "Renew a job's lease; reports progress, and returns whether to cancel",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<attempt::Heartbeat>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The renewed lease",
                kind: JSON,
                body: Some(Schemas::of::<attempt::HeartbeatAnswer>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::LeaseLost],
            serve: || routing::post(attempt::heartbeat),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/complete",
            name: "complete_job",
            summary: "Complete a job",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Complete>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::LeaseLost],
            serve: || routing::post(attempt::complete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/fail",
            name: "fail_job",
            summary: "Fail an attempt",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Fail>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::LeaseLost],
            serve: || routing::post(attempt::fail),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/release",
            name: "release_job",
            summary: "Release a job without spending an attempt",
            needs: WORK,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Release>), ..NOTHING },
            answers: vec![settled()],
            refuses: &[ProblemType::NotFound, ProblemType::LeaseLost],
            serve: || routing::post(attempt::release),
        },
    ]
}

const fn told() -> Answer {
    Answer {
        status: 200,
        summary: "The worker receives the command with its next request",
        kind: JSON,
        body: Some(Schemas::of::<commands::CommandAnswer>),
    }
}

const fn settled() -> Answer {
    Answer {
        status: 200,
        summary: "The outcome was recorded, now or by an earlier request",
        kind: JSON,
        body: Some(Schemas::of::<attempt::SettledAnswer>),
    }
}
