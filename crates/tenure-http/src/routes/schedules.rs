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
            summary: "Sets a schedule: a new one, or in place of the one of that name",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<ScheduleSpec>), ..NOTHING },
            answers: vec![schedule(200, "It is so"), schedule(201, "It was not there before")],
            refuses: &[ProblemType::StateConflict, ProblemType::PreconditionFailed],
            serve: || routing::put(set::put),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/schedules/{name}",
            name: "patch_schedule",
            summary: "Changes a schedule; what is not said stays",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<SchedulePatch>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "It is so")],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict, ProblemType::PreconditionFailed],
            serve: || routing::patch(set::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/schedules/{name}",
            name: "delete_schedule",
            summary: "Removes a schedule; its jobs and what became of its slots stay",
            needs: MANAGE,
            within: Within::Jobs,
            takes: NOTHING,
            answers: vec![empty(204, "It is gone")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed, ProblemType::Validation],
            serve: || routing::delete(set::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/preview",
            name: "preview_schedule",
            summary: "What a schedule would come to: in words, in slots, and what may not be meant",
            needs: READ,
            within: Within::Any,
            takes: Takes { body: Some(Schemas::of::<PreviewAsk>), ..NOTHING },
            answers: vec![answer(200, "That", Schemas::of::<PreviewAnswer>)],
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
            summary: "Fires no more until further notice; what waits or runs goes on",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<PauseAsk>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "It is paused, or was")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(act::pause),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/resume",
            name: "resume_schedule",
            summary: "Goes on with the next slot; those of the meantime are skipped",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![schedule(200, "It is not paused")],
            refuses: &[ProblemType::NotFound, ProblemType::PreconditionFailed],
            serve: || routing::post(act::resume),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/trigger",
            name: "trigger_schedule",
            summary: "Enqueues a job of a schedule now, even while it is paused",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<TriggerAsk>), needs_body: false, ..NOTHING },
            answers: vec![job(202, "The job")],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict, ProblemType::IdTaken],
            serve: || routing::post(act::trigger),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules/{name}/backfill",
            name: "backfill_schedule",
            summary: "Enqueues jobs for slots that have passed, up to ten thousand in a request",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<BackfillAsk>), ..NOTHING },
            answers: vec![
                answer(200, "Which slots there are: nothing was done", Schemas::of::<BackfillPreview>),
                answer(202, "So many jobs were enqueued", Schemas::of::<BackfillAnswer>),
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
            summary: "Lists schedules by name, page by page",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("prefix", "Whose names begin so"),
                    (
                        "order",
                        "By name unless this says `next`: those that fire, the first to fire first, on one page",
                    ),
                    PAGED[0],
                    PAGED[1],
                    REVEAL,
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page", Schemas::of::<SchedulePage>)],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(look::list),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/schedules",
            name: "create_schedule",
            summary: "Sets a schedule under a name that no other has",
            needs: MANAGE,
            within: Within::Jobs,
            takes: Takes { body: Some(Schemas::of::<ScheduleSpec>), ..NOTHING },
            answers: vec![schedule(201, "It is new")],
            refuses: &[ProblemType::Validation, ProblemType::StateConflict],
            serve: || routing::post(set::post),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}",
            name: "get_schedule",
            summary: "Shows a schedule",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &[REVEAL], ..NOTHING },
            answers: vec![schedule(200, "The schedule"), empty(304, "As the client knows it")],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}/next",
            name: "list_next_slots",
            summary: "The next slots of a schedule",
            needs: READ,
            within: Within::Jobs,
            takes: Takes {
                query: &[
                    ("count", "How many at most: 1 to 1000, usually 10"),
                    ("from", "After this instant; as the schedule stands if it is not said"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "The slots", Schemas::of::<NextRuns>)],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::next),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/schedules/{name}/explain",
            name: "explain_schedule",
            summary: "Why a schedule does not fire, or why nothing comes of it",
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
            summary: "What became of the slots of a schedule, the latest first, page by page",
            needs: READ,
            within: Within::Jobs,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![answer(200, "A page", Schemas::of::<RunPage>)],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::runs),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/calendar",
            name: "get_calendar",
            summary: "What became of the slots of all schedules between two instants, and which will come",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("from", "From this instant on"),
                    ("to", "Until before this one"),
                    ("prefix", "Of schedules whose names begin so"),
                    ("after_schedule", "`next_schedule` of the page before"),
                    ("after_run", "`next_run` of the page before"),
                    ("limit", "How many records at most: 1 to 1000, usually 1000"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page", Schemas::of::<CalendarDocument>)],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(calendar::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/calendar/hours",
            name: "get_calendar_hours",
            summary: "How often all schedules fire in each hour between two instants, six weeks at most, and did",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("from", "From this instant on, with which the first hour begins"),
                    ("to", "Until before this one"),
                    ("prefix", "Of schedules whose names begin so"),
                    ("after_schedule", "`next_schedule` of the page before"),
                ],
                ..NOTHING
            },
            answers: vec![answer(200, "A page", Schemas::of::<CalendarHoursDocument>)],
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
