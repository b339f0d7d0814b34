//! What happened lately.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
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
    let (queue, kind, about) = (visit.said("queue"), visit.said("kind"), visit.said("about"));
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
            (field("of this queue", "queue", &queue)) (field("of this kind", "kind", &kind))
            (field("about this job, lease or schedule", "about", &about))
            button { "Narrow" }
        }
        nav.tabs aria-label="Sorts of events" {
            @for (name, _) in SORTS {
                a href=(visit.at(&format!("events?of={name}{narrower}"))) aria-current=[(name == chosen).then_some("page")] { (name) }
            }
        }
        div #list data-live {
            @if events.is_empty() {
                (empty("Nothing has happened since somebody looks", "Events are written down while somebody looks at them or a webhook wants them."))
            } @else { (table(visit, events)) }
        }
    })
}

fn table(visit: &Visit, events: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Events" {
            table.rows {
                caption.sr { "Events, the latest first" }
                thead { tr {
                    th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Of what" } th scope="col" { "Kind" }
                    th scope="col" { "Queue" } th scope="col" { "Says" }
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
