//! Cron: five, six or seven fields that a local time has to match.

mod days;
mod field;
mod parse;
mod print;
mod unit;
mod walk;
mod years;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rule::Repeats;
use super::wall::{TimeOfDay, Wall};

pub(super) use days::{Days, ones};
pub(super) use unit::{MONTHS, WEEKDAYS};
pub(super) use walk::time_at_least;
pub(super) use years::Years;

/// What a cron expression means where cron programs disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// As NCrontab, WebJobs and Kudu mean it: a date has to match the day *and* the weekday. Weekdays are 0 to 6.
    #[default]
    Ncrontab,
    /// As the crontab of Unix means it: if both are given, a date has to match the day *or* the weekday. Sunday is 0
    /// and 7. It knows `@daily` and its like, `?`, and for days `L`, `L-3`, `LW`, `15W`, `5L` and `FRI#2`.
    Unix,
}

/// A cron expression of one [`Dialect`].
#[derive(Debug, Clone)]
pub struct Cron {
    text: Arc<str>,
    dialect: Dialect,
    matcher: Matcher,
    repeats: Repeats,
    with_seconds: bool,
}

/// The values that match, one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matcher {
    second: u64,
    minute: u64,
    hour: u64,
    month: u64,
    days: Days,
    /// `None` for all.
    years: Option<Years>,
    /// The first time of a day that matches.
    first: TimeOfDay,
}

/// The fields of an expression, to be put into words.
pub(super) struct Parts<'a> {
    pub second: u64,
    pub minute: u64,
    pub hour: u64,
    pub month: u64,
    pub days: &'a Days,
    pub years: Option<&'a Years>,
}

impl Cron {
    /// The expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How it is meant.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn repeats(&self) -> Repeats {
        self.repeats
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        let Matcher { second, minute, hour, month, ref days, ref years, .. } = self.matcher;
        Parts { second, minute, hour, month, days, years: years.as_ref() }
    }

    /// The first match at `from` or after it.
    pub(crate) fn next(&self, from: Wall) -> Option<Wall> {
        self.matcher.next(from)
    }

    /// How many matches there are in so many minutes from a full one on, all of them in one hour.
    pub(crate) fn within_hour(&self, from: Wall, minutes: u32) -> u64 {
        self.matcher.within_hour(from, minutes)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.dialect == other.dialect
    }
}

impl Eq for Cron {}

impl Dialect {
    /// Its name, as it is written before an expression.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ncrontab => "ncrontab",
            Self::Unix => "unix",
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dialect {
            Dialect::Ncrontab => f.write_str(&self.text),
            Dialect::Unix => write!(f, "unix {}", self.text),
        }
    }
}
