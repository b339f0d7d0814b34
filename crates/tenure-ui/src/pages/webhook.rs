//! A webhook: what it is told, and how the deliveries went.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::webhooks::{standing, words};
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{between, button, empty, list, proof, short, span, state, text, time};
use crate::visit::Visit;

/// In which states deliveries are looked for.
const STATES: [&str; 4] = ["queued", "running", "succeeded", "failed"];

/// `GET webhooks/{id}`
pub(crate) async fn page(visit: Visit, Path(id): Path<String>) -> Response {
    let body = body(&visit, &id).await;
    layout::page(&visit, "Webhook", "Webhooks", body).await
}

async fn body(visit: &Visit, id: &str) -> Result<Markup, Trouble> {
    let path = format!("/v1/webhooks/{}", encoded(id));
    let hook = visit.get(&path).await?;
    let (said, cursor) = (visit.said("state"), visit.said("cursor"));
    let chosen = STATES.into_iter().find(|state| *state == said).unwrap_or_default();
    let mut asked = format!("{path}/deliveries?limit=50");
    for (key, value) in [("state", chosen), ("cursor", &cursor)] {
        if !value.is_empty() {
            asked.push_str(&format!("&{key}={}", encoded(value)));
        }
    }
    let found = visit.get(&asked).await?;
    let deliveries = list(&found, "items");
    let acts = visit.may("manage").await;
    let here = |state: &str| visit.at(&format!("webhooks/{}?state={state}", encoded(id)));
    let to = |act: &str| format!("webhooks/{}/{act}", encoded(id));
    Ok(html! {
        div #webhook data-live {
            div.head {
                div { h1 { (text(&hook, "url")) } p.id { (id) } }
                (standing(&hook))
                @if acts { div.acts {
                    (button(visit, &to("test"), "Send test event", ""))
                    @if hook["enabled"] == true { (button(visit, &to("disable"), "Disable", "")) }
                    @else { (button(visit, &to("enable"), "Enable", "")) }
                } }
            }
            @if let Some(why) = hook["disabled_because"].as_str() { p.why { "Disabled: " (why) } }
            @if let Some(why) = hook["last_skipped_because"].as_str() {
                p.why { "Skipped " (time(visit, text(&hook, "last_skipped_at"))) ": " (why) }
            }
            dl.facts {
                @for (label, key) in [("Events", "types"), ("Queues", "queues"), ("Kinds", "kinds")] {
                    div { dt { (label) } dd { (words(&hook, key)) } }
                }
                div { dt { "Created" } dd { (time(visit, text(&hook, "created_at"))) } }
            }
        }
        nav.tabs aria-label="States of deliveries" {
            a href=(here("")) aria-current=[chosen.is_empty().then_some("true")] { "all" }
            @for name in STATES { a href=(here(name)) aria-current=[(chosen == name).then_some("true")] { (name) } }
        }
        div #list data-live=[cursor.is_empty().then_some("")] {
            @if deliveries.is_empty() { (empty("No deliveries", "Events are delivered as they happen. Send a test event to check the URL.")) }
            @else { (table(visit, id, deliveries, acts)) }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href={ (here(chosen)) "&cursor=" (encoded(next)) } { "Older deliveries →" } }
        }
        @if acts {
            section.card {
                h2 { "Delete this webhook" }
                form.stack method="post" action=(visit.at(&to("remove"))) {
                    (proof(visit))
                    label { span { "To confirm, type " code { (id) } } input name="typed" required autocomplete="off"; }
                    button.danger { "Delete webhook" }
                }
            }
        }
    })
}

fn table(visit: &Visit, hook: &str, deliveries: &[Value], acts: bool) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Deliveries" {
            table.rows {
                caption.sr { "Deliveries, latest first" }
                thead { tr {
                    th scope="col" { "State" } th scope="col" { "Delivery" } th scope="col" { "Event" } th scope="col" { "Created" }
                    th scope="col" { "Attempts" } th scope="col" { "Next attempt" }
                    @if acts { th scope="col" { span.sr { "Actions" } } }
                } }
                tbody { @for delivery in deliveries {
                    @let id = text(delivery, "id");
                    tr {
                        td { (state(text(delivery, "state"))) }
                        td { a.id href=(visit.at(&format!("jobs/{}", encoded(id)))) title=(id) { (short(id)) } }
                        td { (text(delivery, "event_type")) }
                        td { (time(visit, text(delivery, "created_at"))) }
                        td { (attempts(list(delivery, "attempts"))) }
                        td { (time(visit, text(delivery, "next_attempt_at"))) }
                        @if acts { td.acts { (button(visit, &format!("webhooks/{}/deliveries/{}/redeliver", encoded(hook), encoded(id)), "Redeliver", "")) } }
                    }
                } }
            }
        }
    }
}

/// How many there were, and what the last one said.
fn attempts(attempts: &[Value]) -> Markup {
    html! {
        @match attempts.last() {
            None => span.faint { "none yet" },
            Some(last) => {
                (attempts.len()) ", last: "
                (last["outcome"].as_str().unwrap_or("running"))
                @if let Some(took) = between(text(last, "started_at"), text(last, "finished_at")) { " in " (span(took)) }
                @if let Some(error) = last["error"].as_str() { br; span.faint { (error) } }
            }
        }
    }
}
