//! `tenure job import`: the jobs of a file, one a line; to repeat it is harmless.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tenure::{Chance, Clock, JobId, SystemClock, Timestamp};

use super::With;
use crate::client::{Ask, Client, Patience, Trouble};
use crate::exit::Failure;
use crate::output::{counted, safe};
use crate::screen;

/// What a server takes at once.
const BATCH_JOBS: usize = 1_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024 - 1024;
/// Longest line that is read: no job is as large.
const LINE_BYTES: usize = BATCH_BYTES;

/// Arguments of `tenure job import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// File to read; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// UUID of this import, for a repeat [default: random, printed if the import stops]
    #[arg(long, value_name = "ID")]
    import_id: Option<JobId>,
    /// Line to start at
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from_line: u64,
}

/// Jobs that are sent at once, and the lines on which they stand.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: Vec<u64>,
}

/// What has become of an import so far.
#[derive(Default)]
struct Tally {
    accepted: usize,
    repeated: usize,
    bytes: u64,
}

#[derive(Deserialize)]
struct Answered {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    created: bool,
}

/// Where it stopped, and why.
struct Stopped {
    line: u64,
    why: Failure,
}

pub(super) fn run(import: &Import, with: &mut With) -> Result<(), Failure> {
    let own = import.import_id.unwrap_or_else(|| JobId::new(SystemClock.now(), Chance::from_system().bits()));
    let (file, size) = import.open()?;
    let again = |line: u64| {
        let file = safe::line(&import.file.to_string_lossy());
        format!(
            "continue with `tenure job import {file} --import-id {own} --from-line {line}`; no job is enqueued twice"
        )
    };
    with.goes.on(format!("accepted jobs stay; {}", again(import.from_line)));
    let mut tally = Tally::default();
    let quiet = with.out.quiet;
    match all(&with.client, file, (own, import.from_line), &mut tally, &Shown { size, quiet }) {
        Ok(()) => {
            with.out.tell(&format!(
                "{} accepted, {} already there",
                counted(tally.accepted as u64, "job"),
                tally.repeated
            ));
            Ok(())
        }
        Err(Stopped { line, why }) => {
            let done = tally.accepted + tally.repeated;
            screen::complain(&format!(
                "stopped at line {line} after {}; {}",
                counted(done as u64, "job"),
                again(line)
            ));
            Err(why)
        }
    }
}

impl Import {
    fn open(&self) -> Result<(Box<dyn BufRead>, Option<u64>), Failure> {
        if self.file.as_os_str() == "-" {
            return Ok((Box::new(BufReader::new(std::io::stdin())), None));
        }
        let refuse = |source| Failure::Input { path: self.file.clone(), source };
        let file = File::open(&self.file).map_err(refuse)?;
        let there = file.metadata().map_err(refuse)?;
        if there.is_dir() {
            return Err(refuse(std::io::ErrorKind::IsADirectory.into()));
        }
        let size = there.len();
        Ok((Box::new(BufReader::new(file)), Some(size)))
    }
}

/// Sends all lines, batch after batch; nothing is held that was sent.
fn all(
    client: &Client,
    mut file: Box<dyn BufRead>,
    (own, from): (JobId, u64),
    tally: &mut Tally,
    shown: &Shown,
) -> Result<(), Stopped> {
    let (mut batch, mut patience, mut line) = (Batch::default(), Patience::new(), Vec::new());
    for number in 1.. {
        line.clear();
        let read = file.by_ref().take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let stop = |why: Failure| Stopped { line: number, why };
        let read = read.map_err(|source| stop(Failure::System { what: "cannot read the file", source }))?;
        if read == 0 {
            break;
        }
        tally.bytes += read as u64;
        if number < from || line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let order =
            order(&line, own, number).map_err(|why| stop(Failure::Invalid(format!("line {number}: {why}"))));
        // What stands before a line that is wrong is not held back by it.
        if order.is_err() || !batch.has_room_for(order.as_ref().map_or(0, Vec::len)) {
            send(client, &mut batch, &mut patience, tally)?;
            shown.tell(tally);
        }
        batch.text.extend(order?);
        batch.text.push(b'\n');
        batch.lines.push(number);
    }
    send(client, &mut batch, &mut patience, tally)?;
    shown.end();
    Ok(())
}

impl Batch {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.lines.len() < BATCH_JOBS && self.text.len() + bytes < BATCH_BYTES
    }

    /// The line of the file that a refusal means; the first one if it means none.
    fn line_of(&self, trouble: &Trouble) -> u64 {
        let Trouble::Refused(refused) = trouble else { return self.lines.first().copied().unwrap_or(0) };
        let index = refused.index.or(refused.line.map(|line| line.saturating_sub(1)));
        let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        self.lines.get(index).or(self.lines.first()).copied().unwrap_or(0)
    }
}

