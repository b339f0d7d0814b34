//! The list of jobs: by search, by state, page by page.

mod columns;
mod kept;

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::{SEARCH_FIELDS, limits};

use super::job_new;
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{self, STATES, count, empty, list, no_jobs, short, state, text, time};
use crate::unreadable;
use crate::visit::Visit;

/// Jobs on a page.
const SHOWN: usize = 50;
/// Jobs that are looked at until one is found; and for no longer than this.
const MOST_LOOKED_AT: usize = 100_000;
const WITHIN: Duration = Duration::from_millis(150);

/// `GET jobs`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Jobs", "Jobs", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let (search, chosen, cursor) = (visit.said("q"), visit.said("state"), visit.said("cursor"));
    let chosen = STATES.iter().map(|(name, _)| *name).find(|name| *name == chosen).unwrap_or_default();
    let mut path = format!("/v1/jobs?limit={SHOWN}");
    for (key, value) in [("q", search.as_str()), ("state", chosen), ("cursor", &cursor)] {
        if !value.is_empty() {
            path.push_str(&format!("&{key}={}", encoded(value)));
        }
    }
    // What is wrong with a search is told where it is written.
    let (Looked { found, looked_at }, wrong) = match look(visit, &path).await {
        Ok(looked) => (looked, None),
        Err(trouble) if trouble.status == StatusCode::UNPROCESSABLE_ENTITY => {
            (Looked { found: Value::Null, looked_at: 0 }, Some(trouble.detail))
        }
        Err(trouble) => return Err(trouble),
    };
    let stats =
        if search.is_empty() { visit.all("/v1/stats").await.unwrap_or_default() } else { Value::Null };
    let jobs = list(&found, "items");
    let next = found["next_cursor"].as_str();
    // What costs much is looked at once: no index helps a search whose page is not full and goes on all the same. Without a
    // search there are other reasons: large jobs, or an access token that reaches few.
    let is_dear = next.is_some() && jobs.len() < SHOWN && (jobs.is_empty() || !search.is_empty());
    let is_live = (cursor.is_empty() && !is_dear).then_some("");
    let back_to = match next.filter(|_| is_dear) {
        Some(next) => accepted(visit, next).await,
        None => None,
    };
    let acts = visit.may("manage").await;
    let columns = columns::kept(visit);
    let to = |state: &str| visit.at(&format!("jobs?state={state}&q={}{columns}", encoded(&search)));
    Ok(html! {
        div.head { h1 { "Jobs" }
            @if job_new::may(visit).await { div.acts { a.button href=(visit.at("new-job")) { "New job" } } } }
        form.search method="get" action=(visit.at("jobs")) role="search" {
            label.sr for="q" { "Search jobs" }
            input #q name="q" type="search" value=(search) placeholder="queue:mail kind:send_email error:\"timed out\" created:>-2h"
                autocomplete="off" spellcheck="false" aria-invalid=[wrong.as_ref().map(|_| "true")]
                aria-describedby=[wrong.as_ref().map(|_| "wrong")];
            @if !chosen.is_empty() { input type="hidden" name="state" value=(chosen); }
            (columns::kept_hidden(visit))
            button { "Search" }
        }
        @if let Some(wrong) = &wrong { (marked(&search, wrong)) }
        details.how { summary { "Search syntax" } (how()) }
        nav.tabs #tabs data-live=[is_live] aria-label="States" {
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
        div.bar {
            @if acts && !jobs.is_empty() { (many(visit, &search, chosen)) }
            div.push.bar { (kept::shown(visit, &search, chosen)) (columns::chooser(visit, &search, chosen)) }
        }
        div #list data-hold data-live=[is_live] {
            @if is_dear { (partly(visit, jobs.len(), looked_at, back_to.as_deref())) }
            @if jobs.is_empty() && !unreadable::of(&found).is_empty() { (table(visit, &found, acts)) }
            @else if jobs.is_empty() && is_dear {}
            @else if jobs.is_empty() && stats["items"].as_array().is_some_and(Vec::is_empty) {
                (no_jobs(visit, "No jobs yet", ""))
            } @else if jobs.is_empty() && wrong.is_none() {
                (empty("No matching jobs", "Try another state or a wider search. Finished jobs are deleted when their retention period ends."))
            } @else if wrong.is_none() { (table(visit, &found, acts)) }
        }
        @if let Some(next) = next {
            p.more { a.button[is_dear] rel="next" href={ (to(chosen)) "&cursor=" (encoded(next)) } { @if is_dear { "Search further →" } @else { "Older jobs →" } } }
        }
    })
}

/// What was found, and through how many jobs was looked, those of the last question counted as whole.
struct Looked {
    found: Value,
    looked_at: usize,
}

