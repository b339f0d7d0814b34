//! A queue: why its jobs do not run, how things go in it, its bounds, and who serves it.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::throughput;
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::pages::workers::{heard, is_lost};
use crate::parts::{STATES, button, count, jobs_in, list, part, proof, span, text, time};
use crate::visit::Visit;

/// `GET queues/{name}`
pub(crate) async fn page(visit: Visit, Path(name): Path<String>) -> Response {
    let body = body(&visit, &name).await;
    layout::page(&visit, &format!("Queue {name}"), "Queues", body).await
}

async fn body(visit: &Visit, name: &str) -> Result<Markup, Trouble> {
    let path = format!("/v1/queues/{}", encoded(name));
    let queue = visit.get(&path).await?;
    // Whoever reaches some jobs of it only is told of those, and not how all went together.
    let stats = match visit.get(&format!("{path}/stats?window_seconds=3600&step_seconds=60")).await {
        Ok(stats) => stats,
        Err(_) => visit.get(&format!("{path}/stats")).await?,
    };
    let why = visit.get(&format!("{path}/explain")).await;
    let workers = visit.all("/v1/workers").await;
    let serves = |worker: &&Value| {
        !is_lost(worker)
            && list(worker, "serves")
                .iter()
                .any(|serves| matches!(text(serves, "queue"), "*") || text(serves, "queue") == name)
    };
    let (paused, acts) = (queue["paused"] == true, visit.may("manage").await);
    let to = |act: &str| format!("queues/{}/{act}", encoded(name));
    Ok(html! {
        div #queue data-live {
            div.head {
                h1 { (name) }
                @if paused { span.state.paused { "Ⅱ paused" } }
                @if acts { div.acts {
                    @if paused { (button(visit, &to("resume"), "Resume queue", "")) } @else { (button(visit, &to("pause"), "Pause queue", "")) }
                } }
            }
            (part(&why, |why| html! { @for reason in list(why, "items") { p.why { (text(reason, "detail")) } } }))
            dl.facts {
                div { dt { "Max running jobs" } dd { (queue["max_running"].as_u64().map_or_else(|| "no limit".to_owned(), count)) } }
                div { dt { "Rate limit" } dd { (rate(&queue["rate"])) } }
                div { dt { "Longest wait" } dd { (stats["oldest_due_seconds"].as_f64().map_or_else(|| "none waiting".to_owned(), span)) } }
                @if let Some(last) = latest(&stats) {
                    @let since = time(visit, text(last, "at"));
                    div { dt { "Wait p50 / p95, " (since) } dd { (within(last, "wait")) } }
                    div { dt { "Run time p50 / p95, " (since) } dd { (within(last, "run")) } }
                }
            }
            @if let Some(series) = stats["series"].as_array() { section.card { h2 { "Throughput" } (throughput::chart(visit, series)) } }
            section.card { (kinds(visit, name, &stats)) }
            section.card { (part(&workers, |workers| served(visit, &list(workers, "items").iter().filter(serves).collect::<Vec<_>>()))) }
        }
        @if acts { (forms(visit, name, &queue)) }
    })
}

/// The latest minute in which something ended.
fn latest(stats: &Value) -> Option<&Value> {
    list(stats, "series").iter().rev().find(|step| step["run_p50_seconds"].is_number())
}

fn within(step: &Value, what: &str) -> String {
    let of =
        |share: &str| step[format!("{what}_{share}_seconds")].as_f64().map_or_else(|| "–".to_owned(), span);
    format!("{} / {}", of("p50"), of("p95"))
}

fn rate(rate: &Value) -> String {
    match (rate["limit"].as_u64(), rate["per_seconds"].as_f64()) {
        (Some(limit), Some(per)) => {
            format!("{} {} per {}", count(limit), if limit == 1 { "job" } else { "jobs" }, span(per))
        }
        _ => "no limit".to_owned(),
    }
}

fn kinds(visit: &Visit, name: &str, stats: &Value) -> Markup {
    let lanes = list(stats, "lanes");
    html! {
        div.wide tabindex="0" role="region" aria-label="Kinds" { table {
            caption { "Jobs by kind" }
            thead { tr { th scope="col" { "Kind" } @for (state, _) in STATES { th.number scope="col" { (state) } } } }
            tbody {
                @for lane in lanes {
                    @let kind = text(lane, "kind");
                    tr {
                        th scope="row" { a href=(visit.at(&format!("kinds/{}", encoded(kind)))) { (kind) } }
                        @for (state, _) in STATES { (jobs_in(visit, state, &lane["jobs"], &format!("queue:{name} kind:{kind}"))) }
                    }
                }
                @if lanes.is_empty() { tr { td.faint colspan="8" { "No jobs in this queue." } } }
            }
        } }
    }
}

fn served(visit: &Visit, workers: &[&Value]) -> Markup {
    html! {
        table {
            caption { "Workers" }
            thead { tr { th scope="col" { "Worker" } th.number scope="col" { "Concurrency" } th scope="col" { "Last heartbeat" } } }
            tbody {
                @for worker in workers {
                    tr {
                        th scope="row" { a href=(visit.at(&format!("workers/{}", encoded(text(worker, "worker_id"))))) { (text(worker, "name")) } }
                        td.number { (worker["slots"]) }
                        td { (heard(visit, worker)) }
                    }
                }
                @if workers.is_empty() { tr { td.faint colspan="3" { "No workers online: jobs in this queue wait." } } }
            }
        }
    }
}

fn forms(visit: &Visit, name: &str, queue: &Value) -> Markup {
    let to = |act: &str| visit.at(&format!("queues/{}/{act}", encoded(name)));
    let number = |value: &Value| if value.is_number() { value.to_string() } else { String::new() };
    html! {
        div.columns {
            section.card {
                h2 { "Limits (all workers)" }
                form.stack method="post" action=(to("bounds")) {
                    (proof(visit))
                    label { "Max running jobs (empty: no limit)"
                        input name="max_running" type="number" min="1" value=(number(&queue["max_running"])); }
                    label { "Rate limit: jobs (empty: no limit)" input name="limit" type="number" min="1" value=(number(&queue["rate"]["limit"])); }
                    label { "Rate limit: interval in seconds" input name="per_seconds" type="number" min="0" step="any" value=(number(&queue["rate"]["per_seconds"])); }
                    button { "Save limits" }
                }
            }
            section.card {
                h2 { "Purge this queue" }
                p { "Permanently deletes all scheduled, queued and blocked jobs. Running and finished jobs stay." }
                form.stack method="post" action=(to("purge")) {
                    (proof(visit))
                    label { span { "To confirm, type " code { (name) } } input name="typed" required autocomplete="off"; }
                    button.danger { "Purge " (name) }
                }
            }
        }
    }
}
