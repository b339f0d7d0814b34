//! A new schedule: what its rule means in plain words and when it would fire, before it is set.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::asking::Trouble;
use crate::layout;
use crate::parts::{list, proof, text, time};
use crate::visit::Visit;

/// Rules that show how they are written.
const SUCH: [&str; 4] = ["daily 02:30", "weekly mon-fri 09:30", "every 15m", "30 9 * * MON-FRI"];

/// What is filled in.
pub(crate) struct Drafted {
    pub name: String,
    pub rule: String,
    pub zone: String,
    pub kind: String,
    pub queue: String,
    pub args: String,
}

impl Drafted {
    pub(crate) fn of(said: impl Fn(&str) -> String) -> Self {
        let trimmed = |name: &str| said(name).trim().to_owned();
        Self {
            name: trimmed("name"),
            rule: trimmed("rule"),
            zone: trimmed("zone"),
            kind: trimmed("kind"),
            queue: trimmed("queue"),
            args: trimmed("args"),
        }
    }

    /// Its rule in the words of the contract.
    pub(crate) fn rule(&self) -> Value {
        let mut rule = json!({ "spec": { "text": self.rule } });
        if !self.zone.is_empty() {
            rule["time_zone"] = json!(self.zone);
        }
        rule
    }
}

/// `GET new-schedule`
pub(crate) async fn page(visit: Visit) -> Response {
    let drafted = Drafted::of(|name| visit.said(name));
    let body = form(&visit, &drafted, None).await;
    layout::page(&visit, "New schedule", "Schedules", Ok(body)).await
}

/// The form, what its rule comes to, and what is wrong with the rest.
pub(crate) async fn form(visit: &Visit, drafted: &Drafted, wrong: Option<&Trouble>) -> Markup {
    let field = |label: &str, name: &str, value: &str, like: &str, needed: bool| {
        html! { label { (label) input name=(name) value=(value) placeholder=(like) required[needed] autocomplete="off" spellcheck="false"; } }
    };
    let may = visit.may("manage").await;
    html! {
        h1 { "New schedule" }
        @if !may { p.notice { "Preview only: to create a schedule you need the scope manage and a server that is not read-only." } }
        @if let Some(wrong) = wrong { p #wrong .wrong role="alert" { (wrong.detail) } }
        div.columns {
            form.card.stack method="post" action=(visit.at("new-schedule")) data-preview {
                (proof(visit))
                (field("Name", "name", &drafted.name, "nightly-report", true))
                (field("Rule", "rule", &drafted.rule, SUCH[0], true))
                p.faint { "Examples: " @for (at, rule) in SUCH.iter().enumerate() { @if at > 0 { ", " } code { (rule) } } "." }
                (field("Time zone", "zone", &drafted.zone, "UTC", false))
                (field("Job kind", "kind", &drafted.kind, "report", true))
                (field("Queue", "queue", &drafted.queue, "default", false))
                label { "Args (JSON)" textarea name="args" rows="3" spellcheck="false" placeholder="null" { (drafted.args) } }
                div.bar {
                    @if may { button.main { "Create schedule" } }
                    button formmethod="get" formnovalidate { "Preview" }
                }
            }
            section.card #preview aria-live="polite" { (preview(visit, drafted).await) }
        }
        p.faint { "Find a free hour in the " a href=(visit.at("calendar")) { "calendar" } "." }
    }
}

async fn preview(visit: &Visit, drafted: &Drafted) -> Markup {
    if drafted.rule.is_empty() {
        return html! { h2 { "Preview" } p.faint { "Enter a rule to see when it fires." } };
    }
    let asked = visit.ask(axum::http::Method::POST, "/v1/schedules/preview", &drafted.rule()).await;
    match asked {
        Err(trouble) => html! { h2 { "Preview" } p.wrong { (trouble.detail) } },
        Ok(told) => html! {
            h2 { "Preview" }
            p { strong { (text(&told, "description")) } }
            @for warning in list(&told, "warnings").iter().filter_map(Value::as_str) { p.why { (warning) } }
            table {
                caption { "Next runs" }
                thead { tr { th scope="col" { "When" } th scope="col" { "Local time" } } }
                tbody {
                    @for slot in list(&told, "next") {
                        tr {
                            td { (time(visit, text(slot, "at"))) }
                            td { (text(slot, "local"))
                                @if let Some(change) = slot["clock_change"].as_str() { " " span.tag { "clock change: " (change) } } }
                        }
                    }
                    @if list(&told, "next").is_empty() { tr { td.faint colspan="2" { "Never." } } }
                }
            }
        },
    }
}
