//! A schedule as one line of text, and back.

use std::fmt;
use std::str::FromStr;

use super::length::Length;
use super::{
    At, BadSchedule, Bounds, Calendar, Cron, Delay, Dialect, Every, Rrule, Rule, Schedule, Steps, Times, Zone,
};
use crate::limits;

/// The words that a line can begin with.
const KNOWN: &str = "write a cron expression such as `0 */5 * * * *`, `every 10m`, `daily 09:30`, `weekly mon-fri 09:30`, `delay 10m` or `at 2026-03-29T02:30:00Z`";

/// Stands between two rules.
const OR: &str = " or ";

impl Schedule {
    /// Parses a schedule from text.
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
    /// | `DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO` | [`Rrule`] |
    ///
    /// Several rules are written with ` or ` between them: `daily 09:30 or weekly sat 12:00`; see [`Rule::AnyOf`]. They
    /// have one time zone, written once.
    ///
    /// Each form may be followed by ` in Europe/Berlin`, or begin with `CRON_TZ=Europe/Berlin`. The default time zone
    /// is UTC.
    ///
    /// # Errors
    /// Refuses anything else; the error names the field and the column.
    pub fn parse(text: &str) -> Result<Self, BadSchedule> {
        check_length(text)?;
        let (line, zone) = zone_of(text)?;
        let steps = Self::count_steps();
        let (mut rule, own_zone) =
            Rule::parse(line.text, zone.as_ref(), &steps).map_err(|bad| bad.moved(line.offset))?;
        let zone = one_of(own_zone, zone)?.unwrap_or_else(Zone::utc);
        rule.count_in(&zone, &Self::count_steps())?;
        Self { rule, zone, bounds: Bounds::default(), except: Calendar::default(), jitter: None }.checked()
    }
}

/// Refuses text that no schedule is as long as.
pub(super) fn check_length(text: &str) -> Result<(), BadSchedule> {
    if text.len() <= limits::SCHEDULE_BYTES {
        return Ok(());
    }
    let wrong = BadSchedule::new("schedule", format_args!("{} bytes", text.len()));
    Err(wrong.instead(format_args!("at most {} bytes", limits::SCHEDULE_BYTES)))
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

/// The zone of a rule that names one, or that of the schedule.
pub(super) fn one_of(own: Option<Zone>, of_schedule: Option<Zone>) -> Result<Option<Zone>, BadSchedule> {
    match (own, of_schedule) {
        (Some(own), Some(other)) if own != other => {
            Err(BadSchedule::new("zone", format_args!("the rule is in {own}, the schedule in {other}")))
        }
        (own, of_schedule) => Ok(own.or(of_schedule)),
    }
}

impl Rule {
    /// Reads one rule or more, and the zone of those that name it themselves.
    pub(super) fn parse(
        text: &str,
        of_schedule: Option<&Zone>,
        steps: &Steps,
    ) -> Result<(Self, Option<Zone>), BadSchedule> {
        let (mut rules, mut zone, mut offset) = (Vec::new(), None, 0);
        for part in text.split(OR) {
            let (rule, own) = Self::parse_one(part, of_schedule, steps).map_err(|bad| bad.moved(offset))?;
            zone = one_of(own, zone)?;
            rules.push(rule);
            offset += part.len() + OR.len();
        }
        Ok((Self::any_of(rules)?, zone))
    }

    fn parse_one(
        text: &str,
        of_schedule: Option<&Zone>,
        steps: &Steps,
    ) -> Result<(Self, Option<Zone>), BadSchedule> {
        let line = Part { text, offset: 0 }.trimmed();
        let upper = line.text.get(..7).unwrap_or(line.text).to_ascii_uppercase();
        if ["RRULE:", "DTSTART", "FREQ=", "EXDATE", "RDATE", "EXRULE"]
            .iter()
            .any(|start| upper.starts_with(start))
        {
            let (rule, zone) =
                Rrule::parse_in(line.text, of_schedule, steps).map_err(|bad| bad.moved(line.offset))?;
            return Ok((Self::Rrule(Box::new(rule)), zone));
        }
        Ok((Self::of_line(line)?, None))
    }

    fn of_line(line: Part<'_>) -> Result<Self, BadSchedule> {
        type Read = fn(&str) -> Result<Rule, BadSchedule>;
        let readers: [(&str, Read); 6] = [
            ("delay", |text| Delay::new(Length::interval("delay", text)?.0).map(Self::Delay)),
            ("at", |text| At::parse(text).map(Self::At)),
            ("daily", |text| Times::parse_daily(text).map(Self::Times)),
            ("weekly", |text| Times::parse_weekly(text).map(Self::Times)),
            ("unix", |text| Cron::parse(Dialect::Unix, text).map(Self::Cron)),
            ("ncrontab", |text| Cron::parse(Dialect::Ncrontab, text).map(Self::Cron)),
        ];
        for (word, read) in readers {
            if line.text.eq_ignore_ascii_case(word) {
                let wrong = format_args!("nothing after `{word}`");
                return Err(BadSchedule::new("schedule", wrong).instead(KNOWN));
            }
            if let Some(rest) = line.after(word) {
                return read(rest.text).map_err(|bad| bad.moved(rest.offset));
            }
        }
        // A length of time of .NET has colons, and a cron expression has none.
        let is_one_word = !line.text.contains([' ', '\t']);
        if is_one_word && line.text.contains(':') {
            return every(line).map(Self::Every);
        }
        if let Some(rest) = line.after("every").or_else(|| line.after("@every")) {
            return every(rest).map(Self::Every);
        }
        if is_one_word && !line.text.starts_with('@') {
            let shown = crate::invalid::cut(line.text, 64);
            let wrong =
                if shown.is_empty() { "empty".to_owned() } else { format!("{shown:?} is not a schedule") };
            return Err(BadSchedule::new("schedule", wrong).instead(KNOWN));
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
        _ => {
            let wrong = BadSchedule::new("interval", "more than one start");
            Err(wrong.instead("write one time after `from`"))
        }
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
            Self::Rrule(rule) => rule.fmt(f),
            Self::At(at) => at.fmt(f),
            Self::AnyOf(rules) => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                f.write_str(&rules.join(OR))
            }
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
