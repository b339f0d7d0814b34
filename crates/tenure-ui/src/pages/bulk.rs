//! What is done with many jobs at once: each operation is a job, which shows how far it has come.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::ids;
use crate::layout;
use crate::pages::bulk_new::or_more;
use crate::parts::{button, count, empty, list, short, state, text, time, whole_id};
use crate::said::sentence;
use crate::visit::Visit;

/// The kind of the jobs that do it.
const KIND: &str = "tenure.bulk";
/// What is told of an operation that has ended.
const TALLY: [(&str, &str); 4] =
    [("done", "Done"), ("asked", "Asked to stop"), ("already", "Already done"), ("refused", "Skipped")];

/// `GET bulk`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Bulk operations", "Bulk", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let cursor = visit.said("cursor");
    let behind = if cursor.is_empty() { String::new() } else { format!("&cursor={}", encoded(&cursor)) };
    let found = visit.get(&format!("/v1/jobs?kind={KIND}&limit=50{behind}")).await?;
    let jobs = list(&found, "items");
    Ok(html! {
        h1 { "Bulk operations" }
        div #list data-live=[cursor.is_empty().then_some("")] {
            @if jobs.is_empty() {
                (empty("No bulk operations yet", "Search for jobs or select some, then choose an action for all of them."))
                p.empty { a.button href=(visit.at("jobs")) { "Go to jobs" } }
            } @else { (table(visit, jobs)) }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href={ (visit.at("bulk?cursor=")) (encoded(next)) } { "Older operations →" } }
        }
    })
}

fn table(visit: &Visit, jobs: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Bulk operations" {
            table.rows {
                caption.sr { "Bulk operations, latest first" }
                thead { tr {
                    th scope="col" { "State" } th scope="col" { "Operation" } th scope="col" { "Action" }
                    th.number scope="col" { "Matched" } th.number scope="col" { "Done" } th scope="col" { "Created" }
                } }
                tbody { @for job in jobs {
                    @let id = text(job, "id");
                    tr {
                        td { (state(text(job, "state"))) }
                        td { a.id href=(visit.at(&format!("bulk/{id}"))) title=(id) { (short(id)) } }
                        td { (act(&job["args"])) }
                        td.number { (meant(&job["args"])) }
                        td.number { (job["result"]["done"].as_u64().map_or_else(|| "–".to_owned(), count)) }
                        td { (time(visit, text(job, "created_at"))) }
                    }
                } }
            }
        }
    }
}

/// `GET bulk/{id}`
pub(crate) async fn one(visit: Visit, Path(id): Path<String>) -> Response {
    let id = ids::whole(&visit, id).await;
    let body = operation(&visit, &id).await;
    layout::page(&visit, "Bulk operation", "Bulk", body).await
}

async fn operation(visit: &Visit, id: &str) -> Result<Markup, Trouble> {
    let job = visit.get(&format!("/v1/jobs/{}", encoded(id))).await?;
    let standing = text(&job, "state");
    let ended = matches!(standing, "succeeded" | "failed" | "cancelled");
    let why = visit.get(&format!("/v1/jobs/{}/explain", encoded(id))).await.unwrap_or_default();
    Ok(html! {
        div #operation data-live {
            div.head {
                div { h1 { (act(&job["args"])) } (whole_id("bulk-id", id)) }
                (state(standing))
                @if !ended && visit.may("manage").await {
                    div.acts { (button(visit, &format!("bulk/{}/cancel", encoded(id)), "Cancel operation", "danger")) }
                }
            }
            @if !ended { p.why { (sentence(visit, &visit.likes.zone, text(&why, "detail"))) } }
            @if let Some(fraction) = job["progress"]["fraction"].as_f64().filter(|_| standing == "running") {
                // Of nobody knows how many it cannot be said which part is done.
                @if job["args"]["is_cut"] == true { p { (text(&job["progress"], "message")) } }
                @else { p { progress max="1" value=(fraction) aria-label="Progress" {}
                    " " (format!("{:.0} %", fraction * 100.0)) " " (text(&job["progress"], "message")) } }
            }
            @if job["error"].is_object() { section.card { h2 { "Error" } pre.error tabindex="0" { code { (text(&job["error"], "detail")) } } } }
            dl.facts {
                div { dt { "Matched when created" } dd { (meant(&job["args"])) } }
                @for (key, label) in TALLY {
                    @if let Some(number) = job["result"][key].as_u64() { div { dt { (label) } dd { (count(number)) } } }
                }
                div { dt { "Created" } dd { (time(visit, text(&job, "created_at"))) } }
                @if job["finished_at"].is_string() { div { dt { "Finished" } dd { (time(visit, text(&job, "finished_at"))) } } }
            }
        }
        p { a href=(visit.at(&format!("jobs/{}", encoded(id)))) { "View the job that runs this operation" } }
    })
}

/// How many were meant when it was asked for.
fn meant(args: &Value) -> String {
    or_more(args["meant"].as_u64().unwrap_or_default(), args["is_cut"] == true)
}

/// What is done, in a word.
fn act(args: &Value) -> String {
    let act = &args["act"];
    let named = act.as_object().and_then(|act| act.iter().next());
    match (act.as_str(), named) {
        (Some(word), _) => said(word, &Value::Null),
        (None, Some((word, more))) => said(word, more),
        (None, None) => "Unknown action".to_owned(),
    }
}

fn said(word: &str, more: &Value) -> String {
    match word {
        "cancel" => "Cancel".to_owned(),
        "retry" => "Retry".to_owned(),
        "delete" => "Delete".to_owned(),
        "run_now" => "Run now".to_owned(),
        "move" => format!("Move to queue {}", text(more, "queue")),
        "reprioritise" => format!("Set priority {}", more["priority"]),
        other => other.to_owned(),
    }
}
