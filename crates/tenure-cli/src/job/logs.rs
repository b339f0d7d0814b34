//! `tenure job logs`: what the attempts of a job have logged.

use std::collections::VecDeque;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use tenure::{Clock, Moment, SystemClock, Timestamp};

use super::With;
use super::document::Document;
use super::fate::{self, Wait};
use crate::client::{Ask, Followed, Patience, Trouble, escaped};
use crate::exit::Failure;
use crate::ids;
use crate::output::{Shape, safe};
use crate::span::since;

/// Lines of one request.
const PAGE: usize = 500;

/// Arguments of `tenure job logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID")]
    id: String,
    /// Follow the log until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Only lines of this delivery; the first is 1
    #[arg(long, value_name = "N")]
    attempt: Option<u64>,
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Only lines since this time: 2026-03-28T12:00:00Z, or 10m for ten minutes ago
    #[arg(long, value_name = "SPAN|INSTANT", value_parser = since)]
    since: Option<Timestamp>,
    /// Print the time and delivery of each line
    #[arg(long)]
    timestamps: bool,
}

/// Where somebody is in the lines of a job.
struct Reader<'a> {
    id: &'a str,
    behind: Option<String>,
    timestamps: bool,
    attempt: Option<u64>,
    since: Option<Timestamp>,
    /// While only the last lines are wanted: those, and how many at most.
    last: Option<(usize, VecDeque<Document>)>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_after: Option<String>,
}

pub(super) fn run(logs: &Logs, with: &mut With) -> Result<(), Failure> {
    let id = ids::job(&with.client, &logs.id)?;
    let mut reader = Reader {
        id: &id,
        behind: None,
        timestamps: logs.timestamps,
        attempt: logs.attempt,
        since: logs.since,
        last: logs.tail.map(|most| (most, VecDeque::new())),
    };
    if !logs.follow {
        while reader.page(with)? == PAGE {}
        return reader.let_go(with);
    }
    with.goes.on(format!("job {} continues", safe::line(&id)));
    reader.follow(with, None, Patience::new()).map(drop)
}

/// Prints what a job has logged; how it has ended, if it is followed to its end.
pub(crate) fn shown(with: &mut With, id: &str, follow: bool) -> Result<Option<Followed>, Failure> {
    let mut reader = Reader { id, behind: None, timestamps: false, attempt: None, since: None, last: None };
    if follow {
        with.goes.on(format!("run {} continues", safe::line(id)));
        return reader.follow(with, None, Patience::new()).map(Some);
    }
    while reader.page(with)? == PAGE {}
    Ok(None)
}

/// Prints what a job that was just accepted logs, and ends as the job does.
pub(super) fn follow_to_the_end(with: &mut With, id: &str, wait: Wait) -> Result<(), Failure> {
    with.goes.on(format!(
        "job {id} continues; follow it with `tenure job logs -f {id}`, cancel it with `tenure job cancel {id}`"
    ));
    let mut reader = Reader { id, behind: None, timestamps: false, attempt: None, since: None, last: None };
    let followed = reader.follow(with, wait.until(), Patience::of_one_who_was_answered())?;
    fate::end(with, id, followed)
}

impl Reader<'_> {
    /// Prints what there is, again and again, until the job has ended.
    fn follow(
        &mut self,
        with: &mut With,
        until: Option<Moment>,
        mut patience: Patience,
    ) -> Result<Followed, Failure> {
        let path = format!("/v1/jobs/{}", escaped(self.id));
        let mut tag: Option<String> = None;
        let mut last = String::new();
        loop {
            let left = until.map(|until| until.since(SystemClock.moment()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Followed::Over);
            }
            // The server holds its answer for a second: so often lines are looked for that come without another change.
            let ask = Ask::get(&path).or_wait(u64::from(tag.is_some()), tag.as_deref());
            let job = match with.client.ask(&ask) {
                Ok(answer) => answer,
                Err(trouble) => {
                    patience.endure(trouble)?;
                    continue;
                }
            };
            if job.status != 304 {
                (tag, last) = (job.tag.clone(), job.text());
            }
            // Looked at before the lines: what is logged before the end is read after it was seen.
            match self.rest(with) {
                Ok(()) => patience.heard(),
                Err(Stopped::By(trouble)) => {
                    patience.endure(trouble)?;
                    continue;
                }
                Err(Stopped::For(failure)) => return Err(failure),
            }
            if Document::of(last.clone())?.has_ended() {
                return Ok(Followed::Ended(last));
            }
        }
    }

    fn page(&mut self, with: &mut With) -> Result<usize, Failure> {
        match self.ask(with) {
            Ok(page) => self.print(with, &page),
            Err(trouble) => Err(trouble.into()),
        }
    }

    fn rest(&mut self, with: &mut With) -> Result<(), Stopped> {
        loop {
            let page = self.ask(with).map_err(Stopped::By)?;
            if self.print(with, &page).map_err(Stopped::For)? < PAGE {
                return self.let_go(with).map_err(Stopped::For);
            }
        }
    }

    fn ask(&self, with: &With) -> Result<Page, Trouble> {
        let behind = self.behind.as_deref().map(|behind| format!("&after={}", escaped(behind)));
        let path = format!("/v1/jobs/{}/logs?limit={PAGE}{}", escaped(self.id), behind.unwrap_or_default());
        let answer = with.client.ask(&Ask::get(path))?;
        serde_json::from_slice(&answer.body).map_err(|error| Trouble::strange(&error.to_string()))
    }

    fn print(&mut self, with: &mut With, page: &Page) -> Result<usize, Failure> {
        for line in Document::all(&page.items)? {
            if !self.is_wanted(&line) {
                continue;
            }
            match &mut self.last {
                Some((most, kept)) => {
                    kept.push_back(line);
                    if kept.len() > *most {
                        kept.pop_front();
                    }
                }
                None => self.show(with, &line)?,
            }
        }
        if page.next_after.is_some() {
            self.behind.clone_from(&page.next_after);
        }
        with.out.flush()?;
        Ok(page.items.len())
    }

    fn is_wanted(&self, line: &Document) -> bool {
        let at = line.text_of("at").and_then(|at| at.parse::<Timestamp>().ok());
        self.attempt.is_none_or(|attempt| line.read["delivery"] == attempt)
            && self.since.is_none_or(|since| at.is_none_or(|at| at >= since))
    }

    /// Prints the last lines of what there was; from now on all is printed that comes.
    fn let_go(&mut self, with: &mut With) -> Result<(), Failure> {
        let Some((_, kept)) = self.last.take() else { return Ok(()) };
        kept.iter().try_for_each(|line| self.show(with, line))?;
        with.out.flush()
    }

    fn show(&self, with: &mut With, line: &Document) -> Result<(), Failure> {
        match with.out.shape() {
            Shape::Json | Shape::Jsonl => with.out.document(&line.text),
            Shape::Table | Shape::Wide | Shape::Id => {
                let text = safe::line(line.text_of("text").unwrap_or_default());
                let before = match self.timestamps {
                    true => format!("{}  {}  ", with.out.when(line.text_of("at")), line.read["delivery"]),
                    false => String::new(),
                };
                with.out.line(&format!("{before}{text}"))
            }
        }
    }
}

/// Why lines are not read to their end.
enum Stopped {
    By(Trouble),
    For(Failure),
}
