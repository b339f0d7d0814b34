//! Webhooks: who is told what happens.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{empty, list, proof, state, text, time};
use crate::visit::Visit;

/// What can be told, and what that is.
pub(crate) const SORTS: [(&str, &str); 7] = [
    ("job.failed", "a job failed for good"),
    ("job.succeeded", "a job succeeded"),
    ("job.cancelled", "a job was cancelled"),
    ("schedule.*", "a schedule fired, or a run was skipped or missed"),
    ("lease.*", "a lease was acquired, released or broken, or it expired"),
    ("queue.*", "a queue was paused or resumed"),
    ("*", "all events"),
];

/// Of so many webhooks the latest delivery is looked at.
const ASKED: usize = 20;

/// `GET webhooks`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Webhooks", "Webhooks", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let found = visit.all("/v1/webhooks").await?;
    let hooks = list(&found, "items");
    let mut failing = BTreeMap::new();
    for hook in hooks.iter().take(ASKED) {
        if let Some(why) = why_failing(visit, hook).await {
            failing.insert(text(hook, "id"), why);
        }
    }
    Ok(html! {
        h1 { "Webhooks" }
        div #list data-live {
            @if hooks.is_empty() {
                (empty("No webhooks yet", "A webhook sends events to a URL, signed and with retries."))
            } @else { (table(visit, hooks, &failing)) }
        }
        @if visit.may("manage").await { (form(visit)) }
    })
}

/// The webhooks whose latest delivery has not arrived; none for those who may not see webhooks.
pub(super) async fn failing(visit: &Visit) -> Vec<(Value, String)> {
    let Ok(found) = visit.all("/v1/webhooks").await else { return Vec::new() };
    let mut failing = Vec::new();
    for hook in list(&found, "items").iter().take(ASKED) {
        if let Some(why) = why_failing(visit, hook).await {
            failing.push((hook.clone(), why));
        }
    }
    failing
}

/// Why the latest delivery has not arrived, if it was tried.
async fn why_failing(visit: &Visit, hook: &Value) -> Option<String> {
    let path = format!("/v1/webhooks/{}/deliveries?limit=1", encoded(text(hook, "id")));
    let found = visit.get(&path).await.ok().filter(|_| hook["enabled"] == true)?;
    let last = list(list(&found, "items").first()?, "attempts").last()?;
    last["error"].as_str().map(str::to_owned)
}

fn table(visit: &Visit, hooks: &[Value], failing: &BTreeMap<&str, String>) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Webhooks" {
            table.rows {
                caption.sr { "Webhooks" }
                thead { tr {
                    th scope="col" { "URL" } th scope="col" { "State" } th scope="col" { "Events" } th scope="col" { "Queues" }
                    th scope="col" { "Kinds" } th scope="col" { "Created" }
                } }
                tbody { @for hook in hooks {
                    tr {
                        th scope="row" { a href=(visit.at(&format!("webhooks/{}", encoded(text(hook, "id"))))) { (text(hook, "url")) } }
                        td {
                            @match failing.get(text(hook, "id")) {
                                Some(why) => { (state("failed")) " " span.faint { "last delivery: " (why) } }
                                None => { (standing(hook)) }
                            }
                        }
                        td { (words(hook, "types")) }
                        td { (words(hook, "queues")) }
                        td { (words(hook, "kinds")) }
                        td { (time(visit, text(hook, "created_at"))) }
                    }
                } }
            }
        }
    }
}

/// Whether it is told anything.
pub(super) fn standing(hook: &Value) -> Markup {
    let enabled = hook["enabled"] == true;
    let (class, sign, word) =
        if enabled { ("succeeded", "●", "enabled") } else { ("failed", "Ⅱ", "disabled") };
    html! { span class={ "state " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}

/// Words of a list; all, if there is none.
pub(super) fn words(hook: &Value, key: &str) -> String {
    let words: Vec<&str> = list(hook, key).iter().filter_map(Value::as_str).collect();
    if words.is_empty() { "all".to_owned() } else { words.join(", ") }
}

fn form(visit: &Visit) -> Markup {
    html! {
        section.card {
            h2 { "New webhook" }
            form.stack method="post" action=(visit.at("webhooks")) {
                (proof(visit))
                label { "URL" input name="url" type="url" required placeholder="https://example.com/hooks" autocomplete="off"; }
                fieldset {
                    legend { "Events" }
                    @for (at, (sort, means)) in SORTS.iter().enumerate() {
                        label.option { input type="radio" name="types" value=(sort) checked[at == 0]; " " code { (sort) } " " span.faint { (means) } }
                    }
                }
                label { "Queues, separated by spaces (empty: all)" input name="queues" autocomplete="off"; }
                label { "Kinds, separated by spaces (empty: all)" input name="kinds" autocomplete="off"; }
                button { "Create webhook" }
            }
        }
    }
}
