//! A schedule: what comes, what was, and why it does not fire.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::schedule::Zone;

use super::app::of_kind;
use super::backfill;
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::likes::by_clock;
use crate::parts::{button, count, json, list, part, proof, short, span, state, text, time_in};
use crate::said::sentence;
use crate::visit::Visit;

/// Jobs of the latest slots that are looked at.
const LOOKED_AT: usize = 20;

/// `GET schedules/{name}`
pub(crate) async fn page(visit: Visit, Path(name): Path<String>) -> Response {
    let body = body(&visit, &name).await;
    layout::page(&visit, &format!("Schedule {name}"), "Schedules", body).await
}

async fn body(visit: &Visit, name: &str) -> Result<Markup, Trouble> {
    let path = format!("/v1/schedules/{}", encoded(name));
    let schedule = visit.get(&path).await?;
    let of = async |of: &str| visit.get(&format!("{path}/{of}")).await;
    let (why, next, runs) = (of("explain").await, of("next?count=10").await, of("runs?limit=20").await);
    let became = became(visit, runs.as_ref().map_or(&[][..], |runs| list(runs, "items"))).await;
    let paused = !schedule["paused"].is_null();
    let zone = visit.likes.zone_of(text(&schedule, "time_zone"));
    let own = Zone::named(text(&schedule, "time_zone")).unwrap_or_else(|_| Zone::utc());
    let job = &schedule["job"];
    let app = of_kind(visit, text(job, "kind"), job["queue"].as_str().unwrap_or("default")).await;
    let to = |act: &str| format!("schedules/{}/{act}", encoded(name));
    Ok(html! {
        div #schedule data-live {
            div.head {
                div { h1 { (name) } p { (text(&schedule, "description"))
                    @if let Some((name, place)) = &app { "; runs app " a href=(place) { (name) } } } }
                @if paused { span.state.paused { "Ⅱ paused" } }
                @if visit.may("manage").await {
                    div.acts {
                        (button(visit, &to("trigger"), "Run now", ""))
                        @if paused { (button(visit, &to("resume"), "Resume schedule", "")) }
                        @else { (button(visit, &to("pause"), "Pause schedule", "")) }
                    }
                }
            }
            (agreed(visit, &zone, &schedule, &became))
            (part(&why, |why| html! { @for reason in list(why, "items") { p.why { (sentence(visit, &zone, text(reason, "detail"))) } } }))
            div.columns.pair {
                section.card { (part(&next, |next| coming(visit, &zone, &own, list(next, "items"), paused))) }
                section.card { (part(&runs, |runs| past(visit, &zone, list(runs, "items"), &became))) }
                section.card { h2 { "Rule" } (json(&schedule["spec"])) p.faint { "Time zone: " (text(&schedule, "time_zone")) } }
                section.card { h2 { "Job" } (json(&schedule["job"])) }
            }
        }
        @if visit.may("manage").await {
            (backfill::section(visit, name, &own).await)
            section.card {
                h2 { "Delete this schedule" }
                p { "The schedule stops firing. Its jobs and its run history stay." }
                form.stack method="post" action=(visit.at(&to("remove"))) {
                    (proof(visit))
                    label { span { "To confirm, type " code { (name) } } input name="typed" required autocomplete="off"; }
                    button.danger { "Delete " (name) }
                }
            }
        }
    })
}

fn coming(visit: &Visit, zone: &Zone, own: &Zone, slots: &[Value], paused: bool) -> Markup {
    html! {
        table {
            caption { "Next runs" @if paused { ", once resumed" } }
            thead { tr { th scope="col" { "When" } th scope="col" { "Local time" } } }
            tbody {
                @for slot in slots {
                    tr {
                        td { (time_in(visit, zone, text(slot, "at"))) }
                        td { (by_clock(own, text(slot, "at")))
                            @if let Some(change) = slot["clock_change"].as_str() { " " span.tag { "clock change: " (change) } } }
                    }
                }
                @if slots.is_empty() { tr { td.faint colspan="2" { "No upcoming runs." } } }
            }
        }
    }
}

