//! A kind: what it is for, how long its jobs take, and what goes wrong with them.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::job_new;
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{STATES, between, count, jobs_in, json, list, part, span, text, time, unread};
use crate::visit::Visit;

/// Of so many jobs that ended last it is told how they went.
const LAST: usize = 100;
/// Of so many jobs that failed last the errors are grouped.
const FAILED: usize = 500;
/// Sorts of failures that are shown.
const SORTS: usize = 10;
/// Pieces of a failure that its search names.
const PIECES: usize = 3;
/// Letters of a failure by which it is known again.
const LETTERS: usize = 100;

/// `GET kinds/{name}`
pub(crate) async fn page(visit: Visit, Path(name): Path<String>) -> Response {
    let body = body(&visit, &name).await;
    layout::page(&visit, &format!("Kind {name}"), "Kinds", body).await
}

async fn body(visit: &Visit, name: &str) -> Result<Markup, Trouble> {
    let kinds = visit.all("/v1/kinds").await?;
    let missing = || {
        Trouble::new(
            StatusCode::NOT_FOUND,
            "Kind not found",
            &format!("Kind {name:?} has no jobs and no description."),
        )
    };
    let kind = list(&kinds, "items").iter().find(|kind| text(kind, "kind") == name).ok_or_else(missing)?;
    let about = visit.get(&format!("/v1/kinds/{}", encoded(name))).await.unwrap_or_default();
    let ended = |state: &str, most: usize| {
        format!("/v1/jobs?kind={}&state={state}&order=last_ended&limit={most}", encoded(name))
    };
    let (good, bad) = (visit.get(&ended("succeeded", LAST)).await, visit.get(&ended("failed", FAILED)).await);
    let failed = kind["jobs"]["failed"].as_u64().unwrap_or_default();
    Ok(html! {
        div #kind data-live {
            div.head { h1 { (name) }
                @if job_new::may(visit).await { div.acts { a.button href=(visit.at(&format!("new-job?kind={}", encoded(name)))) { "New job" } } } }
            @if let Some(says) = about["description"].as_str() { p { (says) } }
            dl.facts {
                @for (label, key) in [("Owner", "owner"), ("Default queue", "default_queue")] {
                    @if let Some(says) = about[key].as_str() { div { dt { (label) } dd { (says) } } }
                }
                @if let Some(link) = about["docs_url"].as_str() { div { dt { "Documentation" } dd { a href=(link) rel="noreferrer" { (link) } } } }
                @let spans = good.as_ref().map_or_else(|_| Vec::new(), |good| spans(list(good, "items")));
                @for (label, share) in [("Median run time", 0.5), ("p95 run time", 0.95)] {
                    @if let Some(took) = within(&spans, share) { div { dt { (label) } dd { (span(took)) } } }
                }
                @if !spans.is_empty() { div { dt { "Based on" } dd { "last " (count(spans.len() as u64)) " successes" } } }
            }
            @if let Err(trouble) = &good { (unread(trouble)) }
            section.card { (states(visit, name, kind)) }
            section.card { (part(&bad, |bad| failures(visit, name, list(bad, "items"), failed))) }
        }
        @if about["schema"].is_object() { details.card { summary { "Args schema" } (json(&about["schema"])) } }
    })
}

fn states(visit: &Visit, name: &str, kind: &Value) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Jobs by state" { table {
            caption { "Jobs by state" }
            thead { tr { @for (state, _) in STATES { th.number scope="col" { (state) } } } }
            tbody { tr { @for (state, _) in STATES { (jobs_in(visit, state, &kind["jobs"], &format!("kind:{name}"))) } } }
        } }
    }
}

/// How long each took, the shortest first.
fn spans(jobs: &[Value]) -> Vec<f64> {
    let took = |job: &Value| between(text(job, "started_at"), text(job, "finished_at"));
    let mut spans: Vec<f64> = jobs.iter().filter_map(took).collect();
    spans.sort_by(f64::total_cmp);
    spans
}

fn within(spans: &[f64], share: f64) -> Option<f64> {
    let at = (spans.len() as f64 * share).ceil() as usize;
    spans.get(at.max(1) - 1).copied()
}

