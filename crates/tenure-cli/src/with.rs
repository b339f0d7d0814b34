//! What every command that asks a server is done with.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tenure::json_value;

use crate::client::{Ask, Client, Connect, Goes, Patience, Purpose, Trouble, escaped, interruptible};
use crate::exit::Failure;
use crate::ids::{self, Part};
use crate::output::{Cell, Out, Output, Shape, Table, safe};

/// What every command is done with.
pub(crate) struct With {
    pub(crate) client: Client,
    pub(crate) out: Out,
    pub(crate) goes: Goes,
}

/// A command, and which server it asks.
#[derive(Debug, Args)]
pub(crate) struct Asked<A: Args> {
    #[command(flatten)]
    pub(crate) connect: Connect,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) what: A,
}

/// Asks the server that is meant, or the store; Ctrl-C ends it at once.
pub(crate) fn done(
    connect: &Connect,
    output: Output,
    work: impl FnOnce(&mut With) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    done_with(connect.client()?, output, work)
}

/// The same for work of this program's own: a store that is named for that may be changed.
pub(crate) fn done_for(
    purpose: Purpose,
    connect: &Connect,
    output: Output,
    work: impl FnOnce(&mut With) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    done_with(connect.client_for(purpose)?, output, work)
}

fn done_with(
    client: Client,
    output: Output,
    work: impl FnOnce(&mut With) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    interruptible(move |goes| {
        let mut with = With { client, out: output.open(), goes: goes.clone() };
        work(&mut with)?;
        with.out.flush()
    })
}

/// Page size of a bounded list.
const PAGE: usize = 200;

/// The bound of a list that only grows.
#[derive(Debug, Args)]
pub(crate) struct Latest {
    /// Entries to print, latest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: usize,
}

/// Things of a server that have names.
pub(crate) struct Named {
    /// Where they are, such as `/v1/leases`.
    pub(crate) path: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) cells: fn(&Value, &Out) -> Vec<Cell>,
}

/// A page, its documents as they are.
#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

fn strange(error: &serde_json::Error) -> Failure {
    Trouble::strange(&error.to_string()).into()
}

