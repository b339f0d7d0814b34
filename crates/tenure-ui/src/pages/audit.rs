//! The audit log.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

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
                (empty("No changes yet", "Changes, revealed values and refused clients are recorded here."))
            } @else {
                div.wide tabindex="0" role="region" aria-label="Audit log" { table.rows {
                    caption.sr { "Audit log, latest first" }
                    thead { tr {
                        th scope="col" { "Time" } th scope="col" { "Who" } th scope="col" { "From" } th scope="col" { "Action" }
                        th scope="col" { "Object" } th scope="col" { "Change" } th.number scope="col" { "Status" }
                    } }
                    tbody { @for entry in entries {
                        tr {
                            td { (time(visit, text(entry, "at"))) }
                            td title=[entry["token_id"].as_str().map(|id| format!("Token {id}"))] { (text(entry, "who")) }
                            td title=[entry["request_id"].as_str().map(|id| format!("Request {id}"))] {
                                (source(text(entry, "source"))) " " (text(entry, "address"))
                            }
                            td {
                                @if let Some(command) = entry["command"].as_str() { code { (command) } br; }
                                code { (text(entry, "method")) " " (text(entry, "path")) }
                            }
                            td { (text(&entry["object"], "kind")) " " (text(&entry["object"], "name")) }
                            td { (change(entry)) }
                            td.number {
                                span class=(answered(entry["status"].as_u64().unwrap_or_default())) { (entry["status"]) }
                                @if let Some(count) = entry["count"].as_u64().filter(|count| *count > 1) { " × " (count) }
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

/// Returns the entry point, for people.
fn source(name: &str) -> &str {
    match name {
        "http" => "HTTP",
        "dashboard" => "Dashboard",
        "cli" => "Command line",
        other => other,
    }
}

/// Shows the changed fields before and after.
fn change(entry: &Value) -> Markup {
    let sides = [("Before", &entry["before"]), ("After", &entry["after"])];
    let sides: Vec<(&str, &Value)> = sides.into_iter().filter(|(_, fields)| fields.is_object()).collect();
    html! {
        @if !sides.is_empty() {
            details {
                summary { "Show" }
                @for (name, fields) in sides {
                    p { (name) }
                    pre { (format!("{fields:#}")) }
                }
            }
        }
    }
}
