//! The list of jobs: by search, by state, page by page.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{STATES, between, count, empty, list, short, span, state, text, time};
use crate::visit::Visit;

/// `GET jobs`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Jobs", "Jobs", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let (search, chosen, cursor) = (visit.said("q"), visit.said("state"), visit.said("cursor"));
    let chosen = STATES.iter().map(|(name, _)| *name).find(|name| *name == chosen).unwrap_or_default();
    let mut path = "/v1/jobs?limit=50".to_owned();
    for (key, value) in [("q", search.as_str()), ("state", chosen), ("cursor", &cursor)] {
        if !value.is_empty() {
            path.push_str(&format!("&{key}={}", encoded(value)));
        }
    }
    // What is wrong with a search is told where it is written.
    let (found, wrong) = match visit.get(&path).await {
        Ok(found) => (found, None),
        Err(trouble) if trouble.status == StatusCode::UNPROCESSABLE_ENTITY => {
            (Value::Null, Some(trouble.detail))
        }
        Err(trouble) => return Err(trouble),
    };
    let stats =
        if search.is_empty() { visit.get("/v1/stats").await.unwrap_or_default() } else { Value::Null };
    let jobs = list(&found, "items");
    let to = |state: &str| visit.at(&format!("jobs?state={state}&q={}", encoded(&search)));
    Ok(html! {
        h1 { "Jobs" }
        form.search method="get" action=(visit.at("jobs")) role="search" {
            label.sr for="q" { "Search jobs" }
            input #q name="q" type="search" value=(search) placeholder="queue:mail kind:send_email error:\"timed out\" created:>-2h"
                autocomplete="off" spellcheck="false" aria-invalid=[wrong.as_ref().map(|_| "true")]
                aria-describedby=[wrong.as_ref().map(|_| "wrong")];
            @if !chosen.is_empty() { input type="hidden" name="state" value=(chosen); }
            button { "Search" }
        }
        @if let Some(wrong) = &wrong { p #wrong .wrong role="alert" { (wrong) } }
        nav.tabs #tabs data-live aria-label="States" {
            a href=(to("")) aria-current=[chosen.is_empty().then_some("true")] { "all" }
            @for (name, sign) in STATES {
                a href=(to(name)) aria-current=[(chosen == name).then_some("true")] {
                    span aria-hidden="true" class=(name) { (sign) } " " (name)
                    @if search.is_empty() {
                        " " span.badge { (count(list(&stats, "items").iter().filter_map(|queue| queue["jobs"][name].as_u64()).sum())) }
                    }
                }
            }
        }
        div #list data-live=[cursor.is_empty().then_some("")] {
            @if jobs.is_empty() && wrong.is_none() {
                (empty("No job is like that", "Look in another state, or make the search wider. What ended long ago is not kept."))
            } @else if wrong.is_none() { (table(visit, jobs)) }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href={ (to(chosen)) "&cursor=" (encoded(next)) } { "Older jobs →" } }
        }
    })
}

fn table(visit: &Visit, jobs: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Jobs" {
            table.rows {
                caption.sr { "Jobs, the latest first" }
                thead { tr {
                    th scope="col" { "State" } th scope="col" { "Job" } th scope="col" { "Kind" } th scope="col" { "Queue" }
                    th.number scope="col" { "Attempt" } th.number scope="col" { "Took" } th scope="col" { "Created" }
                    th scope="col" { "Says" }
                } }
                tbody { @for job in jobs {
                    @let id = text(job, "id");
                    tr {
                        td { (state(text(job, "state"))) }
                        td { a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } }
                        td { (text(job, "kind")) }
                        td { (text(job, "queue")) }
                        td.number { (job["attempt"]) }
                        td.number { (between(text(job, "started_at"), text(job, "finished_at")).map_or_else(|| "–".to_owned(), span)) }
                        td { (time(visit, text(job, "created_at"))) }
                        td.says { (says(job)) }
                    }
                } }
            }
        }
    }
}

/// The error, or how far it has come.
fn says(job: &Value) -> &str {
    job["error"]["detail"].as_str().or(job["progress"]["message"].as_str()).unwrap_or_default()
}
