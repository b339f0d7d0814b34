//! `tenure job list` and `tenure ps`.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tenure::StateName;

use super::With;
use super::document::{self, Document};
use crate::client::{Ask, Patience, Trouble, escaped};
use crate::exit::Failure;
use crate::output::{Shape, counted};
use crate::unreadable;

/// How many are shown if nobody says otherwise.
const USUAL: usize = 50;
/// Jobs of one request.
const PAGE: usize = 200;

/// Which jobs are meant.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Which {
    /// Search, such as 'state:failed kind:mail args.user.id:42 -tag:test'
    #[arg(value_name = "SEARCH")]
    q: Option<String>,
    /// Only these states: scheduled, queued, blocked, running, succeeded, failed, cancelled
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    /// Only these queues
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    queue: Vec<String>,
    /// Only these kinds
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only jobs with all of these tags
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    tag: Vec<String>,
    /// Created at this time or later, such as 2026-03-28T12:00:00Z
    #[arg(long, value_name = "INSTANT")]
    created_from: Option<String>,
    /// Created before this time
    #[arg(long, value_name = "INSTANT")]
    created_before: Option<String>,
    /// Ended at this time or later
    #[arg(long, value_name = "INSTANT")]
    ended_from: Option<String>,
    /// Ended before this time
    #[arg(long, value_name = "INSTANT")]
    ended_before: Option<String>,
    /// Order: newest, oldest, last_ended or first_ended [default: newest]
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
}

/// Number of jobs.
#[derive(Debug, Clone, Args)]
pub(super) struct HowMany {
    /// Maximum number of jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = USUAL)]
    limit: usize,
    /// List all jobs
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// Arguments of `tenure job list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how_many: HowMany,
}

/// Arguments of `tenure ps`.
#[derive(Debug, Args)]
pub(crate) struct Ps {
    #[command(flatten)]
    how_many: HowMany,
}

/// A page of the server, its documents as they are.
#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    unreadable: Vec<Value>,
    next_cursor: Option<String>,
}

/// The rest of the pages of a listing, without their jobs.
#[derive(Default)]
pub(super) struct Rest {
    /// Cursor of the next page, if more jobs follow.
    next_cursor: Option<String>,
    unreadable: Vec<Value>,
}

impl Which {
    /// Returns a hint if the search is the name of a state: as a word, it matches jobs that contain it.
    fn hint(&self) -> Option<String> {
        let state = self.q.as_deref()?.trim().parse::<StateName>().ok()?.as_str();
        Some(format!("searching for the word \"{state}\"; to list jobs in this state, use --state {state}"))
    }

    /// What stands behind the question mark for a page of them.
    fn query(&self, limit: usize, cursor: Option<&str>) -> String {
        let often =
            [("state", &self.state), ("queue", &self.queue), ("kind", &self.kind), ("tag", &self.tag)];
        let often = often
            .into_iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str())));
        let once = [
            ("q", self.q.as_deref()),
            ("created_from", self.created_from.as_deref()),
            ("created_before", self.created_before.as_deref()),
            ("ended_from", self.ended_from.as_deref()),
            ("ended_before", self.ended_before.as_deref()),
            ("order", self.order.as_deref()),
            ("cursor", cursor),
        ];
        let once = once.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let pairs = often.chain(once).map(|(name, value)| format!("&{name}={}", escaped(value)));
        format!("?limit={limit}{}", pairs.collect::<String>())
    }
}

pub(super) fn run(list: &List, with: &mut With) -> Result<(), Failure> {
    show(&list.which, &list.how_many, with)
}

pub(super) fn ps(ps: &Ps, with: &mut With) -> Result<(), Failure> {
    let which = Which { state: vec!["running".to_owned()], ..Which::default() };
    show(&which, &ps.how_many, with)
}

fn show(which: &Which, how_many: &HowMany, with: &mut With) -> Result<(), Failure> {
    let most = if how_many.all { usize::MAX } else { how_many.limit };
    if let Some(hint) = which.hint() {
        with.out.tell(&hint);
    }
    if with.out.shape() == Shape::Json {
        return as_one(which, most, with);
    }
    let (mut first, mut shown) = (true, 0);
    let rest = pages(which, most, with, |with, items| {
        let documents = Document::all(items)?;
        shown += documents.len();
        document::rows(&mut with.out, &documents, std::mem::take(&mut first))
    })?;
    if rest.next_cursor.is_some() {
        with.out.tell(&format!(
            "{} shown, more match; list more with --limit N or --all",
            counted(shown as u64, "job")
        ));
    }
    Ok(())
}

/// One page as the server would say it, if it had no bound.
fn as_one(which: &Which, most: usize, with: &mut With) -> Result<(), Failure> {
    let mut all = Vec::new();
    let Rest { next_cursor, unreadable } = pages(which, most, with, |_, items| {
        all.extend(items.iter().map(|item| item.get().to_owned()));
        Ok(())
    })?;
    let next = serde_json::json!(next_cursor);
    let unreadable = match unreadable.as_slice() {
        [] => String::new(),
        jobs => format!("\"unreadable\":{},", serde_json::json!(jobs)),
    };
    with.out.document(&format!("{{\"items\":[{}],{unreadable}\"next_cursor\":{next}}}", all.join(",")))
}

/// Asks for page after page, and names the jobs that cannot be read.
pub(super) fn pages(
    which: &Which,
    most: usize,
    with: &mut With,
    mut each: impl FnMut(&mut With, &[Box<RawValue>]) -> Result<(), Failure>,
) -> Result<Rest, Failure> {
    let (mut rest, mut left, mut patience) = (Rest::default(), most, Patience::new());
    while left > 0 {
        let ask = Ask::get(format!("/v1/jobs{}", which.query(left.min(PAGE), rest.next_cursor.as_deref())));
        let answer = match with.client.ask(&ask) {
            Ok(answer) => answer,
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        let page: Page =
            serde_json::from_slice(&answer.body).map_err(|error| Trouble::strange(&error.to_string()))?;
        left = left.saturating_sub(page.items.len());
        each(with, &page.items)?;
        with.out.flush()?;
        rest.unreadable.extend(page.unreadable);
        rest.next_cursor = page.next_cursor;
        if rest.next_cursor.is_none() {
            break;
        }
    }
    unreadable::tell(&rest.unreadable, &with.out);
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_state_as_a_search_gets_a_hint() {
        let hint = |q: &str| Which { q: Some(q.to_owned()), ..Which::default() }.hint();
        assert!(hint("failed").unwrap().contains("--state failed"));
        for other in ["state:failed", "faild", "failed mail", ""] {
            assert_eq!(hint(other), None, "{other}");
        }
    }
}
