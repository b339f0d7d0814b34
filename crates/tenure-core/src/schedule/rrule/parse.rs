//! From the text of a rule to a rule.

use super::super::text::check_length;
use super::super::wall::{TimeOfDay, Wall};
use super::super::{BadSchedule, Steps, Zone};
use super::dates::{Exceptions, Line, date, wall};
use super::meetings::Meetings;
use super::part::{Part, days, times};
use super::{Rrule, Unit};
use crate::{Timestamp, limits};

/// The lines beside the rule itself.
const LINES: [&str; 3] = ["DTSTART", "EXDATE", "RDATE"];

const FREQUENCIES: [(&str, Unit); 7] = [
    ("SECONDLY", Unit::Second),
    ("MINUTELY", Unit::Minute),
    ("HOURLY", Unit::Hour),
    ("DAILY", Unit::Day),
    ("WEEKLY", Unit::Week),
    ("MONTHLY", Unit::Month),
    ("YEARLY", Unit::Year),
];

impl Rrule {
    /// Reads `DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO`, with EXDATE and RDATE or without, on one line or
    /// more. A zone named by `TZID`, or by a `Z` behind the start, comes beside it.
    ///
    /// # Errors
    /// Refuses what is no rule, and by name what is not supported.
    pub fn parse(text: &str) -> Result<(Self, Option<Zone>), BadSchedule> {
        Self::parse_in(text, None, &Steps::new(limits::RRULE_COUNT_STEPS))
    }

    /// Like [`Rrule::parse`], and finds the end of a rule with COUNT in its own zone or that of the schedule.
    pub(in crate::schedule) fn parse_in(
        text: &str,
        of_schedule: Option<&Zone>,
        steps: &Steps,
    ) -> Result<(Self, Option<Zone>), BadSchedule> {
        check_length(text)?;
        let text = unfolded(text);
        let upper = text.to_ascii_uppercase();
        let (mut start, mut dates, mut rule) = (None, Vec::new(), None);
        for (offset, line) in lines(&text) {
            let upper = &upper[offset..offset + line.len()];
            if let Some(name) = LINES.iter().find(|name| upper.starts_with(*name)) {
                let read = Line::read(name, line, offset)?;
                let is_start = read.name == "DTSTART";
                if !is_start {
                    dates.push(read);
                } else if start.replace(read).is_some() {
                    return Err(BadSchedule::new("DTSTART", "more than one start").at(offset));
                }
            } else if let Some(parts) =
                upper.strip_prefix("RRULE:").or(upper.starts_with("FREQ=").then_some(upper))
            {
                let parts = read_parts(parts, offset + line.len() - parts.len())?;
                if rule.replace(parts).is_some() {
                    let wrong = BadSchedule::new("rrule", "more than one rule").at(offset);
                    return Err(wrong.instead("write ` or ` between two rules, each with its own DTSTART"));
                }
            } else if upper.starts_with("EXRULE") {
                let wrong = BadSchedule::new("EXRULE", "EXRULE is not supported").at(offset);
                return Err(wrong.instead("write EXDATE, or use the schedule's `except` for skipped days"));
            } else {
                let shown = crate::invalid::cut(line, 32);
                let wrong = format_args!("{shown:?} is not a part of a rule");
                return Err(BadSchedule::new("rrule", wrong).at(offset));
            }
        }
        let Some(parts) = rule else {
            return Err(BadSchedule::new("rrule", "missing rule").instead("write RRULE:FREQ=DAILY"));
        };
        let Some(start) = start else {
            let wrong = BadSchedule::new("DTSTART", "missing start; a rule is counted from its start");
            return Err(wrong.instead("write DTSTART:20260105T093000 before the rule"));
        };
        let (start, zone) = start.start()?;
        let count_in = zone.as_ref().or(of_schedule).cloned().unwrap_or_else(Zone::utc);
        let mut rule = Self::of(start, &parts, (&count_in, steps))?;
        rule.exceptions = Exceptions::of(&dates, zone.as_ref())?;
        rule.text = format!("{}{}", rule.text, rule.exceptions).into();
        Ok((rule, zone))
    }

