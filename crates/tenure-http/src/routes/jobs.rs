//! Jobs, for those who want them done.

use axum::http::Method;
use axum::routing;

use super::{Answer, END, ENQUEUE, Endpoint, FOLLOW, JSON, MANAGE, NOTHING, READ, Takes, empty, job};
use crate::events;
use crate::jobs::{act, batch, enqueue, explain, list, look, patch};
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::wire::{AttemptDocument, JobPage, LogPage, Submit};

/// Jobs, for those who want them done.
pub(super) fn jobs() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs",
            name: "enqueue_job",
            summary: "Enqueues a job",
            needs: ENQUEUE,
            takes: Takes { body: Some(Schemas::of::<Submit>), once: true, waits: true, ..NOTHING },
            answers: vec![
                job(200, "It has ended within the wait, or another job holds its unique key"),
                job(202, "It was accepted"),
            ],
            refuses: &[ProblemType::UniqueConflict, ProblemType::KeyReused, ProblemType::PayloadTooLarge],
            serve: || routing::post(enqueue::post),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/batch",
            name: "enqueue_jobs",
            summary: "Enqueues up to a thousand jobs, all or none; also a job a line as application/x-ndjson",
            needs: ENQUEUE,
            takes: Takes { body: Some(Schemas::of::<batch::Batch>), once: true, ..NOTHING },
            answers: vec![Answer {
                status: 202,
                summary: "All were accepted",
                kind: JSON,
                body: Some(Schemas::of::<batch::BatchAnswer>),
            }],
            refuses: &[ProblemType::UniqueConflict, ProblemType::KeyReused, ProblemType::PayloadTooLarge],
            serve: || routing::post(batch::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs",
            name: "list_jobs",
            summary: "Lists jobs, page by page",
            needs: READ,
            takes: Takes {
                query: &[
                    ("q", "A search, such as `state:failed kind:mail args.user.id:42 -tag:test`"),
                    ("state", "In one of these states"),
                    ("queue", "In one of these queues"),
                    ("kind", "Of one of these kinds"),
                    ("tag", "With all of these tags"),
                    ("created_from", "Accepted then or later"),
                    ("created_before", "Accepted before that"),
                    ("ended_from", "Ended then or later"),
                    ("ended_before", "Ended before that"),
                    (
                        "order",
                        "By acceptance: `newest` or `oldest` first; or only those that have ended: `last_ended` or `first_ended` first",
                    ),
                    ("cursor", "`next_cursor` of the page before"),
                    ("limit", "How many at most: 1 to 1000, usually 50"),
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
                kind: JSON,
                body: Some(Schemas::of::<JobPage>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(list::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/jobs/{id}",
            name: "put_job",
            summary: "Enqueues a job under an id of the client's; repeating it is harmless",
            needs: ENQUEUE,
            takes: Takes { body: Some(Schemas::of::<Submit>), waits: true, ..NOTHING },
            answers: vec![job(200, "It was there already"), job(201, "It was accepted")],
            refuses: &[ProblemType::IdTaken, ProblemType::UniqueConflict, ProblemType::PayloadTooLarge],
            serve: || routing::put(enqueue::put),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}",
            name: "get_job",
            summary: "Shows a job; never leads elsewhere",
            needs: FOLLOW,
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![job(200, "The job"), empty(304, "As the client knows it")],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/jobs/{id}",
            name: "patch_job",
            summary: "Changes where a job waits, its place in line, and when it is due; by its etag in if-match",
            needs: MANAGE,
            takes: Takes {
                body: Some(Schemas::of::<patch::JobPatch>),
                needs_body: false,
                matches: true,
                ..NOTHING
            },
            answers: vec![job(200, "It is so")],
            refuses: &[
                ProblemType::NotFound,
                ProblemType::Gone,
                ProblemType::StateConflict,
                ProblemType::PreconditionFailed,
                ProblemType::PreconditionRequired,
            ],
            serve: || routing::patch(patch::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/jobs/{id}",
            name: "delete_job",
            summary: "Cancels a job that has not ended, and removes one that has",
            needs: END,
            takes: NOTHING,
            answers: vec![
                job(200, "It was cancelled"),
                job(202, "It runs, and was asked to stop"),
                empty(204, "It is gone"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::PreconditionFailed],
            serve: || routing::delete(act::delete),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/result",
            name: "get_job_result",
            summary: "What a job has returned",
            needs: FOLLOW,
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![
                Answer { status: 200, summary: "What it returned", kind: JSON, body: Some(Schemas::any) },
                empty(202, "It has not ended"),
                empty(204, "It has returned nothing"),
            ],
            refuses: &[
                ProblemType::NotFound,
                ProblemType::Gone,
                ProblemType::JobFailed,
                ProblemType::JobCancelled,
            ],
            serve: || routing::get(look::result),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/attempts",
            name: "list_attempts",
            summary: "The attempts of a job, the first first",
            needs: FOLLOW,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The attempts",
                kind: JSON,
                body: Some(Schemas::items_of::<AttemptDocument>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(look::attempts),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/logs",
            name: "list_log_lines",
            summary: "What the attempts of a job have logged, page by page",
            needs: FOLLOW,
            takes: Takes {
                query: &[
                    ("after", "`next_after` of the page before"),
                    ("limit", "How many at most: 1 to 1000, usually 100"),
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
                kind: JSON,
                body: Some(Schemas::of::<LogPage>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(look::logs),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/explain",
            name: "explain_job",
            summary: "The one reason why a job is where it is",
            needs: FOLLOW,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The reason",
                kind: JSON,
                body: Some(Schemas::of::<explain::Explanation>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(explain::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/jobs/{id}/events",
            name: "follow_job",
            summary: "What happens to a job, as it happens",
            needs: FOLLOW,
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "Events `job` and at last `end`, each with the job",
                    kind: "text/event-stream",
                    body: Some(Schemas::any),
                },
                empty(204, "The client has seen the end"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::get(events::get),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/cancel",
            name: "cancel_job",
            summary: "Ends a job: at once if it waits; if it runs, its holder is asked to stop",
            needs: END,
            takes: Takes { body: Some(Schemas::of::<act::CancelAsk>), needs_body: false, ..NOTHING },
            answers: vec![job(200, "It is cancelled"), job(202, "It runs, and was asked to stop")],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::StateConflict],
            serve: || routing::post(act::cancel),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/retry",
            name: "retry_job",
            summary: "Does a job that has ended again, with all its attempts",
            needs: MANAGE,
            takes: Takes { body: Some(Schemas::of::<act::Nothing>), needs_body: false, ..NOTHING },
            answers: vec![job(202, "It waits again")],
            refuses: &[
                ProblemType::NotFound,
                ProblemType::Gone,
                ProblemType::StateConflict,
                ProblemType::UniqueConflict,
            ],
            serve: || routing::post(act::retry),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/jobs/{id}/run-now",
            name: "run_job_now",
            summary: "Lets a job that waits for its time be due at once",
            needs: MANAGE,
            takes: Takes { body: Some(Schemas::of::<act::Nothing>), needs_body: false, ..NOTHING },
            answers: vec![job(202, "It is due")],
            refuses: &[ProblemType::NotFound, ProblemType::Gone, ProblemType::StateConflict],
            serve: || routing::post(act::run_now),
        },
    ]
}
