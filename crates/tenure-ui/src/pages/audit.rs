//! Who did what.

use axum::response::Response;
use maud::{Markup, html};

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{empty, list, text, time};
use crate::visit::Visit;

/// `GET audit`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Audit", "Audit", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let cursor = visit.said("cursor");
    let behind = if cursor.is_empty() { String::new() } else { format!("&cursor={}", encoded(&cursor)) };
    let found = visit.get(&format!("/v1/audit?limit=100{behind}")).await?;
    let entries = list(&found, "items");
    let answered = |status: u64| if status < 400 { "succeeded" } else { "failed" };
    Ok(html! {
        h1 { "Audit" }
        div #list data-live=[cursor.is_empty().then_some("")] {
            @if entries.is_empty() {
                (empty("No changes yet", "Changes that people make are recorded here, with who made them and the response."))
            } @else {
                div.wide tabindex="0" role="region" aria-label="Audit log" { table.rows {
                    caption.sr { "Audit log, latest first" }
                    thead { tr {
                        th scope="col" { "Time" } th scope="col" { "Who" } th scope="col" { "Request" } th.number scope="col" { "Status" }
                    } }
                    tbody { @for entry in entries {
                        tr {
                            td { (time(visit, text(entry, "at"))) }
                            td { (text(entry, "who")) }
                            td { code { (text(entry, "method")) " " (text(entry, "path")) } }
                            td.number {
                                span class=(answered(entry["status"].as_u64().unwrap_or_default())) { (entry["status"]) }
                            }
                        }
                    } }
                } }
            }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href={ (visit.at("audit?cursor=")) (encoded(next)) } { "Older entries →" } }
        }
    })
}
