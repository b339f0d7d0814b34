//! Apps: programs of folders that hosts offer to run.

use axum::http::Method;
use axum::routing;

use super::{Answer, END, Endpoint, JSON, MANAGE, NOTHING, READ, REVEAL, Takes, empty, job};
use crate::access::Within;
use crate::apps::look::{Continuous, Triggered};
use crate::apps::wire::{AppDocument, AppLinesList, AppList, RunAsk, StopAsk};
use crate::apps::{act, look};
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::problem::ProblemType;

const SET: (&str, &str) = ("set", "Set of programs; default `apps`");
const LINES: [(&str, &str); 4] = [
    SET,
    ("behind", "Return only entries with a greater number; default: the latest"),
    ("limit", "Maximum number of entries: 1 to 500"),
    REVEAL,
];

const fn app(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<AppDocument>) }
}

/// Apps: programs of folders that hosts offer to run.
pub(super) fn apps() -> Vec<Endpoint> {
    [looking(), acting()].into_iter().flatten().collect()
}

fn looking() -> Vec<Endpoint> {
    let get = |path, name, summary, answer, serve| Endpoint {
        method: Method::GET,
        path,
        name,
        summary,
        needs: READ,
        within: Within::Whole,
        takes: Takes { query: &[SET], ..NOTHING },
        answers: vec![answer, empty(304, "Not modified")],
        refuses: &[ProblemType::NotFound, ProblemType::Validation],
        serve,
    };
    let list = Answer {
        status: 200,
        summary: "The list of programs",
        kind: JSON,
        body: Some(Schemas::of::<AppList>),
    };
    let lines = Answer {
        status: 200,
        summary: "Lines of output, oldest first",
        kind: JSON,
        body: Some(Schemas::of::<AppLinesList>),
    };
    vec![
        Endpoint {
            refuses: &[ProblemType::Validation],
            ..get("/v1/apps", "list_apps", "List programs with their state on each host", list, || {
                routing::get(look::list)
            })
        },
        get(
            "/v1/apps/triggered/{name}",
            "get_triggered_app",
            "Show a triggered program",
            app(200, "The program"),
            || routing::get(look::shown::<Triggered>),
        ),
        get(
            "/v1/apps/continuous/{name}",
            "get_continuous_app",
            "Show a continuous program",
            app(200, "The program"),
            || routing::get(look::shown::<Continuous>),
        ),
        Endpoint {
            takes: Takes { query: &LINES, ..NOTHING },
            answers: vec![lines],
            ..get(
                "/v1/apps/continuous/{name}/lines",
                "list_app_lines",
                "Show the output of a continuous program",
                app(200, "The program"),
                || routing::get(look::lines),
            )
        },
    ]
}

fn acting() -> Vec<Endpoint> {
    let post = |path, name, summary, body, serve| Endpoint {
        method: Method::POST,
        path,
        name,
        summary,
        needs: MANAGE,
        within: Within::Whole,
        takes: Takes { query: &[SET], body: Some(body), needs_body: false, ..NOTHING },
        answers: vec![app(200, "The program after the change")],
        refuses: &[ProblemType::NotFound],
        serve,
    };
    vec![
        Endpoint {
            needs: END,
            answers: vec![job(202, "The job of this run")],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict, ProblemType::IdTaken],
            ..post(
                "/v1/apps/triggered/{name}/run",
                "run_app",
                "Run a triggered program now, unless it is running",
                Schemas::of::<RunAsk>,
                || routing::post(act::run),
            )
        },
        post(
            "/v1/apps/triggered/{name}/stop",
            "stop_triggered_app",
            "Stop a triggered program; running jobs continue, waiting jobs stay",
            Schemas::of::<StopAsk>,
            || routing::post(act::stop::<Triggered>),
        ),
        post(
            "/v1/apps/triggered/{name}/start",
            "start_triggered_app",
            "Allow a stopped triggered program to run again",
            Schemas::of::<Nothing>,
            || routing::post(act::start::<Triggered>),
        ),
        post(
            "/v1/apps/continuous/{name}/stop",
            "stop_continuous_app",
            "Stop a continuous program on all hosts",
            Schemas::of::<StopAsk>,
            || routing::post(act::stop::<Continuous>),
        ),
        post(
            "/v1/apps/continuous/{name}/start",
            "start_continuous_app",
            "Start a stopped continuous program",
            Schemas::of::<Nothing>,
            || routing::post(act::start::<Continuous>),
        ),
    ]
}
