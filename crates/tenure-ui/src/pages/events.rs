//! What happened lately.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::ids;
use crate::layout;
use crate::parts::{empty, list, short, text, time};
use crate::visit::Visit;

/// Sorts of events, and what is asked for.
const SORTS: [(&str, &str); 5] = [
    ("all", "*"),
    ("jobs", "job.*"),
    ("schedules", "schedule.*"),
    ("leases", "lease.*"),
    ("queues", "queue.*"),
];

/// `GET events`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Events", "Events", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let said = visit.said("of");
    let (chosen, types) = SORTS.into_iter().find(|(name, _)| *name == said).unwrap_or(SORTS[0]);
    let (queue, kind) = (visit.said("queue"), visit.said("kind"));
    let about = ids::whole(visit, visit.said("about")).await;
    // The name here and in the contract, and what was said.
    let narrower = |about_is: &str| -> String {
        let said = [("queue", &queue), ("kind", &kind), (about_is, &about)].into_iter();
        let said = said.filter(|(_, name)| !name.is_empty());
        said.map(|(key, name)| format!("&{key}={}", encoded(name))).collect()
    };
    let (asked, narrower) = (narrower("subject"), narrower("about"));
    let found = visit.get(&format!("/v1/events?types={}&limit=100{asked}", encoded(types))).await?;
    let events = list(&found, "items");
    let field = |label: &str, name: &str, value: &str| {
        html! { label.sr for=(name) { (label) } input id=(name) name=(name) type="search" value=(value) placeholder=(label) autocomplete="off" spellcheck="false"; }
    };
    Ok(html! {
        h1 { "Events" }
        form.search method="get" action=(visit.at("events")) role="search" {
            input type="hidden" name="of" value=(chosen);
            (field("queue", "queue", &queue)) (field("kind", "kind", &kind))
            (field("job, lease or schedule", "about", &about))
            button { "Filter" }
        }
        nav.tabs aria-label="Event types" {
            @for (name, _) in SORTS {
                a href=(visit.at(&format!("events?of={name}{narrower}"))) aria-current=[(name == chosen).then_some("page")] { (name) }
            }
        }
        div #list data-live {
            @if events.is_empty() {
                (empty("No events", "Tenure records events while a webhook exists or a client reads them, and for 15 minutes after. New events appear here."))
            } @else { (table(visit, events)) }
        }
    })
}

fn table(visit: &Visit, events: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Events" {
            table.rows {
                caption.sr { "Events, latest first" }
                thead { tr {
                    th scope="col" { "Time" } th scope="col" { "Event" } th scope="col" { "Subject" } th scope="col" { "Kind" }
                    th scope="col" { "Queue" } th scope="col" { "Message" }
                } }
                tbody { @for event in events.iter().rev() {
                    tr {
                        td { (time(visit, text(event, "time"))) }
                        td { (what(text(event, "type"))) }
                        td { (subject(visit, event)) }
                        td { (text(event, "kind")) }
                        td { (text(event, "queue")) }
                        td.says { (text(&event["data"]["error"], "detail")) (text(&event["data"], "because")) }
                    }
                } }
            }
        }
    }
}

fn what(event_type: &str) -> Markup {
    let class = event_type.strip_prefix("job.").unwrap_or_default();
    html! { span class={ "state " (class) } { (event_type) } }
}

/// Where more is to be seen of it.
fn subject(visit: &Visit, event: &Value) -> Markup {
    let (event_type, name) = (text(event, "type"), text(event, "subject"));
    let sort = event_type.split('.').next().unwrap_or_default();
    html! {
        @match sort {
            "job" => a.id href=(visit.at(&format!("jobs/{}", encoded(name)))) title=(name) { (short(name)) },
            "schedule" => a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) },
            "lease" => a href=(visit.at(&format!("leases/{}", encoded(name)))) { (name) },
            _ => (name),
        }
    }
}