/// The errors of the jobs that failed last, and of how many in all.
fn failures(visit: &Visit, name: &str, jobs: &[Value], failed: u64) -> Markup {
    let (sorts, looked_at) = (sorted(jobs), jobs.len() as u64);
    html! {
        table {
            caption { "Errors"
                @if looked_at > 0 && looked_at < failed { " of the last " (count(looked_at)) " of " (count(failed)) " failed jobs" }
                @else if looked_at > 0 { " of all failed jobs" } }
            thead { tr { th scope="col" { "Error" } th.number scope="col" { "Jobs" } th scope="col" { "Last seen" } } }
            tbody {
                @for (says, found) in sorts.iter().take(SORTS) {
                    @let search = format!("kind:{name} state:failed{}", searched(says));
                    tr {
                        td { a href=(visit.at(&format!("jobs?q={}", encoded(&search)))) { (says) } }
                        td.number { (found.len()) }
                        td { (time(visit, text(found[0], "finished_at"))) }
                    }
                }
                @if sorts.is_empty() { tr { td.faint colspan="3" { "No failed jobs." } } }
            }
        }
    }
}

/// Failures that are alike together, those that are most first. What differs from job to job is mostly a number.
fn sorted(jobs: &[Value]) -> Vec<(String, Vec<&Value>)> {
    let mut sorts: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for job in jobs {
        let says = job["error"]["detail"].as_str().unwrap_or("(no message)");
        sorts.entry(alike(says)).or_default().push(job);
    }
    let mut sorts: Vec<_> = sorts.into_values().map(|found| (first_line(found[0]), found)).collect();
    sorts.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    sorts
}

fn first_line(job: &Value) -> String {
    let says = job["error"]["detail"].as_str().unwrap_or("(no message)");
    says.lines().next().unwrap_or_default().chars().take(LETTERS).collect()
}

/// A failure without its numbers, however many digits they have.
fn alike(says: &str) -> String {
    let line = says.lines().next().unwrap_or_default();
    let mut alike: Vec<char> =
        line.chars().take(LETTERS).map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    alike.dedup_by(|next, before| *next == '0' && *before == '0');
    alike.into_iter().collect()
}

/// The terms that find a sort of failures: its longest pieces between the numbers, in which jobs differ.
fn searched(says: &str) -> String {
    let is_left_out = |letter: char| letter.is_ascii_digit() || matches!(letter, '"' | '\\');
    let mut pieces: Vec<&str> =
        says.split(is_left_out).map(str::trim).filter(|piece| !piece.is_empty()).collect();
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.chars().count()));
    pieces.truncate(PIECES);
    if pieces.is_empty() {
        // The piece is only a number.
        pieces.extend(says.split(['"', '\\']).find(|piece| !piece.is_empty()));
    }
    pieces.iter().map(|piece| format!(" error:\"{piece}\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_differ_in_numbers_are_of_one_sort() {
        let failed = |says: &str| serde_json::json!({ "error": { "detail": says } });
        let jobs = [
            failed("timed out after 31 s"),
            failed("no such user"),
            failed("timed out after 7 s\nmore"),
            failed("timed out after 29 s"),
        ];
        let sorts = sorted(&jobs);
        assert_eq!(sorts.len(), 2, "{sorts:?}");
        assert_eq!((sorts[0].0.as_str(), sorts[0].1.len()), ("timed out after 31 s", 3));
    }

    #[test]
    fn a_sort_of_failures_is_searched_for_by_all_that_is_alike() {
        assert_eq!(searched("timed out after 31 s"), " error:\"timed out after\" error:\"s\"");
        assert_eq!(searched("row 1842: no such column"), " error:\": no such column\" error:\"row\"");
        assert_eq!(searched("no \"user\""), " error:\"user\" error:\"no\"");
        assert_eq!(searched("42"), " error:\"42\"");
    }

    #[test]
    fn spans_are_told_by_share() {
        assert_eq!(within(&[], 0.5), None);
        assert_eq!(within(&[1.0], 0.95), Some(1.0));
        assert_eq!(
            (within(&[1.0, 2.0, 3.0, 4.0], 0.5), within(&[1.0, 2.0, 3.0, 4.0], 0.95)),
            (Some(2.0), Some(4.0))
        );
    }
}
