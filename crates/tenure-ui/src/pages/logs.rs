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
const KEPT: usize = tenure::limits::LOG_LINES as usize;

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
        let path = format!("/v1/jobs/{}/logs?delivery={delivery}", encoded(id));
        if !all {
            // One more tells whether there are earlier ones.
            let mut lines = some(visit, &format!("{path}&tail={}", SHOWN + 1)).await?.0;
            let too_many = lines.len().saturating_sub(SHOWN);
            lines.drain(..too_many);
            return Ok(Self { delivery, lines, is_cut: too_many > 0 });
        }
        let (mut lines, mut behind) = (Vec::new(), String::new());
        while lines.len() < KEPT {
            let (more, next) = some(visit, &format!("{path}&limit={PAGE}{behind}")).await?;
            let is_last = more.len() < PAGE;
            lines.extend(more);
            if is_last {
                break;
            }
            behind = format!("&after={}", encoded(&next));
        }
        Ok(Self { delivery, lines, is_cut: false })
    }
}

/// Some lines, and where it goes on.
async fn some(visit: &Visit, path: &str) -> Result<(Vec<Value>, String), Trouble> {
    let mut found = visit.get(path).await?;
    let next = text(&found, "next_after").to_owned();
    let Value::Array(lines) = found["items"].take() else { return Ok((Vec::new(), next)) };
    Ok((lines, next))
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
pub(super) fn clock(visit: &Visit, at: &str) -> String {
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
