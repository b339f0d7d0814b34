//! What pages are made of.

use std::io;

use maud::{Markup, html};
use serde_json::Value;
use tenure::Timestamp;
use tenure::schedule::Zone;

use crate::asking::{Trouble, encoded};
use crate::likes::by_clock;
use crate::tree::large;
use crate::visit::Visit;

/// The states of jobs in the order in which they are shown, each with its sign.
pub(crate) const STATES: [(&str, &str); 7] = [
    ("scheduled", "◷"),
    ("blocked", "⊘"),
    ("queued", "○"),
    ("running", "▶"),
    ("succeeded", "✓"),
    ("failed", "✕"),
    ("cancelled", "–"),
];

/// How apps, and jobs whose workers are gone, stand beside that, each with its sign.
const STANDINGS: [(&str, &str); 11] = [
    ("unreadable", "✕"),
    ("ready", "○"),
    ("starting", "▷"),
    ("resting", "◷"),
    ("standing_by", "◌"),
    ("stopping", "■"),
    ("stopped", "Ⅱ"),
    ("wrong", "✕"),
    ("lost", "✕"),
    ("lapsed", "◷"),
    ("not_responding", "◷"),
];

/// How much of an id is shown before and behind what is left out.
const HEAD: usize = 13;
const TAIL: usize = 4;

/// The text of a field, empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A list; empty if there is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// State as sign, word and colour.
pub(crate) fn state(name: &str) -> Markup {
    let known = STATES.iter().chain(&STANDINGS).find(|(known, _)| *known == name);
    let sign = known.map_or("·", |(_, sign)| sign);
    let words = match name {
        "lapsed" => "lease expired".to_owned(),
        "resting" => "waiting to restart".to_owned(),
        "standing_by" => "standby".to_owned(),
        "wrong" => "cannot run".to_owned(),
        name => name.replace('_', " "),
    };
    html! { span class={ "state " (name) } { span aria-hidden="true" { (sign) } " " (words) } }
}

/// How a job stands: one whose worker is gone is called so, whatever it was told to be last.
pub(crate) fn standing(job: &Value) -> &str {
    if job["lease"]["lapsed"] == true { "lapsed" } else { text(job, "state") }
}

/// An instant: how far away, and when exactly.
pub(crate) fn time(visit: &Visit, at: &str) -> Markup {
    time_in(visit, &visit.likes.zone, at)
}

/// The same by the clocks of a zone.
pub(crate) fn time_in(visit: &Visit, zone: &Zone, at: &str) -> Markup {
    let Ok(instant) = at.parse::<Timestamp>() else { return html! { span.faint { "–" } } };
    let now = visit.ui.tenure.now();
    let said = if instant > now {
        format!("in {}", span(instant.since(now).as_secs_f64()))
    } else {
        format!("{} ago", span(now.since(instant).as_secs_f64()))
    };
    html! { time datetime=(at) title=(by_clock(zone, at)) data-ago { (said) } }
}

/// A length of time in a few letters.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => "under 1 ms".to_owned(),
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// The seconds from one instant to another.
pub(crate) fn between(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (from.parse::<Timestamp>().ok()?, to.parse::<Timestamp>().ok()?);
    Some(to.since(from).as_secs_f64())
}

/// A number that people can read.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| str::from_utf8(part).ok()).collect();
    groups.join(",")
}

/// How many jobs are in a state, leading to them.
pub(crate) fn jobs_in(visit: &Visit, name: &str, jobs: &Value, search: &str) -> Markup {
    let number = jobs[name].as_u64().unwrap_or_default();
    if number == 0 {
        return html! { td.number.faint { "0" } };
    }
    let to = visit.at(&format!("jobs?state={name}&q={}", encoded(search)));
    html! { td.number { a href=(to) class={ "count " (name) } { (count(number)) } } }
}

/// What stands in each form, so that it is known for one of ours.
pub(crate) fn proof(visit: &Visit) -> Markup {
    html! { input type="hidden" name="token" value=(visit.form_token().unwrap_or_default()); }
}

/// A button that does something.
pub(crate) fn button(visit: &Visit, to: &str, label: &str, class: &str) -> Markup {
    html! {
        form.inline method="post" action=(visit.at(to)) {
            (proof(visit))
            button class=(class) data-does=(to.rsplit('/').next().unwrap_or_default()) { (label) }
        }
    }
}

/// A button that does something with what is said beside.
pub(crate) fn button_with(visit: &Visit, to: &str, label: &str, said: &[(&str, &str)]) -> Markup {
    html! {
        form.inline method="post" action=(visit.at(to)) {
            (proof(visit))
            @for (name, value) in said { input type="hidden" name=(name) value=(value); }
            button data-does=(to.rsplit('/').next().unwrap_or_default()) { (label) }
        }
    }
}

