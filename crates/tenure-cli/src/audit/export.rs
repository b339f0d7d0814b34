//! `tenure audit export`: all entries, page by page.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::value::RawValue;
use tenure::Timestamp;

use crate::client::{Ask, Patience, Trouble, escaped};
use crate::exit::Failure;
use crate::files;
use crate::span::since;
use crate::with::With;

/// Entries of a page.
const PAGE: usize = 500;
/// Priorities of syslog lines: facility 13 (log audit), with severity 6 (informational) and 4 (warning).
const INFORMATIONAL: u8 = 13 * 8 + 6;
const WARNING: u8 = 13 * 8 + 4;

/// Arguments of `tenure audit export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Only entries since this time: 2026-03-28T12:00:00Z, or 30d for 30 days ago
    #[arg(long, value_name = "SPAN|INSTANT", value_parser = since)]
    since: Option<Timestamp>,
    /// Only entries before this time
    #[arg(long, value_name = "SPAN|INSTANT", value_parser = since)]
    until: Option<Timestamp>,
    /// Format of the lines
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: Format,
    /// Write to this file in place of standard output; only you can read it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A JSON object a line
    Jsonl,
    /// RFC 5424 lines with the JSON object as the message
    Syslog,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// The fields of an entry that a syslog line needs.
#[derive(Deserialize)]
struct Outcome {
    at: String,
    status: u16,
}

pub(super) fn run(export: &Export, with: &mut With) -> Result<(), Failure> {
    let Some(path) = &export.out else {
        return pages(export, with, |with, line| with.out.line(line));
    };
    let refuse = |source| Failure::Output { path: path.clone(), source };
    // Never into an existing file: it could be open to other users.
    let file: File = files::private_file().create_new(true).open(path).map_err(refuse)?;
    let mut file = BufWriter::new(file);
    pages(export, with, |_, line| writeln!(file, "{line}").map_err(refuse))?;
    file.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_all()).map_err(refuse)
}

/// Hands over each line, reading a page at a time.
fn pages(
    export: &Export,
    with: &mut With,
    mut write: impl FnMut(&mut With, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let strange = |error: serde_json::Error| Failure::from(Trouble::strange(&error.to_string()));
    let (mut cursor, mut patience) = (None::<String>, Patience::new());
    loop {
        let path = path(export, cursor.as_deref());
        let answer = match with.client.ask(&Ask::get(path)) {
            Ok(answer) => answer,
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        let page: Page = serde_json::from_slice(&answer.body).map_err(strange)?;
        for item in &page.items {
            let line = line(export.format, item.get()).map_err(strange)?;
            write(with, &line)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn path(export: &Export, cursor: Option<&str>) -> String {
    let mut path = format!("/v1/audit?order=oldest&limit={PAGE}");
    let times =
        [("from", export.since), ("to", export.until)].map(|(name, at)| (name, at.map(|at| at.to_string())));
    for (name, value) in times.into_iter().chain([("cursor", cursor.map(str::to_owned))]) {
        if let Some(value) = value {
            path = format!("{path}&{name}={}", escaped(&value));
        }
    }
    path
}

fn line(format: Format, entry: &str) -> serde_json::Result<String> {
    match format {
        Format::Jsonl => Ok(entry.to_owned()),
        Format::Syslog => {
            let Outcome { at, status } = serde_json::from_str(entry)?;
            let priority = if status >= 400 { WARNING } else { INFORMATIONAL };
            Ok(format!("<{priority}>1 {at} - tenure - audit - {entry}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syslog_line_has_the_time_the_severity_and_the_entry() {
        let entry = r#"{"number":7,"at":"2026-03-28T12:00:00.000000Z","who":"ada","status":403}"#;
        let syslog = line(Format::Syslog, entry).unwrap();
        assert_eq!(syslog, format!("<108>1 2026-03-28T12:00:00.000000Z - tenure - audit - {entry}"));
        let good = entry.replace("403", "200");
        assert!(line(Format::Syslog, &good).unwrap().starts_with("<110>1 2026-"));
        assert_eq!(line(Format::Jsonl, entry).unwrap(), entry, "byte for byte, for the hash");
    }

    #[test]
    fn a_page_is_asked_for_by_time_and_cursor() {
        let at = "2026-03-28T12:00:00Z".parse().unwrap();
        let export = Export { since: Some(at), until: None, format: Format::Jsonl, out: None };
        let expected = "/v1/audit?order=oldest&limit=500&from=2026-03-28T12%3A00%3A00.000000Z&cursor=7";
        assert_eq!(path(&export, Some("7")), expected);
    }
}
