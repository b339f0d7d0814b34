//! Queues: what waits in them, for how long, and whether they are paused.

use axum::response::Response;
use maud::{Markup, html};

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{STATES, button, jobs_in, list, no_jobs, span, text};
use crate::visit::Visit;

/// `GET queues`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Queues", "Queues", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let (stats, acts) = (visit.all("/v1/stats").await?, visit.may("manage").await);
    let queues = list(&stats, "items");
    Ok(html! {
        h1 { "Queues" }
        div #list data-live {
            @if queues.is_empty() { (no_jobs(visit, "No queues yet", "A queue appears with its first job or worker.")) }
            @else { div.wide tabindex="0" role="region" aria-label="Queues" {
                table.rows {
                    caption.sr { "Queues" }
                    thead { tr {
                        th scope="col" { "Queue" }
                        @for (state, _) in STATES { th.number scope="col" { (state) } }
                        th.number scope="col" { "longest wait" }
                        @if acts { th scope="col" { span.sr { "Actions" } } }
                    } }
                    tbody { @for queue in queues {
                        @let name = text(queue, "queue");
                        @let paused = queue["paused"] == true;
                        tr {
                            th scope="row" {
                                a href=(visit.at(&format!("queues/{}", encoded(name)))) { (name) }
                                @if paused { " " span.state.paused { "Ⅱ paused" } }
                            }
                            @for (state, _) in STATES { (jobs_in(visit, state, &queue["jobs"], &format!("queue:{name}"))) }
                            td.number { (queue["oldest_due_seconds"].as_f64().map_or_else(|| "–".to_owned(), span)) }
                            @if acts {
                                @let (act, label) = if paused { ("resume", "Resume") } else { ("pause", "Pause") };
                                td.acts { (button(visit, &format!("queues/{}/{act}", encoded(name)), label, "")) }
                            }
                        }
                    } }
                }
            } }
        }
    })
}
