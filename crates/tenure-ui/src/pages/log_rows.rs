//! Log lines as HTML. A line that changes its color with each letter is six times as long in HTML. So the HTML on a page has a
//! bound, and counts as memory of the client.

use std::collections::VecDeque;

use maud::{Markup, Render, html};

use crate::ansi::pieces;
use crate::asking::Trouble;
use crate::said::upright;
use crate::visit::Visit;

/// Most HTML of the lines of one log on a page.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// HTML that does not count, so that a short log is shown in any case.
const FREE_BYTES: usize = 4 * 1024;
/// HTML that starts to count at once.
const STEP_BYTES: usize = 64 * 1024;
/// Copies while a page is put together: the lines, and the part of the page that contains them.
const COPIES: usize = 2;

/// Streams of a program, as their lines begin, and what a person calls them.
pub(super) const STREAMS: [(&str, &str); 3] = [("out", "stdout"), ("err", "stderr"), ("run", "run events")];

/// Lines of a page, one after another.
pub(super) struct Rows {
    rows: VecDeque<String>,
    bytes: usize,
    /// Bytes whose memory was taken.
    counted: usize,
}

impl Rows {
    pub(super) const fn new() -> Self {
        Self { rows: VecDeque::new(), bytes: 0, counted: FREE_BYTES }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a line behind the others, and answers `false` if the page has no room for it. The first line always has.
    pub(super) fn add(&mut self, visit: &Visit, row: Markup) -> Result<bool, Trouble> {
        let row = upright(row.into_string());
        if !self.rows.is_empty() && self.bytes + row.len() > MOST_BYTES {
            return Ok(false);
        }
        self.push(visit, row)?;
        Ok(true)
    }

    /// Adds a line behind the others, and drops the first lines beyond this number and those that the page has no room for.
    /// Answers `true` if it dropped any.
    pub(super) fn add_last(&mut self, visit: &Visit, row: Markup, most: usize) -> Result<bool, Trouble> {
        self.push(visit, upright(row.into_string()))?;
        let before = self.rows.len();
        while self.rows.len() > 1 && (self.rows.len() > most || self.bytes > MOST_BYTES) {
            self.bytes -= self.rows.pop_front().map_or(0, |row| row.len());
        }
        Ok(self.rows.len() < before)
    }

    fn push(&mut self, visit: &Visit, row: String) -> Result<(), Trouble> {
        let bytes = self.bytes + row.len();
        if bytes > self.counted {
            let more = (bytes - self.counted).next_multiple_of(STEP_BYTES);
            visit.take(COPIES * more)?;
            self.counted += more;
        }
        self.bytes = bytes;
        self.rows.push_back(row);
        Ok(())
    }
}

impl Render for Rows {
    fn render_to(&self, page: &mut String) {
        page.reserve(self.bytes);
        self.rows.iter().for_each(|row| page.push_str(row));
    }
}

/// A line in the colors that it brings, or in that of how bad it is.
pub(super) fn colourful(line: &str) -> Markup {
    let pieces = pieces(line);
    let level = if pieces.iter().any(|piece| piece.classes().is_some()) { "" } else { level_of(line) };
    let usual = || (!level.is_empty()).then(|| level.to_owned());
    html! { @for piece in pieces {
        @match piece.classes().or_else(usual) {
            Some(classes) => span class=(classes) { (piece.text) },
            None => (piece.text),
        }
    } }
}

/// The stream that a line is of, if it is one of a program.
pub(super) fn stream_of(line: &str) -> Option<&str> {
    let (stream, _) = line.split_once(": ")?;
    STREAMS.iter().map(|(known, _)| *known).find(|known| *known == stream)
}

/// The severity that a line names, in the words that programs use.
fn level_of(line: &str) -> &'static str {
    const WORST: [(&str, &[&str]); 2] =
        [("l-error", &["error", "fatal", "panic", "critical"]), ("l-warn", &["warn", "warning"])];
    let words = line.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let mut words = words.take(6).map(str::to_lowercase);
    let found = words.find_map(|word| {
        WORST.iter().find(|(_, known)| known.contains(&word.as_str())).map(|(class, _)| *class)
    });
    found.unwrap_or(if stream_of(line) == Some("err") { "l-err" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_bad_a_line_is_stands_in_its_first_words() {
        assert_eq!(level_of("2026-11-24 ERROR no such file"), "l-error");
        assert_eq!(level_of("out: [warn] slow"), "l-warn");
        assert_eq!(level_of("err: something"), "l-err");
        assert_eq!(level_of("all is well, and there was no mistake or error"), "");
    }

    #[test]
    fn a_line_is_one_span_however_many_control_characters_are_in_it() {
        let line = format!("error{}", "\u{7f}a".repeat(2_000));
        let shown = colourful(&line).into_string();
        assert_eq!(shown, format!("<span class=\"l-error\">error{}</span>", "a".repeat(2_000)));
        assert_eq!(colourful("a\u{85}\u{1b}[0mb\u{1b}[1mc").into_string(), "ab<span class=\"a1\">c</span>");
    }
}