impl Named {
    /// What one of them is, such as `lease`.
    fn what(&self) -> &'static str {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        last.strip_suffix('s').unwrap_or(last)
    }

    /// Where the one with this name is.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("{}/{}", self.path, escaped(name))
    }

    /// Prints all whose names begin so.
    pub(crate) fn list(&self, with: &mut With, prefix: Option<&str>) -> Result<(), Failure> {
        self.list_at(with, self.path, prefix)
    }

    /// Prints all that are at this path.
    pub(crate) fn list_at(&self, with: &mut With, path: &str, prefix: Option<&str>) -> Result<(), Failure> {
        self.pages(with, path, prefix, usize::MAX)
    }

    /// Prints the first ones at this path, and says if there are more.
    pub(crate) fn first_at(&self, with: &mut With, path: &str, most: usize) -> Result<(), Failure> {
        self.pages(with, path, None, most)
    }

    fn pages(&self, with: &mut With, path: &str, prefix: Option<&str>, most: usize) -> Result<(), Failure> {
        let (mut cursor, mut patience, mut first) = (None::<String>, Patience::new(), true);
        let (mut all, mut left) = (Vec::new(), most);
        loop {
            let limit = (most < usize::MAX).then(|| left.min(PAGE).to_string());
            let pairs = [("prefix", prefix), ("limit", limit.as_deref()), ("cursor", cursor.as_deref())];
            let pairs =
                pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?))));
            let pairs = pairs.collect::<Vec<_>>().join("&");
            let sign = if path.contains('?') { '&' } else { '?' };
            let question = if pairs.is_empty() { String::new() } else { format!("{sign}{pairs}") };
            let answer = match with.client.ask(&Ask::get(format!("{path}{question}"))) {
                Ok(answer) => answer,
                Err(trouble) => {
                    patience.endure(trouble)?;
                    continue;
                }
            };
            patience.heard();
            let page: Page = serde_json::from_slice(&answer.body).map_err(|error| strange(&error))?;
            left = left.saturating_sub(page.items.len());
            if with.out.shape() == Shape::Json {
                all.extend(page.items.iter().map(|item| item.get().to_owned()));
            } else {
                self.rows(with, &page.items, std::mem::take(&mut first))?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            if left == 0 {
                with.out.tell(&format!("only the first {most}; pass --limit for more"));
                break;
            }
        }
        if with.out.shape() == Shape::Json {
            return with.out.document(&format!("{{\"items\":[{}]}}", all.join(",")));
        }
        Ok(())
    }

    fn rows(&self, with: &mut With, items: &[Box<RawValue>], first: bool) -> Result<(), Failure> {
        let mut table = Table::new(self.columns);
        for item in items {
            let read = json_value(item.get()).map_err(|error| strange(&error))?;
            match with.out.shape() {
                Shape::Table | Shape::Wide => table.row((self.cells)(&read, &with.out)),
                Shape::Json | Shape::Jsonl => with.out.document(item.get())?,
                Shape::Id => {
                    let ids = ["name", "id", "worker_id", "job_id", "key"].map(|field| read[field].as_str());
                    // Names of workers are for people.
                    let id = if ids[2].is_some() { ids[2] } else { ids[0].or(ids[1]).or(ids[3]).or(ids[4]) };
                    let number = read["number"].as_u64().map(|number| number.to_string());
                    with.out.id(self.what(), id.or(number.as_deref()).unwrap_or_default())?;
                }
            }
        }
        if matches!(with.out.shape(), Shape::Table | Shape::Wide) {
            with.out.table(&table, first)
        } else {
            Ok(())
        }
    }

    /// The whole id of the one that is meant by a part of it. What is no part of an id, or of none, is left to the server.
    pub(crate) fn whole(&self, with: &With, said: &str) -> Result<String, Failure> {
        let Some(part) = Part::of(said) else { return Ok(said.to_owned()) };
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = with.client.ask(&Ask::get(format!("{}{cursor}", self.path)))?.json()?;
            let ids = page["items"].as_array().into_iter().flatten().map(|one| text(one, "/id").to_owned());
            found.extend(ids.filter(|id| part.is_of(id)));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("?cursor={}", escaped(next));
        }
        match found.as_slice() {
            [] => Ok(said.to_owned()),
            [one] => Ok(one.clone()),
            _ => {
                Err(ids::ambiguous(&safe::line(said), &format!("{}s", self.what()), found.into_iter(), true))
            }
        }
    }

    /// Prints why the one with this name does not go on, a reason a line, the weightiest first.
    pub(crate) fn explain(&self, with: &mut With, name: &str, nothing: &str) -> Result<(), Failure> {
        let answer = with.client.ask(&Ask::get(format!("{}/explain", self.of(name))))?;
        if matches!(with.out.shape(), Shape::Json | Shape::Jsonl) {
            return with.out.document(&answer.text());
        }
        let reasons = answer.json()?;
        let items = reasons["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if items.is_empty() {
            return with.out.line(nothing);
        }
        items.iter().try_for_each(|item| with.out.line(&safe::line(text(item, "/detail"))))
    }

    /// Prints what was answered of one: its document in a form that was chosen, else a sentence.
    pub(crate) fn told(&self, with: &mut With, document: &str, sentence: &str) -> Result<(), Failure> {
        if with.out.chosen().is_none() {
            with.out.tell(sentence);
            return Ok(());
        }
        self.one(with, document)
    }

    /// Prints the document of one.
    pub(crate) fn one(&self, with: &mut With, document: &str) -> Result<(), Failure> {
        let raw = RawValue::from_string(document.to_owned()).map_err(|error| strange(&error))?;
        self.rows(with, &[raw], true)
    }
}

/// A text of a document.
pub(crate) fn text<'a>(document: &'a Value, path: &str) -> &'a str {
    document.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
