//! The programs that run jobs and are alive.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::pages::worker::told;
use crate::parts::{empty, list, text, time};
use crate::visit::Visit;

/// `GET workers`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Workers", "Workers", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let found = visit.get("/v1/workers").await?;
    let workers = list(&found, "items");
    Ok(html! {
        h1 { "Workers" }
        div #list data-live {
            @if workers.is_empty() {
                (empty("No workers online", "Jobs wait until a worker starts: your Rust program, or `tenure worker`."))
            } @else {
                div.wide tabindex="0" role="region" aria-label="Workers" { table.rows {
                    caption.sr { "Workers online" }
                    thead { tr {
                        th scope="col" { "Worker" } th.number scope="col" { "Concurrency" } th scope="col" { "Queues" }
                        th scope="col" { "Started" } th scope="col" { "Heartbeat expires" }
                    } }
                    tbody { @for worker in workers {
                        tr {
                            th scope="row" { a href=(visit.at(&format!("workers/{}", encoded(text(worker, "worker_id"))))) { (text(worker, "name")) } br; span.id.faint { (text(worker, "worker_id")) }
                                @if let Some(told) = told(worker) { p { "Command: " (told) "." } } }
                            td.number { (worker["slots"]) }
                            td { @for queue in list(worker, "serves") { (serves(queue)) } }
                            td { (time(visit, text(worker, "started_at"))) }
                            td { (time(visit, text(worker, "alive_until"))) }
                        }
                    } }
                } }
            }
        }
    })
}

fn serves(queue: &Value) -> Markup {
    let kinds: Vec<&str> = list(queue, "kinds").iter().filter_map(Value::as_str).collect();
    html! { p { (text(queue, "queue")) " " span.faint { "(concurrency " (queue["slots"]) ") " (kinds.join(", ")) } } }
}