/// A part of a page, or why it could not be read: what could not be read is not told to be empty.
pub(crate) fn part(read: &Result<Value, Trouble>, shown: impl FnOnce(&Value) -> Markup) -> Markup {
    match read {
        Ok(read) => shown(read),
        Err(trouble) => unread(trouble),
    }
}

/// What stands where something could not be read.
pub(crate) fn unread(trouble: &Trouble) -> Markup {
    html! { p.wrong { "Could not load this part: " (trouble.detail) } }
}

/// A text in which what stands between backticks is code.
pub(crate) fn prose(text: &str) -> Markup {
    html! { @for (at, part) in text.split('`').enumerate() {
        @if at % 2 == 1 { code { (part) } } @else { (part) }
    } }
}

/// What stands where there is nothing to show.
pub(crate) fn empty(title: &str, hint: &str) -> Markup {
    html! { div.empty { h2 { (title) } p { (prose(hint)) } } }
}

/// Where the documentation shows how to enqueue and run a first job.
const FIRST_JOB: &str = "https://github.com/tenure-rs/tenure/blob/main/docs/guide/first-job.md";

/// Shown in place of jobs while there are none: the first commands to type.
pub(crate) fn no_jobs(visit: &Visit, title: &str, hint: &str) -> Markup {
    let is_usual = matches!(visit.server.as_str(), "http://127.0.0.1:8368" | "http://localhost:8368");
    let to = if is_usual { String::new() } else { format!(" --url {}", visit.server) };
    html! {
        div.empty {
            h2 { (title) }
            @if !hint.is_empty() { p { (prose(hint)) } }
            p { "Enqueue a job, and start a worker that runs a program for each job:" }
            p { code { "tenure submit hello '{\"to\": \"world\"}'" (to) } }
            p { code { "tenure worker" (to) " --exec cat" } }
            p { a href=(FIRST_JOB) rel="noreferrer" { "Guide: your first job" } }
        }
    }
}

/// An id where there is little room: when it was made, by which jobs of one schedule differ, and its end, by which those of one
/// moment do. All of it is there to be copied, and a search takes it as it is shown.
pub(crate) fn short(id: &str) -> Markup {
    let (head, tail) = (HEAD.min(id.len()), id.len().saturating_sub(TAIL));
    match (id.get(..head), id.get(head..tail), id.get(tail..)) {
        (Some(head), Some(middle), Some(tail)) if !middle.is_empty() => {
            html! { (head) span.cut { (middle) } (tail) }
        }
        _ => html! { (id) },
    }
}

/// An id as a whole, with a button that copies it.
pub(crate) fn whole_id(name: &str, id: &str) -> Markup {
    html! { p.whole { span.id #(name) { (id) } " " button.quiet type="button" data-copy=(name) { "Copy" span.sr { " the ID" } } } }
}

/// JSON of a field of a document, readable if it is not too large.
pub(crate) fn json_of(document: &Value, field: &str) -> Markup {
    match large(document, field) {
        Some(text) => too_large(text),
        None => json(&document[field]),
    }
}

/// JSON, readable; as text.
pub(crate) fn json(value: &Value) -> Markup {
    if value.is_null() {
        return html! { p.faint { "none" } };
    }
    match readable(value) {
        Some(text) => html! { pre tabindex="0" { code { (text) } } },
        None => too_large(&value.to_string()),
    }
}

/// JSON on one line, because it would be far longer with line breaks.
fn too_large(text: &str) -> Markup {
    html! { p.faint { "Too many values to format." } pre tabindex="0" { code { (text) } } }
}

/// Longest JSON with line breaks. Values in many lists within each other take a line each, with an indent of 120 blanks.
const READABLE_BYTES: usize = 1024 * 1024;

/// Returns JSON with line breaks, unless it is too long.
fn readable(value: &Value) -> Option<String> {
    let mut text = Bounded(Vec::new());
    serde_json::to_writer_pretty(&mut text, value).ok()?;
    String::from_utf8(text.0).ok()
}

/// Text that may become as long as readable JSON.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > READABLE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_line_breaks_make_far_longer_is_shown_without_them() {
        let deep = |values: usize| {
            let list = serde_json::json!(vec![0; values]);
            (0..60).fold(list, |inner, _| Value::Array(vec![inner]))
        };
        let shown = json(&deep(20_000)).into_string();
        assert!(shown.contains("Too many values to format.") && shown.len() < 50_000, "{}", shown.len());
        let shown = json(&deep(20)).into_string();
        assert!(shown.contains("[\n  [\n") && !shown.contains("Too many"), "{shown}");
    }
}
