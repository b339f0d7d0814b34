//! A schedule: what comes, what was, and why it does not fire.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::schedule::Zone;

use super::app::of_kind;
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::likes::by_clock;
use crate::parts::{button, json, list, part, proof, short, text, time_in};
use crate::said::sentence;
use crate::visit::Visit;

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
                    @if let Some((name, place)) = &app { "; runs the app " a href=(place) { (name) } } } }
                @if paused { span.state.paused { "Ⅱ paused" } }
                @if visit.may("manage").await {
                    div.acts {
                        (button(visit, &to("trigger"), "Run now", ""))
                        @if paused { (button(visit, &to("resume"), "Resume", "")) }
                        @else { (button(visit, &to("pause"), "Pause", "")) }
                    }
                }
            }
            (part(&why, |why| html! { @for reason in list(why, "items") { p.why { (sentence(visit, &zone, text(reason, "detail"))) } } }))
            div.columns.pair {
                section.card { (part(&next, |next| coming(visit, &zone, &own, list(next, "items")))) }
                section.card { (part(&runs, |runs| past(visit, &zone, list(runs, "items")))) }
                section.card { h2 { "Its rule" } (json(&schedule["spec"])) p.faint { "in " (text(&schedule, "time_zone")) } }
                section.card { h2 { "Its job" } (json(&schedule["job"])) }
            }
        }
        @if visit.may("manage").await {
            section.card {
                h2 { "Remove this schedule" }
                p { "It fires no more. Its jobs, and what became of its slots, stay." }
                form.stack method="post" action=(visit.at(&to("remove"))) {
                    (proof(visit))
                    label { "Write its name, " code { (name) } input name="typed" required autocomplete="off"; }
                    button.danger { "Remove " (name) }
                }
            }
        }
    })
}

fn coming(visit: &Visit, zone: &Zone, own: &Zone, slots: &[Value]) -> Markup {
    html! {
        table {
            caption { "What comes" }
            thead { tr { th scope="col" { "In" } th scope="col" { "By its clocks" } } }
            tbody {
                @for slot in slots {
                    tr {
                        td { (time_in(visit, zone, text(slot, "at"))) }
                        td { (by_clock(own, text(slot, "at")))
                            @if let Some(change) = slot["clock_change"].as_str() { " " span.tag { "clock change: " (change) } } }
                    }
                }
                @if slots.is_empty() { tr { td.faint colspan="2" { "Nothing." } } }
            }
        }
    }
}

fn past(visit: &Visit, zone: &Zone, runs: &[Value]) -> Markup {
    html! {
        table {
            caption { "What became of its slots" }
            thead { tr { th scope="col" { "Slot" } th scope="col" { "Outcome" } th scope="col" { "Job" } } }
            tbody {
                @for run in runs {
                    @let id = text(run, "job_id");
                    tr {
                        td.slot { (by_clock(zone, text(run, "first_at"))) @if run["count"].as_u64() > Some(1) { " ×" (run["count"]) } }
                        td { (text(run, "outcome").replace('_', " ")) " " (text(run, "skipped_because").replace('_', " ")) }
                        td { @if !id.is_empty() { a.id href=(visit.at(&format!("jobs/{id}"))) { (short(id)) } } }
                    }
                }
                @if runs.is_empty() { tr { td.faint colspan="3" { "It has not fired yet." } } }
            }
        }
    }
}
