//! The programs that run jobs and are alive.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::pages::worker::told;
use crate::parts::{empty, list, short, state, text, time};
use crate::visit::Visit;

/// `GET workers`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Workers", "Workers", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let found = visit.all("/v1/workers").await?;
    let (lost, alive): (Vec<&Value>, Vec<&Value>) =
        list(&found, "items").iter().partition(|worker| is_lost(worker));
    let (own, alive): (Vec<&Value>, Vec<&Value>) = alive.into_iter().partition(|worker| is_own(worker));
    Ok(html! {
        h1 { "Workers" }
        div #list data-live {
            @if alive.is_empty() {
                (empty("No workers online", "Jobs wait until a worker starts: your Rust program, or `tenure worker`."))
            } @else {
                (table(visit, "Workers online", &alive))
            }
            @if !own.is_empty() { h2 { "Internal workers of servers" } (table(visit, "Internal workers of servers", &own)) }
            @if !lost.is_empty() { section.card { (lost_table(visit, &lost)) } }
        }
    })
}

fn table(visit: &Visit, caption: &str, workers: &[&Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) { table.rows {
            caption.sr { (caption) }
            thead { tr {
                th scope="col" { "Worker" } th.number scope="col" { "Concurrency" } th scope="col" { "Queues" }
                th scope="col" { "Started" } th scope="col" { "Last heartbeat" }
            } }
            tbody { @for worker in workers {
                tr {
                    th scope="row" { (named(visit, worker)) @if let Some(told) = told(worker) { p { "Command: " (told) "." } } }
                    td.number { (worker["slots"]) }
                    td { @for queue in list(worker, "serves") { (serves(queue)) } }
                    td { (time(visit, text(worker, "started_at"))) }
                    td { (heard(visit, worker)) }
                }
            } }
        } }
    }
}

/// A worker does only a server's own work.
pub(super) fn is_own(worker: &Value) -> bool {
    let is_own = |kind: &Value| kind.as_str().is_some_and(|kind| kind.starts_with("tenure."));
    let serves_itself = |serves: &Value| {
        let kinds = list(serves, "kinds");
        !kinds.is_empty() && kinds.iter().all(is_own)
    };
    let serves = list(worker, "serves");
    !serves.is_empty() && serves.iter().all(serves_itself)
}

/// A worker stopped without saying so.
pub(super) fn is_lost(worker: &Value) -> bool {
    text(worker, "state") == "lost"
}

/// The last heartbeat, and a mark if more are overdue.
pub(super) fn heard(visit: &Visit, worker: &Value) -> Markup {
    html! {
        (time(visit, text(worker, "last_heartbeat_at")))
        @if text(worker, "state") == "not_responding" { " " (state("not_responding")) }
    }
}

/// The jobs that a lost worker had, by what they are called in lists.
pub(super) fn lost_jobs(visit: &Visit, worker: &Value) -> Markup {
    let jobs = list(worker, "lost_jobs");
    html! {
        @for (at, id) in jobs.iter().filter_map(Value::as_str).enumerate() {
            @if at > 0 { ", " }
            a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) }
        }
        @if jobs.is_empty() { "none" }
    }
}

fn named(visit: &Visit, worker: &Value) -> Markup {
    let id = text(worker, "worker_id");
    html! { a href=(visit.at(&format!("workers/{}", encoded(id)))) { (text(worker, "name")) } br; span.id.faint { (id) } }
}

fn lost_table(visit: &Visit, lost: &[&Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Lost workers" { table {
            caption { "Lost in the last 24 hours: stopped without saying so" }
            thead { tr {
                th scope="col" { "Worker" } th scope="col" { "Queues" } th scope="col" { "Last heartbeat" } th scope="col" { "Jobs lost" }
            } }
            tbody { @for worker in lost {
                tr {
                    th scope="row" { (named(visit, worker)) }
                    td { @for queue in list(worker, "serves") { (serves(queue)) } }
                    td { (time(visit, text(worker, "last_heartbeat_at"))) }
                    td { (lost_jobs(visit, worker)) }
                }
            } }
        } }
    }
}

fn serves(queue: &Value) -> Markup {
    let kinds: Vec<&str> = list(queue, "kinds").iter().filter_map(Value::as_str).collect();
    html! { p { (text(queue, "queue")) " " span.faint { "(concurrency " (queue["slots"]) ") " (kinds.join(", ")) } } }
}