/// Looks until something is found, the page is asked of all there are, or it takes too long.
async fn look(visit: &Visit, path: &str) -> Result<Looked, Trouble> {
    let clock = visit.ui.tenure.store().clock();
    let began = clock.moment();
    let (mut found, mut looked_at) = (visit.get(path).await?, limits::PAGE_EXAMINED);
    let path = path.split_once("&cursor=").map_or(path, |(path, _)| path);
    let is_empty = |found: &Value| list(found, "items").is_empty() && unreadable::of(found).is_empty();
    while let Some(next) = found["next_cursor"].as_str().filter(|_| is_empty(&found)) {
        if looked_at >= MOST_LOOKED_AT || clock.moment().since(began) >= WITHIN {
            break;
        }
        found = visit.get(&format!("{path}&cursor={}", encoded(next))).await?;
        looked_at += limits::PAGE_EXAMINED;
    }
    Ok(Looked { found, looked_at })
}

/// When the job was accepted behind which a listing goes on, or the one after it.
async fn accepted(visit: &Visit, cursor: &str) -> Option<String> {
    let found = visit.get(&format!("/v1/jobs?limit=1&cursor={}", encoded(cursor))).await.ok()?;
    Some(text(list(&found, "items").first()?, "created_at").to_owned())
}

/// What is told of a search that looked at a part of the jobs only.
fn partly(visit: &Visit, found: usize, looked_at: usize, back_to: Option<&str>) -> Markup {
    html! {
        p.why {
            @if found == 0 { "No match" } @else { "Matches" } " among the " (count(looked_at as u64)) " jobs searched"
            @if let Some(back_to) = back_to { ", back to " (time(visit, back_to)) } ". "
            @if !visit.said("q").is_empty() { "No index supports this search. Add a queue or a kind to search fewer jobs." }
        }
    }
}

fn table(visit: &Visit, found: &Value, acts: bool) -> Markup {
    let jobs = list(found, "items");
    let columns = columns::chosen(visit);
    html! {
        div.wide tabindex="0" role="region" aria-label="Jobs" {
            table.rows {
                caption.sr { "Jobs, latest first" }
                thead { tr {
                    @if acts { td.tick { label { span.sr { "Select all on this page" } input #tick-all type="checkbox"; } } }
                    th scope="col" { "State" } th scope="col" { "Job" }
                    @for column in &columns { th class=[column.is_number.then_some("number")] scope="col" { (column.title) } }
                } }
                tbody { @for job in jobs {
                    @let id = text(job, "id");
                    tr data-key=(id) {
                        @if acts { td.tick { label { span.sr { "Select " (short(id)) } input type="checkbox" name="id" value=(id) form="ticked"; } } }
                        td { (state(parts::standing(job))) }
                        td { a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } }
                        @for column in &columns { (columns::cell(visit, column, job)) }
                    }
                } (unreadable::rows(found, acts, columns.len())) }
            }
        }
        @if !unreadable::of(found).is_empty() { (unreadable::hint()) }
    }
}

/// What can be done with many jobs at once: with those that are ticked, or with all that are meant, on however many pages.
fn many(visit: &Visit, search: &str, chosen: &str) -> Markup {
    let all = if chosen.is_empty() { search.to_owned() } else { format!("state:{chosen} {search}") };
    let all = all.trim();
    html! {
        form.bar #ticked method="get" action=(visit.at("bulk/new")) {
            button { "Selected…" }
            @if !all.is_empty() { a.button href=(visit.at(&format!("bulk/new?q={}", encoded(all)))) { "All matching…" } }
        }
    }
}

/// What is wrong with a search, and where.
fn marked(search: &str, wrong: &str) -> Markup {
    let place =
        wrong.split_once("character ").and_then(|(_, rest)| rest.split_once(':')?.0.parse::<usize>().ok());
    let place = place.filter(|place| *place <= search.chars().count());
    html! {
        div #wrong .wrong role="alert" {
            p { (wrong) }
            @if let Some(place) = place {
                @let at = search.char_indices().nth(place.saturating_sub(1)).map_or(0, |(at, _)| at);
                p { code { (&search[..at]) mark { (&search[at..]) } } }
            }
        }
    }
}

fn how() -> Markup {
    html! {
        p { "All terms must match: " code { "state:failed kind:send_email error:\"timed out\" created:>-2h -tag:test" }
            ". A comma means OR, a minus means NOT. A bare word matches part of a kind, or the first or last eight characters of an ID." }
        dl.keys { @for (field, means) in SEARCH_FIELDS { dt { code { (field) ":" } } dd { (means) } } }
    }
}
