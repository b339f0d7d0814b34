//! Schedules.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, PAGED, READ, REVEAL, Takes, empty, job};
use crate::access::Within;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::schedules::{act, backfill, calendar, look, preview, set};
use crate::wire::{
    BackfillAnswer, BackfillAsk, BackfillPreview, CalendarDocument, CalendarHoursDocument, NextRuns,
    PauseAsk, PreviewAnswer, PreviewAsk, Reasons, RunPage, ScheduleDocument, SchedulePage, SchedulePatch,
    ScheduleSpec, TriggerAsk,
};

/// Schedules, and what becomes of their slots.
pub(super) fn schedules() -> Vec<Endpoint> {
    [agreeing(), asking(), looking()].into_iter().flatten().collect()
}

fn agreeing() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::PUT,
            path: "/v1/schedules/{name}",
            name: "put_schedule",
            summary: "Create or replace a schedule",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<ScheduleSpec>), ..NOTHING },
            answers: vec![
                schedule(200, "The schedule replaced an existing one"),
                schedule(201, "The schedule was created"),
            ],
            refuses: &[ProblemType::StateConflict, ProblemType::PreconditionFailed],
            serve: || routing::put(set::put),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/schedules/{name}",
            name: "patch_schedule",
            summary: "Update a schedule; omitted fields keep their values",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<SchedulePatch>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "The updated schedule")],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict, ProblemType::PreconditionFailed],
            serve: || routing::patch(set::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/schedules/{name}",
            name: "delete_schedule",
            summary: "Delete a schedule; its jobs and run history stay",
            needs: MANAGE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "The schedule was deleted")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed, ProblemType::Validation],
            serve: || routing::delete(set::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/preview",
            name: "preview_schedule",
            summary: "Preview a schedule: description, next runs and warnings",
            needs: READ,
            within: Within::Any,
            takes: Takes { body: Some(Schemas::of::<PreviewAsk>), ..NOTHING },
            answers: vec![answer(
                200,
                "The description, next runs and warnings",
                Schemas::of::<PreviewAnswer>,
            )],
            refuses: &[],
            serve: || routing::post(preview::post),
        },
    ]
}

fn asking() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/pause",
            name: "pause_schedule",
            summary: "Pause a schedule; waiting and running jobs continue",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<PauseAsk>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "The paused schedule")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(act::pause),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/resume",
            name: "resume_schedule",
            summary: "Resume a schedule; runs missed while paused are skipped",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "The resumed schedule")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(act::resume),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/trigger",
            name: "trigger_schedule",
            summary: "Run a schedule now, even if it is paused",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<TriggerAsk>), needs_body: false, ..NOTHING },
            answers: vec![job(202, "The job of this run")],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict, ProblemType::IdTaken],
            serve: || routing::post(act::trigger),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/backfill",
            name: "backfill_schedule",
            summary: "Enqueue jobs for past runs; up to 10,000 per request",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<BackfillAsk>), ..NOTHING },
            answers: vec![
                answer(200, "Dry run: the runs that would get jobs", Schemas::of::<BackfillPreview>),
                answer(202, "The number of jobs enqueued", Schemas::of::<BackfillAnswer>),
            ],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(backfill::post),
        },
    ]
}

fn looking() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules",
            name: "list_schedules",
            summary: "List schedules by name",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("prefix", "Only names with this prefix"),
                    (
                        "order",
                        "Sort order: `name` (default), or `next` for active schedules by next run, on one page",
                    ),
                    PAGED[0],
                    PAGED[1],
                    REVEAL,
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page of schedules", Schemas::of::<SchedulePage>)],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(look::list),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules",
            name: "create_schedule",
            summary: "Create a schedule under a new name",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<ScheduleSpec>), ..NOTHING },
            answers: vec![schedule(201, "The schedule was created")],
            refuses: &[ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::post(set::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}",
            name: "get_schedule",
            summary: "Show a schedule",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &[REVEAL], ..NOTHING },
            answers: vec![schedule(200, "The schedule"), empty(304, "Not modified")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}/next",
            name: "list_next_slots",
            summary: "List a schedule's next runs",
            needs: READ,
            within: Within::Jobs,
            takes: Takes {
                query: &[
                    ("count", "Maximum number of runs: 1 to 1000; default 10"),
                    ("from", "Only runs after this time; default: now"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "The next runs", Schemas::of::<NextRuns>)],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::next),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}/explain",
            name: "explain_schedule",
            summary: "Explain why a schedule does not run",
            needs: READ,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![answer(200, "The reasons", Schemas::of::<Reasons>)],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::explain),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}/runs",
            name: "list_runs",
            summary: "List a schedule's run history, latest first",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![answer(200, "A page of runs", Schemas::of::<RunPage>)],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::runs),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/calendar",
            name: "get_calendar",
            summary: "List past and coming runs of all schedules; in a time range",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("from", "Start of the range, inclusive"),
                    ("to", "End of the range, exclusive"),
                    ("prefix", "Only schedules with this name prefix"),
                    ("after_schedule", "`next_schedule` of the previous page"),
                    ("after_run", "`next_run` of the previous page"),
                    ("limit", "Maximum number of records: 1 to 1000; default 1000"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page of runs", Schemas::of::<CalendarDocument>)],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(calendar::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/calendar/hours",
            name: "get_calendar_hours",
            summary: "Count past and coming runs of all schedules per hour; over at most six weeks",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("from", "Start of the range, inclusive; also the start of the first hour"),
                    ("to", "End of the range, exclusive"),
                    ("prefix", "Only schedules with this name prefix"),
                    ("after_schedule", "`next_schedule` of the previous page"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page of counts", Schemas::of::<CalendarHoursDocument>)],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(calendar::hours),
        },
    ]
}

const fn answer(status: u16, summary: &'static str, body: fn(&mut Schemas) -> serde_json::Value) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(body) }
}

const fn schedule(status: u16, summary: &'static str) -> Answer {
    answer(status, summary, Schemas::of::<ScheduleDocument>)
}
