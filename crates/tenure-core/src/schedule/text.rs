//! A schedule as one line of text, and back.

use std::fmt;
use std::str::FromStr;

use super::length::Length;
use super::{At, BadSchedule, Cron, Delay, Dialect, Every, Rule, Schedule, Times, Zone};
use crate::limits;

/// The words that a line can begin with.
const KNOWN: &str = "write a cron expression such as `0 */5 * * * *`, `every 10m`, `daily 09:30`, `weekly mon-fri 09:30`, \
                     `delay 10m` or `at 2026-03-29T02:30:00Z`";

impl Schedule {
    /// Reads a line of text.
    ///
    /// | text | means |
    /// |---|---|
    /// | `0 */5 * * * *`, `30 9 * * MON-FRI` | a cron expression of the ncrontab [`Dialect`], with or without a second |
    /// | `unix 30 9 * * 1-5`, `unix @daily` | one of the unix dialect |
    /// | `every 10m`, `every 1h30m from 2026-01-01T00:00:00Z`, `@every 10m` | [`Every`] |
    /// | `00:10:00`, `1.00:00:00` | [`Every`], as .NET writes it |
    /// | `delay 10m` | [`Delay`] |
    /// | `at 2026-03-29T02:30:00Z` | [`At`] |
    /// | `daily 09:30, 17:00` | [`Times`] |
    /// | `weekly mon-fri 09:30; sat 10:00` | [`Times`] |
    ///
    /// Each of them may be followed by ` in Europe/Berlin`, or begin with `CRON_TZ=Europe/Berlin`. Without a zone it
    /// is in UTC.
    ///
    /// # Errors
    /// Refuses anything else. The complaint names the field and the column.
    pub fn parse(text: &str) -> Result<Self, BadSchedule> {
        if text.len() > limits::SCHEDULE_BYTES {
            let wrong = format_args!("text of {} bytes", text.len());
            return Err(BadSchedule::new("schedule", wrong)
                .instead(format_args!("at most {} bytes", limits::SCHEDULE_BYTES)));
        }
        let (line, zone) = zone_of(text)?;
        let rule = Rule::parse(line.text).map_err(|bad| bad.moved(line.offset))?;
        let schedule = Self::new(rule);
        match zone {
            Some(zone) => schedule.in_zone(zone),
            None => Ok(schedule),
        }
    }
}

/// A part of a text with the bytes before it.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Self {
        let lead = self.text.len() - self.text.trim_start().len();
        Part { text: self.text.trim(), offset: self.offset + lead }
    }

    /// What follows a first word, and optionally a colon.
    fn after(self, word: &str) -> Option<Part<'a>> {
        let start = self.text.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word))?;
        let rest = &self.text[start.len()..];
        let blank = rest.strip_prefix([' ', '\t', ':'])?;
        Some(Part { text: blank, offset: self.offset + start.len() + 1 })
    }
}

fn zone_of(text: &str) -> Result<(Part<'_>, Option<Zone>), BadSchedule> {
    let line = Part { text, offset: 0 }.trimmed();
    for prefix in ["CRON_TZ=", "TZ="] {
        if let Some(rest) = line.text.strip_prefix(prefix) {
            let name = rest.split([' ', '\t']).next().unwrap_or(rest);
            let zone = Zone::named(name).map_err(|bad| bad.at(line.offset + prefix.len()))?;
            let skip = prefix.len() + name.len();
            return Ok((Part { text: &line.text[skip..], offset: line.offset + skip }, Some(zone)));
        }
    }
    let Some((rule, name)) = line.text.rsplit_once(" in ") else {
        return Ok((line, None));
    };
    let zone = Zone::named(name.trim()).map_err(|bad| bad.at(line.offset + rule.len() + " in ".len()))?;
    Ok((Part { text: rule, offset: line.offset }, Some(zone)))
}

impl Rule {
    fn parse(text: &str) -> Result<Self, BadSchedule> {
        let line = Part { text, offset: 0 }.trimmed();
        if let Some(rest) = line.after("every").or_else(|| line.after("@every")) {
            return every(rest).map(Self::Every);
        }
        if let Some(rest) = line.after("delay") {
            let length = Length::interval("delay", rest.text).map_err(|bad| bad.moved(rest.offset))?;
            return Delay::new(length.0).map(Self::Delay);
        }
        if let Some(rest) = line.after("at") {
            return At::parse(rest.text).map(Self::At).map_err(|bad| bad.moved(rest.offset));
        }
        if let Some(rest) = line.after("daily") {
            return Times::parse_daily(rest.text).map(Self::Times).map_err(|bad| bad.moved(rest.offset));
        }
        if let Some(rest) = line.after("weekly") {
            return Times::parse_weekly(rest.text).map(Self::Times).map_err(|bad| bad.moved(rest.offset));
        }
        for dialect in [Dialect::Unix, Dialect::Ncrontab] {
            if let Some(rest) = line.after(dialect.name()) {
                return Cron::parse(dialect, rest.text).map(Self::Cron).map_err(|bad| bad.moved(rest.offset));
            }
        }
        // A length of time of .NET has colons, and a cron expression has none.
        let is_span = line.text.contains(':') && !line.text.contains([' ', '\t']);
        if is_span {
            return every(line).map(Self::Every);
        }
        if line.text.split([' ', '\t']).count() < 2 && !line.text.starts_with('@') {
            let shown = crate::invalid::cut(line.text, 64);
            return Err(BadSchedule::new("schedule", format_args!("{shown:?} is no schedule")).instead(KNOWN));
        }
        let cron = Cron::parse(Dialect::Ncrontab, line.text).map_err(|bad| bad.moved(line.offset))?;
        Ok(Self::Cron(cron))
    }
}

fn every(part: Part<'_>) -> Result<Every, BadSchedule> {
    let (length, from) = match part.text.split_once(" from ") {
        Some((length, from)) => (length, Some(from)),
        None => (part.text, None),
    };
    let every = Length::interval("interval", length)
        .and_then(|length| Every::new(length.0))
        .map_err(|bad| bad.moved(part.offset))?;
    let Some(from) = from else {
        return Ok(every);
    };
    let at = At::parse(from).map_err(|bad| bad.moved(part.offset + length.len() + " from ".len()))?;
    match at.instants() {
        [anchor] => Ok(every.anchored_at(*anchor)),
        _ => Err(BadSchedule::new("interval", "it can begin at one instant only")),
    }
}

impl FromStr for Schedule {
    type Err = BadSchedule;

    fn from_str(text: &str) -> Result<Self, BadSchedule> {
        Self::parse(text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(f),
            Self::Times(times) => times.fmt(f),
            Self::Every(every) => every.fmt(f),
            Self::Delay(delay) => delay.fmt(f),
            Self::At(at) => at.fmt(f),
        }
    }
}

impl fmt::Display for Schedule {
    /// The rule and its zone, as [`Schedule::parse`] reads them. The bounds, the calendar and the jitter are only in
    /// the JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if self.zone == Zone::utc() {
            return Ok(());
        }
        write!(f, " in {}", self.zone)
    }
}
