//! What an attempt has logged, from its end.

use std::io;
use std::mem;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Path;
use axum::http::Method;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use maud::{Markup, html};
use serde_json::Value;

use super::log_rows::{Rows, STREAMS, colourful, stream_of};
use crate::ansi::pieces;
use crate::asking::{Held, Trouble, encoded};
use crate::layout::failed;
use crate::parts::text;
use crate::visit::Visit;

/// Lines that are shown unless all are wanted.
const SHOWN: usize = 200;
/// Lines that are asked for at once.
const PAGE: usize = 1_000;
/// Lines that a download asks for at once. It has the text of two pages and one tree at the same time.
const DOWNLOADED: usize = 500;
/// Lines that are kept of an attempt at most.
const KEPT: usize = tenure::limits::LOG_LINES as usize;

/// Which lines somebody looks for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    /// Part of the line, however it is written.
    words: String,
    /// `out`, `err` or `run`; all if it is empty.
    stream: String,
}

impl Sought {
    pub(super) fn of(visit: &Visit) -> Self {
        let stream = visit.said("stream");
        let is_known = STREAMS.iter().any(|(known, _)| *known == stream);
        Self { words: visit.said("find"), stream: if is_known { stream } else { String::new() } }
    }

    fn is_all(&self) -> bool {
        self.words.is_empty() && self.stream.is_empty()
    }

    fn means(&self, line: &str) -> bool {
        let is_of_it = self.stream.is_empty() || stream_of(line) == Some(self.stream.as_str());
        // What a person reads is searched, without the codes of colours.
        let said = || pieces(line).into_iter().map(|piece| piece.text).collect::<String>().to_lowercase();
        is_of_it && (self.words.is_empty() || said().contains(&self.words.to_lowercase()))
    }
}

/// Lines of one attempt.
pub(super) struct Lines {
    /// Which grant of the job they are from.
    delivery: u64,
    rows: Rows,
    /// Whether there are earlier ones.
    is_cut: bool,
    /// Number of the line after which the page was full.
    next: Option<u64>,
    /// How many were looked through, if some were sought.
    through: Option<usize>,
}

impl Lines {
    /// Whether there is anything to look through.
    pub(super) fn has_some(&self) -> bool {
        !self.rows.is_empty() || self.through.is_some_and(|through| through > 0)
    }

    /// The last lines of an attempt.
    pub(super) async fn last(visit: &Visit, id: &str, delivery: u64) -> Result<Self, Trouble> {
        // A further line shows that there are earlier ones.
        let tail = format!("{}&tail={}", path(id, delivery), SHOWN + 1);
        let page = some(visit, &tail, SHOWN + 1).await?;
        let mut found = Self { delivery, rows: Rows::new(), is_cut: false, next: None, through: None };
        for line in &page.lines {
            found.is_cut |= found.rows.add_last(visit, row(visit, line), SHOWN)?;
        }
        Ok(found)
    }

    /// Of all lines of an attempt the last of those that are sought, or all of them that a page has room for.
    pub(super) async fn sought(
        visit: &Visit,
        id: &str,
        delivery: u64,
        sought: &Sought,
        all: bool,
    ) -> Result<Self, Trouble> {
        if sought.is_all() && !all {
            return Self::last(visit, id, delivery).await;
        }
        let begin: Option<u64> = visit.said("after").parse().ok().filter(|_| all);
        let mut after = Some(begin.map_or_else(String::new, |line| format!("{delivery}.{line}")));
        let mut reading =
            Reading { sought, all, rows: Rows::new(), is_cut: begin.is_some(), last: 0, through: 0 };
        let mut is_full = false;
        while let Some(last) = after.filter(|_| reading.through < KEPT && !is_full) {
            let page = after_line(visit, (id, delivery), &last, PAGE).await?;
            is_full = !reading.take(visit, &page.lines)?;
            after = page.after;
        }
        let Reading { rows, is_cut, last, through, .. } = reading;
        let through = Some(through).filter(|_| !sought.is_all());
        Ok(Self { delivery, rows, is_cut, next: is_full.then_some(last), through })
    }
}

/// Lines that are sought page by page. Only those that were found are kept, and only as HTML.
struct Reading<'s> {
    sought: &'s Sought,
    all: bool,
    rows: Rows,
    is_cut: bool,
    /// Number of the last line that was looked at.
    last: u64,
    through: usize,
}

impl Reading<'_> {
    /// Looks through more lines, and answers `false` once a line has no room.
    fn take(&mut self, visit: &Visit, lines: &[Value]) -> Result<bool, Trouble> {
        for line in lines {
            if self.sought.means(text(line, "text")) {
                let row = row(visit, line);
                if !self.all {
                    self.is_cut |= self.rows.add_last(visit, row, SHOWN)?;
                } else if !self.rows.add(visit, row)? {
                    return Ok(false);
                }
            }
            self.last = line["number"].as_u64().unwrap_or_default();
            self.through += 1;
        }
        Ok(true)
    }
}

/// Some lines.
struct Page {
    lines: Vec<Value>,
    /// Position of the next page, if there is one.
    after: Option<String>,
    held: Held,
}

fn path(id: &str, delivery: u64) -> String {
    format!("/v1/jobs/{}/logs?delivery={delivery}", encoded(id))
}

/// The page after a line, or the first one.
async fn after_line(
    visit: &Visit,
    (id, delivery): (&str, u64),
    after: &str,
    most: usize,
) -> Result<Page, Trouble> {
    let after = if after.is_empty() { String::new() } else { format!("&after={}", encoded(after)) };
    some(visit, &format!("{}&limit={most}{after}", path(id, delivery)), most).await
}

