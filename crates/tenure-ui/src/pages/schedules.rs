//! Schedules: when they fire in plain words, and when next.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{empty, list, span, text, time};
use crate::visit::Visit;

/// From so many seconds on it is told that a slot was late.
const LATE_SECONDS: f64 = 60.0;

/// `GET schedules`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Schedules", "Schedules", body).await
}

/// When a job of it was last enqueued, whether that was late, and why a slot after that had none.
fn last(visit: &Visit, schedule: &Value) -> Markup {
    let (run, skip) = (&schedule["last_run"], &schedule["last_skip"]);
    let late = run["lateness_seconds"].as_f64().filter(|late| *late >= LATE_SECONDS);
    let is_later = skip.is_object() && (run.is_null() || text(skip, "at") > text(run, "at"));
    html! {
        (time(visit, text(run, "at")))
        @if let Some(late) = late { " " span.tag { (span(late)) " late" } }
        @if is_later { " " span.tag { "then skipped: " (text(skip, "why").replace('_', " ")) } }
    }
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let mut path = "/v1/schedules?limit=100".to_owned();
    for (key, value) in [("prefix", visit.said("prefix")), ("cursor", visit.said("cursor"))] {
        if !value.is_empty() {
            path.push_str(&format!("&{key}={}", encoded(&value)));
        }
    }
    let found = visit.get(&path).await?;
    let schedules = list(&found, "items");
    Ok(html! {
        div.head { h1 { "Schedules" }
            @if visit.may("manage").await { div.acts { a.button href=(visit.at("new-schedule")) { "New schedule" } } } }
        form.search method="get" action=(visit.at("schedules")) role="search" {
            label.sr for="q" { "Search by name prefix" }
            input #q name="prefix" type="search" value=(visit.said("prefix")) placeholder="name prefix" autocomplete="off";
            button { "Search" }
        }
        div #list data-live {
            @if schedules.is_empty() {
                @if visit.said("prefix").is_empty() { (empty("No schedules yet", "Declare one in your program, or create one here or with `tenure schedule add`.")) }
                @else { (empty("No matching schedules", "Try a shorter prefix.")) }
            } @else { div.wide tabindex="0" role="region" aria-label="Schedules" {
                table.rows {
                    caption.sr { "Schedules by name" }
                    thead { tr {
                        th scope="col" { "Schedule" } th scope="col" { "Rule" } th scope="col" { "Job kind" } th scope="col" { "Next run" }
                        th scope="col" { "Last run" } th.number scope="col" { "Runs" }
                    } }
                    tbody { @for schedule in schedules {
                        @let name = text(schedule, "name");
                        tr {
                            th scope="row" {
                                a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) }
                                @if !schedule["paused"].is_null() { " " span.state.paused { "Ⅱ paused" } }
                            }
                            td { (text(schedule, "description")) }
                            td { (text(&schedule["job"], "kind")) }
                            td { (time(visit, text(schedule, "next_run_at"))) }
                            td { (last(visit, schedule)) }
                            td.number { (schedule["runs"]) }
                        }
                    } }
                }
            } }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href=(visit.at(&format!("schedules?cursor={}&prefix={}", encoded(next), encoded(&visit.said("prefix"))))) { "More →" } }
        }
    })
}
