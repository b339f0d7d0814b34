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
                (empty("No worker is alive", "Jobs wait until a program comes that runs them."))
            } @else {
                div.wide tabindex="0" role="region" aria-label="Workers" { table.rows {
                    caption.sr { "Workers that are alive" }
                    thead { tr {
                        th scope="col" { "Worker" } th.number scope="col" { "Slots" } th scope="col" { "Serves" }
                        th scope="col" { "Started" } th scope="col" { "Counts as alive for" }
                    } }
                    tbody { @for worker in workers {
                        tr {
                            th scope="row" { a href=(visit.at(&format!("workers/{}", encoded(text(worker, "worker_id"))))) { (text(worker, "name")) } br; span.id.faint { (text(worker, "worker_id")) }
                                @if let Some(told) = told(worker) { p { "Told " (told) "." } } }
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
    html! { p { (text(queue, "queue")) " " span.faint { "(" (queue["slots"]) " slots) " (kinds.join(", ")) } } }
}
