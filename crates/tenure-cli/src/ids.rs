//! Ids as people copy them: whole, or by their first or last eight signs or more.

use std::time::Duration;

use serde_json::Value;
use tenure::{Clock, SystemClock};

use crate::client::{Ask, Client, escaped};
use crate::exit::Failure;
use crate::output::safe;
use crate::with::text;

/// Fewer hexadecimal digits than these are no part of an id.
const LEAST: usize = 8;
/// The digits of a whole id.
const WHOLE: usize = 32;
/// Before which digits an id has a dash.
const DASHES: [usize; 4] = [8, 12, 16, 20];
/// Jobs that are named if several are meant.
const NAMED: usize = 5;
/// For how long jobs are searched.
const WITHIN: Duration = Duration::from_secs(3);

/// A part of an id: how it begins, how it ends, or either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Begins or ends so; both are written with their dashes.
    Either(String, String),
    /// Begins so and ends so, as `0190f5c2-7b1e…5b10`.
    Both(String, String),
}

impl Part {
    /// Returns the text if it is a part of an ID.
    pub(crate) fn of(said: &str) -> Option<Self> {
        let said = said.trim().to_ascii_lowercase();
        if let Some((begin, end)) = said.split_once('…').or_else(|| said.split_once("...")) {
            let digits = digits(begin)?.len() + digits(end)?.len();
            return (digits >= LEAST).then(|| Self::Both(begin.to_owned(), end.to_owned()));
        }
        let digits = digits(&said)?;
        let begin = dashed(&digits, 0);
        let end = dashed(&digits, WHOLE.checked_sub(digits.len())?);
        (LEAST..WHOLE).contains(&digits.len()).then_some(Self::Either(begin, end))
    }

    /// Returns true if the text can be an ID.
    pub(crate) fn is_of(&self, id: &str) -> bool {
        match self {
            Self::Either(begin, end) => id.starts_with(begin) || id.ends_with(end),
            Self::Both(begin, end) => id.starts_with(begin) && id.ends_with(end),
        }
    }

    /// The same in the language of searches.
    fn search(&self) -> String {
        match self {
            Self::Either(begin, end) => format!("id:{begin},…{end}"),
            Self::Both(begin, end) => format!("id:{begin}…{end}"),
        }
    }
}

/// The digits of what may be a part of an id.
fn digits(text: &str) -> Option<String> {
    let is_part = text.chars().all(|sign| sign.is_ascii_hexdigit() || sign == '-');
    is_part.then(|| text.chars().filter(|sign| *sign != '-').collect())
}

/// Digits with the dashes that they have in an id from this digit on.
fn dashed(digits: &str, from: usize) -> String {
    let mut text = String::new();
    for (at, sign) in (from..).zip(digits.chars()) {
        if at > from && DASHES.contains(&at) {
            text.push('-');
        }
        text.push(sign);
    }
    text
}

/// The whole id of the job that is meant. What is no part of an id is left to the server.
pub(crate) fn job(client: &Client, said: &str) -> Result<String, Failure> {
    let Some(part) = Part::of(said) else { return Ok(said.to_owned()) };
    let until = SystemClock.moment().after(WITHIN);
    let (mut found, mut cursor) = (Vec::<Value>::new(), String::new());
    let is_all = loop {
        let path = format!("/v1/jobs?q={}&limit={}{cursor}", escaped(&part.search()), NAMED + 1);
        let page = client.ask(&Ask::get(path))?.json()?;
        found.extend(page["items"].as_array().cloned().unwrap_or_default());
        let Some(next) = page["next_cursor"].as_str() else { break true };
        if found.len() > NAMED || until.since(SystemClock.moment()).is_zero() {
            break false;
        }
        cursor = format!("&cursor={}", escaped(next));
    };
    let said = safe::line(said);
    match found.as_slice() {
        [one] if is_all => Ok(text(one, "/id").to_owned()),
        [] if is_all => Err(Failure::NotThere(format!(
            "no job has an id that begins or ends with \"{said}\"; list jobs with `tenure job list`"
        ))),
        [] => Err(Failure::NotThere(format!(
            "no job found for \"{said}\" within {} s; pass the whole id",
            WITHIN.as_secs()
        ))),
        _ => Err(ambiguous(
            &said,
            "jobs",
            found
                .iter()
                .map(|job| format!("{} {} {}", text(job, "/id"), text(job, "/kind"), text(job, "/state"))),
            is_all,
        )),
    }
}

/// Says that several are meant, and which.
pub(crate) fn ambiguous(
    said: &str,
    what: &str,
    all: impl ExactSizeIterator<Item = String>,
    is_all: bool,
) -> Failure {
    let more = if all.len() > NAMED || !is_all { "\n  …" } else { "" };
    let shown: Vec<String> = all.take(NAMED).map(|one| format!("\n  {}", safe::line(&one))).collect();
    Failure::Conflict(format!(
        "id \"{said}\" is ambiguous; pass more of it. Matching {what}:{}{more}",
        shown.concat()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";

    #[test]
    fn eight_signs_at_either_end_are_a_part_of_an_id() {
        for said in [
            "0190f5c2",
            "8c4e5b10",
            "0190F5C2-7b1e",
            "0190f5c27b1e",
            "026a2d8c4e5b10",
            "9f02-6a2d8c4e5b10",
            "0190f5c2-7b1e…5b10",
            "…8c4e5b10",
            "0190f5c2...",
            "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b1",
        ] {
            assert!(Part::of(said).is_some_and(|part| part.is_of(ID)), "{said}");
        }
        for other in ["7b1e7c3a", "0190f5c3", "…8c4e5b11"] {
            assert!(Part::of(other).is_some_and(|part| !part.is_of(ID)), "{other}");
        }
        for none in [ID, "0190f5c", "", "../../livez", "nightly", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10aa"] {
            assert_eq!(Part::of(none), None, "{none}");
        }
    }

    #[test]
    fn a_part_is_searched_at_both_ends() {
        assert_eq!(Part::of("0190f5c27b1e").unwrap().search(), "id:0190f5c2-7b1e,…0190f5c27b1e");
        assert_eq!(
            Part::of("9f026a2d8c4e5b10").unwrap().search(),
            "id:9f026a2d-8c4e-5b10,…9f02-6a2d8c4e5b10"
        );
    }
}
