//! Kinds of jobs, and how many of each there are.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{STATES, jobs_in, list, no_jobs, text};
use crate::visit::Visit;

/// `GET kinds`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Kinds", "Kinds", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let found = visit.all("/v1/kinds").await?;
    let kinds = list(&found, "items");
    Ok(html! {
        h1 { "Kinds" }
        div #list data-live {
            @if kinds.is_empty() { (no_jobs(visit, "No kinds yet", "A kind appears with its first job.")) }
            @else {
                div.wide tabindex="0" role="region" aria-label="Kinds" { table.rows {
                    caption.sr { "Kinds by name" }
                    thead { tr {
                        th scope="col" { "Kind" } th scope="col" { "Queues" }
                        @for (state, _) in STATES { th.number scope="col" { (state) } }
                    } }
                    tbody { @for kind in kinds {
                        @let name = text(kind, "kind");
                        tr {
                            th scope="row" { a href=(visit.at(&format!("kinds/{}", encoded(name)))) { (name) } }
                            td { (list(kind, "queues").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")) }
                            @for (state, _) in STATES { (jobs_in(visit, state, &kind["jobs"], &format!("kind:{name}"))) }
                        }
                    } }
                } }
            }
        }
    })
}