/// Sends a batch until it is answered: under its ids that is harmless.
fn send(
    client: &Client,
    batch: &mut Batch,
    patience: &mut Patience,
    tally: &mut Tally,
) -> Result<(), Stopped> {
    if batch.lines.is_empty() {
        return Ok(());
    }
    let ask = Ask::post_lines("/v1/jobs/batch", std::mem::take(&mut batch.text)).repeatable();
    let answer = loop {
        match client.ask(&ask) {
            Ok(answer) => break answer,
            Err(trouble) => {
                let line = batch.line_of(&trouble);
                let _ = patience.may_be_done(&trouble);
                let refused = matches!(trouble, Trouble::Refused(_)) && !trouble.passes();
                if let Err(trouble) = patience.endure(trouble) {
                    let why = Failure::from(trouble);
                    let why = if refused { why.said_of(&format!("line {line}")) } else { why };
                    // All of the batch or nothing: it goes on where the batch began.
                    let line = batch.lines.first().copied().unwrap_or(line);
                    return Err(Stopped { line, why });
                }
            }
        }
    };
    patience.heard();
    let answered: Result<Answered, _> = serde_json::from_slice(&answer.body);
    let answered = answered.map_err(|error| Stopped {
        line: batch.lines.first().copied().unwrap_or(0),
        why: Trouble::strange(&error.to_string()).into(),
    })?;
    let created = answered.items.iter().filter(|item| item.created).count();
    tally.accepted += created;
    tally.repeated += answered.items.len() - created;
    batch.lines.clear();
    Ok(())
}

/// A line as it is sent: with an id.
fn order(line: &[u8], own: JobId, number: u64) -> Result<Vec<u8>, String> {
    if line.len() > LINE_BYTES {
        return Err(format!("longer than {LINE_BYTES} bytes"));
    }
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?.trim();
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)
        .map_err(|error| safe::line(&format!("not a JSON object, at column {}: {error}", error.column())))?;
    if fields.contains_key("id") {
        return Ok(text.as_bytes().to_vec());
    }
    let comma = if fields.is_empty() { "" } else { "," };
    let rest = text.strip_prefix('{').unwrap_or(text);
    Ok(format!("{{\"id\":\"{}\"{comma}{rest}", id_of(own, number)).into_bytes())
}

/// The id of the job on a line: as old as the import, and the same each time.
fn id_of(own: JobId, number: u64) -> JobId {
    let digest = Sha256::new().chain_update(own.as_bytes()).chain_update(number.to_be_bytes()).finalize();
    let bits = digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    JobId::new(own.made_at().unwrap_or(Timestamp::EPOCH), bits)
}

/// How far it has come, for people.
struct Shown {
    size: Option<u64>,
    quiet: bool,
}

impl Shown {
    fn tell(&self, tally: &Tally) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let percent = self.size.and_then(|size| (tally.bytes * 100).checked_div(size));
        let percent = percent.map_or_else(String::new, |percent| format!("{percent} %, "));
        screen::tell_over(&format!("{percent}{} jobs", tally.accepted + tally.repeated));
    }

    fn end(&self) {
        if !self.quiet && std::io::stderr().is_terminal() {
            screen::tell_over("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> JobId {
        "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10".parse().unwrap()
    }

    #[test]
    fn a_line_has_the_same_id_each_time_and_each_line_another_one() {
        let ids: std::collections::BTreeSet<_> =
            (1..1_000).map(|number| id_of(own(), number).to_string()).collect();
        assert_eq!(ids.len(), 999);
        assert_eq!(id_of(own(), 7), id_of(own(), 7));
        assert_eq!(id_of(own(), 7).made_at(), own().made_at());
    }

    #[test]
    fn a_line_is_sent_as_it_is_but_for_an_id_that_it_has_not() {
        let sent = |line: &str| order(line.as_bytes(), own(), 1).map(|sent| String::from_utf8(sent).unwrap());
        let id = id_of(own(), 1);
        assert_eq!(
            sent(" {\"kind\":\"k\",\"args\":1.10}\r\n").unwrap(),
            format!("{{\"id\":\"{id}\",\"kind\":\"k\",\"args\":1.10}}")
        );
        assert_eq!(sent("{}").unwrap(), format!("{{\"id\":\"{id}\"}}"));
        assert_eq!(sent("{\"id\":\"x\",\"kind\":\"k\"}").unwrap(), "{\"id\":\"x\",\"kind\":\"k\"}");
        assert!(sent("[1]").unwrap_err().contains("column"));
        assert!(sent("{\"kind\": ups}").unwrap_err().contains("column 10"));
    }
}
