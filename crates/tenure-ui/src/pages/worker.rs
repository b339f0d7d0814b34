//! A worker: what it serves, and what it has at the moment.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::HostId;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::pages::workers::{heard, is_lost, lost_jobs};
use crate::parts::{self, button, list, proof, short, state, text, time, whole_id};
use crate::visit::Visit;

/// `GET workers/{id}`
pub(crate) async fn page(visit: Visit, Path(id): Path<String>) -> Response {
    let body = body(&visit, &id).await;
    layout::page(&visit, &format!("Worker {id}"), "Workers", body).await
}

/// What it can be told. It hears of it with its next claim or renewal.
fn acts(visit: &Visit, id: &str, command: &str) -> Markup {
    let to = |act: &str| format!("workers/{}/{act}", encoded(id));
    html! {
        div.acts {
            @if command.is_empty() { (button(visit, &to("quiet"), "Take no new jobs", "")) }
            @else { (button(visit, &to("resume"), "Take jobs again", "")) }
            details.ask { summary { "Stop…" } form.stack method="post" action=(visit.at(&to("terminate"))) {
                (proof(visit))
                p { "The worker takes no new jobs, gives its running jobs time to finish, and exits. You cannot start it again from here." }
                button.danger data-does="terminate" { "Stop worker" }
            } }
        }
    }
}

async fn body(visit: &Visit, id: &str) -> Result<Markup, Trouble> {
    if id.parse::<HostId>().is_err() {
        let detail = "The address has no valid worker ID.";
        return Err(Trouble::new(StatusCode::NOT_FOUND, "Worker not found", detail));
    }
    let workers = visit.all("/v1/workers").await?;
    let known = list(&workers, "items").iter().find(|worker| text(worker, "worker_id") == id);
    let worker = known.filter(|worker| !is_lost(worker));
    let search = format!("worker:{id} state:running");
    let running = visit.get(&format!("/v1/jobs?limit=100&q={}", encoded(&search))).await?;
    let running = list(&running, "items");
    Ok(html! {
        div #worker data-live {
            div.head {
                div { h1 { (known.map_or("Offline worker", |worker| text(worker, "name"))) } (whole_id("worker-id", id)) }
                @if worker.is_some_and(|worker| worker["heeds"] == true) && visit.may("manage").await { (acts(visit, id, worker.map_or("", |worker| text(worker, "command")))) }
            }
            @if let Some(worker) = worker {
                dl.facts {
                    div { dt { "Concurrency" } dd { (running.len()) " of " (worker["slots"]) " in use" } }
                    div { dt { "Started" } dd { (time(visit, text(worker, "started_at"))) } }
                    div { dt { "Last heartbeat" } dd { (heard(visit, worker)) } }
                    @if worker["heeds"] == false { div { dt { "Stops" } dd { "with its server" } } }
                    @if let Some(told) = told(worker) { div { dt { "Command" } dd { (told) } } }
                }
                section.card {
                    div.wide tabindex="0" role="region" aria-label="Queues" { table {
                        caption { "Queues" }
                        thead { tr { th scope="col" { "Queue" } th.number scope="col" { "Concurrency" } th scope="col" { "Kinds" } } }
                        tbody { @for serves in list(worker, "serves") { tr {
                            @let queue = text(serves, "queue");
                            th scope="row" { a href=(visit.at(&format!("queues/{}", encoded(queue)))) { (queue) } }
                            td.number { (serves["slots"]) }
                            @let kinds: Vec<&str> = list(serves, "kinds").iter().filter_map(Value::as_str).collect();
                            td { @if kinds.is_empty() { "any" } @else { (kinds.join(", ")) } }
                        } } }
                    } }
                }
            } @else if let Some(lost) = known {
                p.why { "Lost: the worker stopped without saying so. Its jobs are due again when their leases expire." }
                dl.facts {
                    div { dt { "Last heartbeat" } dd { (time(visit, text(lost, "last_heartbeat_at"))) } }
                    div { dt { "Started" } dd { (time(visit, text(lost, "started_at"))) } }
                    div { dt { "Jobs lost" } dd { (lost_jobs(visit, lost)) } }
                }
            } @else { p.why { "No recent heartbeat. Its jobs are due again when their leases expire." } }
            section.card { div.wide tabindex="0" role="region" aria-label="Running jobs" { (jobs(visit, running)) } }
        }
    })
}

/// What a worker is told to do, if it may not go on.
pub(super) fn told(worker: &Value) -> Option<&'static str> {
    match text(worker, "command") {
        "quiet" => Some("take no new jobs"),
        "terminate" => Some("finish running jobs and exit"),
        _ => None,
    }
}

fn jobs(visit: &Visit, running: &[Value]) -> Markup {
    html! {
        table {
            caption { "Running jobs" }
            thead { tr { th scope="col" { "Job" } th scope="col" { "Kind" } th scope="col" { "State" } th scope="col" { "Started" } th scope="col" { "Message" } } }
            tbody {
                @for job in running {
                    @let id = text(job, "id");
                    tr {
                        td { a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } }
                        td { (text(job, "kind")) }
                        td { (state(parts::standing(job))) }
                        td { (time(visit, text(job, "started_at"))) }
                        td.says {
                            @if let Some(fraction) = job["progress"]["fraction"].as_f64() { (format!("{:.0} % ", fraction * 100.0)) }
                            (text(&job["progress"], "message"))
                        }
                    }
                }
                @if running.is_empty() { tr { td.faint colspan="5" { "No running jobs." } } }
            }
        }
    }
}
