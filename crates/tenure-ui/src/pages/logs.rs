//! What an attempt has logged, from its end.

use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use crate::ansi::pieces;
use crate::asking::{Trouble, encoded};
use crate::layout::failed;
use crate::parts::text;
use crate::visit::Visit;

/// Lines that are shown unless all are wanted.
const SHOWN: usize = 200;
/// Lines that are asked for at once.
const PAGE: usize = 1_000;
/// Lines that are kept of an attempt at most.
const KEPT: u64 = tenure::limits::LOG_LINES as u64;

/// Lines of one attempt.
pub(super) struct Lines {
    /// Which grant of the job they are from.
    delivery: u64,
    lines: Vec<Value>,
    /// Whether there are earlier ones.
    is_cut: bool,
}

impl Lines {
    /// The last lines of an attempt, or all of them.
    pub(super) async fn of(visit: &Visit, id: &str, delivery: u64, all: bool) -> Result<Self, Trouble> {
        let first = some(visit, id, delivery, 0, PAGE).await?;
        let mut lines = first;
        let mut from = 0;
        if lines.len() == PAGE && !all {
            let last = last(visit, id, delivery).await?;
            from = last.saturating_sub(SHOWN as u64);
            lines = some(visit, id, delivery, from, SHOWN).await?;
        } else {
            while lines.len() as u64 <= KEPT && lines.len() % PAGE == 0 && !lines.is_empty() {
                let more = some(visit, id, delivery, lines.len() as u64, PAGE).await?;
                if more.is_empty() {
                    break;
                }
                lines.extend(more);
            }
        }
        let too_many = if all { 0 } else { lines.len().saturating_sub(SHOWN) };
        lines.drain(..too_many);
        Ok(Self { delivery, lines, is_cut: from > 0 || too_many > 0 })
    }
}

/// Lines behind one of them.
async fn some(
    visit: &Visit,
    id: &str,
    delivery: u64,
    behind: u64,
    most: usize,
) -> Result<Vec<Value>, Trouble> {
    let path = format!("/v1/jobs/{}/logs?after={delivery}.{behind}&limit={most}", encoded(id));
    let mut found = visit.get(&path).await?;
    let Value::Array(lines) = found["items"].take() else { return Ok(Vec::new()) };
    // Those of the next attempt come behind the last one.
    Ok(lines.into_iter().take_while(|line| line["delivery"].as_u64() == Some(delivery)).collect())
}

/// The number of the last line, found by halves: nobody reads ten thousand lines to show two hundred.
async fn last(visit: &Visit, id: &str, delivery: u64) -> Result<u64, Trouble> {
    let (mut there, mut beyond) = (PAGE as u64, KEPT + 1);
    while there + 1 < beyond {
        let middle = there.midpoint(beyond);
        if some(visit, id, delivery, middle - 1, 1).await?.is_empty() {
            beyond = middle;
        } else {
            there = middle;
        }
    }
    Ok(there)
}

/// The lines, and the way to those that are not shown.
pub(super) fn shown(visit: &Visit, id: &str, attempts: &[Value], lines: &Lines) -> Markup {
    let of = |delivery: u64, more: &str| visit.at(&format!("jobs/{}?log={delivery}{more}", encoded(id)));
    html! {
        div.bar {
            h2 { "Logs" }
            @if attempts.len() > 1 {
                nav.tabs aria-label="Logs of attempts" {
                    @for attempt in attempts {
                        @let delivery = attempt["delivery"].as_u64().unwrap_or_default();
                        a href=(of(delivery, "")) aria-current=[(delivery == lines.delivery).then_some("true")] { "attempt " (attempt["attempt"]) }
                    }
                }
            }
            @if !lines.lines.is_empty() {
                span.push {
                    @if lines.is_cut { a href=(of(lines.delivery, "&lines=all")) { "Earlier lines" } " · " }
                    a href=(visit.at(&format!("jobs/{}/logs.txt?log={}", encoded(id), lines.delivery))) { "Download" }
                }
            }
        }
        @if lines.lines.is_empty() { p.faint { "It has logged nothing." } }
        @else {
            pre.logs data-tail tabindex="0" role="region" aria-label="Log lines" { @for line in &lines.lines {
                span.faint { (clock(visit, text(line, "at"))) } " "
                @for piece in pieces(text(line, "text")) { span class=[piece.classes()] { (piece.text) } }
                "\n"
            } }
        }
    }
}

/// The time of day is enough: the day stands with the attempt.
fn clock(visit: &Visit, at: &str) -> String {
    visit.exact(at).chars().skip(11).take(8).collect()
}

/// `GET jobs/{id}/logs.txt`
pub(crate) async fn raw(visit: Visit, Path(id): Path<String>) -> Response {
    let delivery = visit.said("log").parse().unwrap_or(1);
    let lines = match Lines::of(&visit, &id, delivery, true).await {
        Ok(lines) => lines,
        Err(trouble) => return failed(&visit, trouble).await,
    };
    let told: String =
        lines.lines.iter().map(|line| format!("{} {}\n", text(line, "at"), text(line, "text"))).collect();
    let kind = (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned());
    let letters: String =
        id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    let kept = (CONTENT_DISPOSITION, format!("attachment; filename=\"{letters}-{delivery}.log\""));
    ([kind, kept], told).into_response()
}

/// The attempt whose lines are wanted: the one that is said, or the last.
pub(super) fn wanted(visit: &Visit, attempts: &[Value]) -> u64 {
    let last = attempts.last().and_then(|attempt| attempt["delivery"].as_u64()).unwrap_or(1);
    visit.said("log").parse().unwrap_or(last)
}