/// What was agreed about slots that meet, that were missed and that are late, and how the last one went.
fn agreed(visit: &Visit, zone: &Zone, schedule: &Value, became: &BTreeMap<String, String>) -> Markup {
    let (last, skip) = (&schedule["last_run"], &schedule["last_skip"]);
    let most = |key: &str| schedule[key].as_u64().map(|most| format!(" (max {})", count(most)));
    html! {
        dl.facts {
            div { dt { "Overlap" } dd { (overlap(text(schedule, "overlap"))) (most("overlap_max").unwrap_or_default()) } }
            div { dt { "Missed runs" } dd { (catch_up(text(schedule, "catch_up"))) (most("catch_up_max").unwrap_or_default()) } }
            @if let Some(late) = schedule["max_lateness_seconds"].as_f64() { div { dt { "Skip if late by" } dd { (span(late)) } } }
            @if last.is_object() {
                div { dt { "Last run" } dd { (time_in(visit, zone, text(last, "at")))
                    @if let Some(late) = last["lateness_seconds"].as_f64() { ", " (span(late)) " late" } } }
            }
            @if skip.is_object() {
                div { dt { "Last skipped run" } dd { (time_in(visit, zone, text(skip, "at"))) ", " (text(skip, "why").replace('_', " ")) } }
            }
            div { dt { "Runs" } dd { (count(schedule["runs"].as_u64().unwrap_or_default())) @if let Some(most) = schedule["max_runs"].as_u64() { " of " (count(most)) } } }
            @let open = list(schedule, "open_jobs").iter().filter(|id| !has_ended(id, became)).count();
            @if open > 0 { div { dt { "Unfinished jobs" } dd { (count(open as u64)) } } }
        }
    }
}

/// Returns true if a job of the latest runs has ended; the schedule records that only when it fires next.
fn has_ended(id: &Value, became: &BTreeMap<String, String>) -> bool {
    let state = id.as_str().and_then(|id| became.get(id)).map(String::as_str);
    matches!(state, Some("succeeded" | "failed" | "cancelled"))
}

/// What becomes of a slot while an earlier job has not ended.
fn overlap(name: &str) -> &str {
    match name {
        "skip" => "skip the run",
        "queue_one" => "queue one more",
        "queue_all" => "queue all",
        "cancel_previous" => "cancel the earlier job",
        "allow" => "run in parallel",
        other => other,
    }
}

/// What becomes of slots that were missed.
fn catch_up(name: &str) -> &str {
    match name {
        "skip" => "skip",
        "one" => "one job for all",
        "all" => "one job each",
        other => other,
    }
}

/// What became of the jobs of the latest slots, as far as they are kept.
async fn became(visit: &Visit, runs: &[Value]) -> BTreeMap<String, String> {
    let mut became = BTreeMap::new();
    for id in runs.iter().filter_map(|run| run["job_id"].as_str()).take(LOOKED_AT) {
        if let Ok(job) = visit.get(&format!("/v1/jobs/{}", encoded(id))).await {
            became.insert(id.to_owned(), text(&job, "state").to_owned());
        }
    }
    became
}

fn past(visit: &Visit, zone: &Zone, runs: &[Value], became: &BTreeMap<String, String>) -> Markup {
    html! {
        table {
            caption { "Run history" }
            thead { tr { th scope="col" { "Scheduled for" } th scope="col" { "Outcome" } th scope="col" { "Job" } th scope="col" { "Result" } } }
            tbody {
                @for run in runs {
                    @let id = text(run, "job_id");
                    tr {
                        td.slot { (by_clock(zone, text(run, "first_at"))) @if run["count"].as_u64() > Some(1) { " ×" (run["count"]) } }
                        td { (text(run, "outcome").replace('_', " ")) " " (text(run, "skipped_because").replace('_', " ")) }
                        td { @if !id.is_empty() { a.id href=(visit.at(&format!("jobs/{id}"))) { (short(id)) } } }
                        td { @if let Some(became) = became.get(id) { (state(became)) } }
                    }
                }
                @if runs.is_empty() { tr { td.faint colspan="4" { "No runs yet." } } }
            }
        }
    }
}