async fn some(visit: &Visit, path: &str, most: usize) -> Result<Page, Trouble> {
    let (mut found, held) = visit.fetch(Method::GET, path, String::new()).await?;
    let next = text(&found, "next_after").to_owned();
    let lines = found["items"].as_array_mut().map(mem::take).unwrap_or_default();
    let after = (lines.len() >= most).then_some(next);
    Ok(Page { lines, after, held })
}

/// The lines, and the way to those that are not shown.
pub(super) fn shown(visit: &Visit, id: &str, attempts: &[Value], lines: &Lines, title: &str) -> Markup {
    let sought = Sought::of(visit);
    let kept = if sought.is_all() {
        String::new()
    } else {
        format!("&find={}&stream={}", encoded(&sought.words), sought.stream)
    };
    let of = |delivery: u64, more: &str| {
        visit.at(&format!("jobs/{}?log={delivery}{kept}{more}#logs", encoded(id)))
    };
    html! {
        div.bar #logs {
            h2 { (title) }
            @if attempts.len() > 1 {
                nav.tabs aria-label="Logs of attempts" {
                    @for attempt in attempts {
                        @let delivery = attempt["delivery"].as_u64().unwrap_or_default();
                        a href=(of(delivery, "")) aria-current=[(delivery == lines.delivery).then_some("true")] { "attempt " (attempt["attempt"]) }
                    }
                }
            }
            @if !lines.rows.is_empty() {
                span.push {
                    @if lines.is_cut { a href=(of(lines.delivery, "&lines=all")) { "Earlier lines" } " · " }
                    a href=(visit.at(&format!("jobs/{}/logs.txt?log={}", encoded(id), lines.delivery))) { "Download" }
                }
            }
        }
        @if let Some(through) = lines.through {
            p.faint { (lines.rows.len()) @if lines.is_cut || lines.next.is_some() { " or more" } " of " (through) " lines match. "
                a href=(visit.at(&format!("jobs/{}?log={}#logs", encoded(id), lines.delivery))) { "All lines" } }
        }
        @if lines.rows.is_empty() && lines.through.is_none() { p.faint { "No log lines." } }
        @else if !lines.rows.is_empty() {
            pre.logs data-tail=(lines.delivery) tabindex="0" role="region" aria-label="Log lines" { (lines.rows) }
        }
        @if let Some(next) = lines.next {
            p.more { a href=(of(lines.delivery, &format!("&lines=all&after={next}"))) { "Next lines" } }
        }
    }
}

/// A line, with the time of day.
fn row(visit: &Visit, line: &Value) -> Markup {
    html! {
        span data-line=(line["number"]) { span.faint { (clock(visit, text(line, "at"))) } " " (colourful(text(line, "text"))) "\n" }
    }
}

/// Where lines are sought: outside of what keeps itself up to date, so that nobody loses what he writes.
pub(super) fn search(visit: &Visit, id: &str, delivery: u64) -> Markup {
    let sought = Sought::of(visit);
    html! {
        form.search method="get" action={ (visit.at(&format!("jobs/{}", encoded(id)))) "#logs" } role="search" aria-label="Log lines" {
            input type="hidden" name="log" value=(delivery);
            label.sr for="find" { "Search log lines" }
            input #find name="find" type="search" value=(sought.words) placeholder="search log lines" autocomplete="off" spellcheck="false";
            label.sr for="stream" { "Stream" }
            select #stream name="stream" {
                option value="" { "all streams" }
                @for (stream, says) in STREAMS { option value=(stream) selected[sought.stream == stream] { (says) } }
            }
            button { "Search log" }
            button.quiet #follow type="button" hidden { "Following log" }
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
    let visit = Arc::new(visit);
    let first = match after_line(&visit, (&id, delivery), "", DOWNLOADED).await {
        Ok(page) => page,
        Err(trouble) => return failed(&visit, trouble).await,
    };
    let kind = (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned());
    let letters: String =
        id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    let kept = (CONTENT_DISPOSITION, format!("attachment; filename=\"{letters}-{delivery}.log\""));
    let pages = stream::try_unfold(Some(first), move |page| {
        let (visit, id) = (Arc::clone(&visit), id.clone());
        async move {
            let Some(Page { lines, after, held }) = page else { return Ok(None) };
            let written = written(&lines);
            drop(lines);
            // The text waits for the next page.
            let _held = held.shrink(written.len());
            let Some(after) = after else { return Ok(Some((written, None))) };
            let next = after_line(&visit, (&id, delivery), &after, DOWNLOADED).await;
            next.map(|next| Some((written, Some(next)))).map_err(|trouble| io::Error::other(trouble.detail))
        }
    });
    ([kind, kept], Body::from_stream(pages)).into_response()
}

/// Lines of a text file.
fn written(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{} {}\n", text(line, "at"), text(line, "text"))).collect()
}

/// The attempt whose lines are wanted: the one that is said, or the last.
pub(super) fn wanted(visit: &Visit, attempts: &[Value]) -> u64 {
    let last = attempts.last().and_then(|attempt| attempt["delivery"].as_u64()).unwrap_or(1);
    visit.said("log").parse().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sought_as_a_person_reads_them() {
        let sought =
            |words: &str, stream: &str| Sought { words: words.to_owned(), stream: stream.to_owned() };
        let coloured = "err: \u{1b}[31mTimed\u{1b}[0m out";
        assert!(sought("timed out", "").means(coloured) && sought("", "err").means(coloured));
        assert!(!sought("", "out").means(coloured) && !sought("[31m", "").means(coloured));
        assert!(!sought("", "err").means("errand: begun") && sought("", "run").means("run: ended with 0"));
    }
}