    fn of(
        start: Wall,
        parts: &[Part<'_>],
        (zone, count_steps): (&Zone, &Steps),
    ) -> Result<Self, BadSchedule> {
        let get = |name: &str| parts.iter().find(|part| part.name == name).copied();
        let Some(freq) = get("FREQ") else {
            return Err(BadSchedule::new("FREQ", "missing").instead("write FREQ=DAILY"));
        };
        let Some((_, unit)) = FREQUENCIES.iter().copied().find(|(name, _)| *name == freq.value) else {
            return Err(freq
                .refuse(format_args!("`{}` is not a frequency", freq.value))
                .instead("write SECONDLY to YEARLY"));
        };
        refuse_misplaced(unit, &get)?;
        let rule: Vec<String> = parts.iter().map(|part| format!("{}={}", part.name, part.value)).collect();
        let compact = start.to_string().replace(['-', ':'], "");
        let mut this = Self {
            text: format!("DTSTART:{compact} RRULE:{}", rule.join(";")).into(),
            start,
            unit,
            interval: get("INTERVAL").map_or(Ok(1), |part| part.number(limits::RRULE_INTERVAL))?.into(),
            days: days(start, unit, &get)?,
            times: times(start, unit, &get)?,
            meetings: Meetings::default(),
            positions: get("BYSETPOS").map_or(Ok(Vec::new()), |part| {
                part.both_ends(366).map(|positions| positions.list().collect())
            })?,
            exceptions: Exceptions::default(),
            count: get("COUNT").map(|part| part.number(limits::RRULE_COUNT)).transpose()?,
            counted_in: None,
            count_steps: 0,
            last: None,
            until: None,
        };
        if !this.positions.is_empty() {
            this.times.select(unit, &this.positions);
        }
        this.meetings = Meetings::of(&this);
        if unit < Unit::Day && this.meetings.are_none() {
            let wrong = "the interval never meets the times of BYHOUR, BYMINUTE and BYSECOND";
            return Err(BadSchedule::new("rrule", wrong).instead("use another INTERVAL or DTSTART"));
        }
        if let Some(part) = get("UNTIL") {
            this.end_at(&part)?;
        }
        let mut steps = limits::RRULE_STEPS;
        if this.next_within(start, &mut steps).is_none() {
            let wrong = match steps {
                0 => "the rule has no occurrence in 1,000 years after its start",
                _ => "the rule never matches",
            };
            return Err(BadSchedule::new("rrule", wrong).instead("use BY parts that occur together"));
        }
        this.count_in(zone, count_steps)
            .map_err(|bad| get("COUNT").map_or(bad.clone(), |part| bad.at(part.offset)))?;
        Ok(this)
    }

    fn end_at(&mut self, part: &Part<'_>) -> Result<(), BadSchedule> {
        let value = part.value;
        let refuse = || {
            part.refuse(format_args!("`{value}` is not an end")).instead("write 20261231T235959Z or 20261231")
        };
        if let Some(utc) = value.strip_suffix('Z') {
            let wall = wall(utc).ok_or_else(refuse)?;
            let micros = wall.0.checked_mul(1_000_000).ok_or_else(refuse)?;
            self.until = Some(Timestamp::from_micros(micros).map_err(|_| refuse())?);
        } else {
            let day =
                || date(value).map(|date| Wall(Wall::new(date, TimeOfDay::MIDNIGHT).next_midnight().0 - 1));
            self.last = Some(wall(value).or_else(day).ok_or_else(refuse)?);
        }
        Ok(())
    }
}

/// Joins folded lines: a blank at the beginning of a line continues the line before. A line that begins with a property
/// name is never a continuation, because people indent the lines of a rule.
fn unfolded(text: &str) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        let upper = line.trim_start().to_ascii_uppercase();
        let begins = LINES.iter().chain(&["RRULE", "FREQ=", "EXRULE"]).any(|name| upper.starts_with(name));
        // The first line continues none.
        if begins || whole.is_empty() || !line.starts_with([' ', '\t']) {
            whole.push(' ');
            whole.push_str(line);
        } else {
            whole.push_str(&line[1..]);
        }
    }
    whole.split_off(usize::from(!whole.is_empty()))
}

/// The lines with the bytes before them.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    let lines = text.split([' ', '\t']).map(move |line| {
        let offset = next;
        next += line.len() + 1;
        (offset, line)
    });
    lines.filter(|(_, line)| !line.is_empty())
}

/// `FREQ=WEEKLY;BYDAY=MO` in capitals, each name once.
fn read_parts(text: &str, mut offset: usize) -> Result<Vec<Part<'_>>, BadSchedule> {
    const KNOWN: [&str; 14] = [
        "FREQ",
        "INTERVAL",
        "COUNT",
        "UNTIL",
        "WKST",
        "BYMONTH",
        "BYMONTHDAY",
        "BYYEARDAY",
        "BYWEEKNO",
        "BYDAY",
        "BYHOUR",
        "BYMINUTE",
        "BYSECOND",
        "BYSETPOS",
    ];
    let mut parts: Vec<Part<'_>> = Vec::new();
    for text in text.split(';') {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let part = Part { name, value, offset };
        if text.is_empty() {
            return Err(BadSchedule::new("rrule", "empty part").at(offset).instead("remove the `;`"));
        }
        if !KNOWN.contains(&name) {
            let known = KNOWN.join(", ");
            let name = crate::invalid::cut(name, 32);
            let wrong = BadSchedule::new("rrule", format_args!("{name} is not supported")).at(offset);
            return Err(wrong.instead(format_args!("use one of {known}")));
        }
        if parts.iter().any(|known| known.name == name) {
            return Err(part.refuse("it occurs twice"));
        }
        parts.push(part);
        offset += text.len() + 1;
    }
    Ok(parts)
}

/// Refuses what the RFC does not let stand together, where implementations differ or ignore it.
fn refuse_misplaced<'a>(unit: Unit, get: &impl Fn(&str) -> Option<Part<'a>>) -> Result<(), BadSchedule> {
    let counts_weekdays = get("BYDAY").is_some_and(|part| part.value.contains(|c: char| c.is_ascii_digit()));
    let misplaced = [
        ("BYMONTHDAY", unit == Unit::Week, "cannot be combined with FREQ=WEEKLY"),
        (
            "BYYEARDAY",
            matches!(unit, Unit::Day | Unit::Week | Unit::Month),
            "requires FREQ=YEARLY, FREQ=HOURLY or shorter",
        ),
        ("BYWEEKNO", unit != Unit::Year, "requires FREQ=YEARLY"),
        ("BYWEEKNO", get("BYDAY").is_none(), "requires BYDAY"),
        ("BYWEEKNO", counts_weekdays, "cannot be combined with a number in BYDAY"),
        ("COUNT", get("UNTIL").is_some(), "cannot be combined with UNTIL"),
    ];
    for (name, is_misplaced, words) in misplaced {
        if let Some(part) = get(name).filter(|_| is_misplaced) {
            return Err(part.refuse(words));
        }
    }
    Ok(())
}
