//! From the text of a rule to a rule.

use super::super::wall::{Date, TimeOfDay, Wall, digits};
use super::super::{BadSchedule, Zone};
use super::{ALL_MONTHS, DayFilter, Rrule, TimeFilter, Unit};
use crate::{Timestamp, limits};

const FREQUENCIES: [(&str, Unit); 7] = [
    ("SECONDLY", Unit::Second),
    ("MINUTELY", Unit::Minute),
    ("HOURLY", Unit::Hour),
    ("DAILY", Unit::Day),
    ("WEEKLY", Unit::Week),
    ("MONTHLY", Unit::Month),
    ("YEARLY", Unit::Year),
];

const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// A start, and whether its text names a zone.
type Start = (Wall, Option<Zone>);

/// One `NAME=value` of a rule.
#[derive(Clone, Copy)]
struct Part<'a> {
    name: &'a str,
    value: &'a str,
    offset: usize,
}

impl Part<'_> {
    fn refuse(&self, wrong: impl std::fmt::Display) -> BadSchedule {
        BadSchedule::new(self.name, wrong).at(self.offset)
    }

    /// Numbers within bounds that count from 1 or from -1.
    fn both_ends(&self, most: i32) -> Result<Vec<i32>, BadSchedule> {
        self.value.split(',').map(|text| self.signed(text, most)).collect()
    }

    fn signed(&self, text: &str, most: i32) -> Result<i32, BadSchedule> {
        let plain = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number = digits(plain).and_then(|number| i32::try_from(number).ok());
        match number {
            Some(number) if (1..=most).contains(&number) => {
                Ok(if text.starts_with('-') { -number } else { number })
            }
            _ => Err(self.refuse(format_args!("`{text}` is not one of 1 to {most} or -1 to -{most}"))),
        }
    }

    /// Numbers within bounds, one bit each.
    fn bits(&self, low: u32, high: u32) -> Result<u64, BadSchedule> {
        self.value.split(',').try_fold(0, |bits, text| match digits(text) {
            Some(number) if (low..=high).contains(&number) => Ok(bits | 1 << number),
            _ => Err(self.refuse(format_args!("`{text}` is not one of {low} to {high}"))),
        })
    }

    fn number(&self, most: u32) -> Result<u32, BadSchedule> {
        match digits(self.value) {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(self.refuse(format_args!("`{}` is not one of 1 to {most}", self.value))),
        }
    }
}

impl Rrule {
    /// Reads `DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO`, on one line or two. A zone named by `TZID`, or by
    /// a `Z` behind the start, comes beside it.
    ///
    /// # Errors
    /// Refuses what is no rule, and by name what is not supported.
    pub fn parse(text: &str) -> Result<(Self, Option<Zone>), BadSchedule> {
        let upper = text.to_ascii_uppercase();
        let mut start: Option<Start> = None;
        let mut rule = None;
        let mut offset = 0;
        for line in text.split([' ', '\t', '\r', '\n']) {
            let upper = &upper[offset..offset + line.len()];
            if upper.starts_with("DTSTART") {
                start = Some(start_of(line).map_err(|bad| bad.moved(offset))?);
            } else if let Some(name) =
                ["EXDATE", "RDATE", "EXRULE"].iter().find(|name| upper.starts_with(*name))
            {
                let wrong = BadSchedule::new(name, format_args!("{name} is not supported")).at(offset);
                return Err(wrong.instead("days to leave out belong into the schedule's calendar"));
            } else if let Some(parts) =
                upper.strip_prefix("RRULE:").or(upper.starts_with("FREQ=").then_some(upper))
            {
                let parts = read_parts(parts, offset + line.len() - parts.len())?;
                if rule.replace(parts).is_some() {
                    return Err(BadSchedule::new("rrule", "there is more than one rule").at(offset));
                }
            } else if !line.is_empty() {
                let shown = crate::invalid::cut(line, 32);
                return Err(
                    BadSchedule::new("rrule", format_args!("{shown:?} is no part of a rule")).at(offset)
                );
            }
            offset += line.len() + 1;
        }
        let Some(parts) = rule else {
            return Err(BadSchedule::new("rrule", "there is no rule").instead("write RRULE:FREQ=DAILY"));
        };
        let Some((start, zone)) = start else {
            let wrong = BadSchedule::new("DTSTART", "a rule counts from its start, and there is none");
            return Err(wrong.instead("write DTSTART:20260105T093000 before it"));
        };
        Ok((Self::of(start, &parts)?, zone))
    }

    fn of(start: Wall, parts: &[Part<'_>]) -> Result<Self, BadSchedule> {
        let get = |name: &str| parts.iter().find(|part| part.name == name).copied();
        let Some(freq) = get("FREQ") else {
            return Err(BadSchedule::new("FREQ", "it is missing").instead("write FREQ=DAILY"));
        };
        let Some((_, unit)) = FREQUENCIES.iter().copied().find(|(name, _)| *name == freq.value) else {
            return Err(freq
                .refuse(format_args!("`{}` is no frequency", freq.value))
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
            week_start: get("WKST").map_or(Ok(1), |part| weekday(&part, part.value))?,
            days: days(start, unit, &get)?,
            times: times(start, unit, &get)?,
            positions: get("BYSETPOS").map_or(Ok(Vec::new()), |part| part.both_ends(366))?,
            last: None,
            until: None,
        };
        if let Some(part) = get("UNTIL") {
            this.end_at(&part)?;
        }
        if this.next(start).is_none() {
            return Err(BadSchedule::new("rrule", "it never comes"));
        }
        if let Some(part) = get("COUNT") {
            this.end_after(part.number(limits::RRULE_COUNT)?);
        }
        Ok(this)
    }

    fn end_at(&mut self, part: &Part<'_>) -> Result<(), BadSchedule> {
        let value = part.value;
        let refuse =
            || part.refuse(format_args!("`{value}` is no end")).instead("write 20261231T235959Z or 20261231");
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

    /// So many slots are all. Their last is looked for once, here.
    fn end_after(&mut self, count: u32) {
        let mut slot = None;
        for _ in 0..count {
            let from = slot.map_or(self.start, |Wall(second)| Wall(second + 1));
            match self.next(from) {
                Some(next) => slot = Some(next),
                None => break,
            }
        }
        self.last = slot;
    }
}

/// `DTSTART:20260105T093000`, with `;TZID=Europe/Berlin` or a `Z`.
fn start_of(line: &str) -> Result<Start, BadSchedule> {
    let refuse = || {
        let wrong = format_args!("{:?} is no start", crate::invalid::cut(line, 64));
        BadSchedule::new("DTSTART", wrong).at(0).instead("write DTSTART;TZID=Europe/Berlin:20260105T093000")
    };
    let (head, value) = line.rsplit_once(':').ok_or_else(refuse)?;
    let zone = match head.split_once(';') {
        None => None,
        Some((_, parameter)) => {
            let (name, zone) = parameter.split_once('=').ok_or_else(refuse)?;
            if !name.eq_ignore_ascii_case("TZID") {
                return Err(refuse());
            }
            Some(Zone::named(zone).map_err(|bad| bad.at(head.len() - zone.len()))?)
        }
    };
    let value = value.to_ascii_uppercase();
    match value.strip_suffix('Z') {
        Some(_) if zone.is_some() => Err(refuse()),
        Some(utc) => Ok((wall(utc).ok_or_else(refuse)?, Some(Zone::utc()))),
        None => Ok((wall(&value).ok_or_else(refuse)?, zone)),
    }
}

/// `FREQ=WEEKLY;BYDAY=MO` in capitals, each name once.
fn read_parts(text: &str, mut offset: usize) -> Result<Vec<Part<'_>>, BadSchedule> {
    const KNOWN: [&str; 13] = [
        "FREQ",
        "INTERVAL",
        "COUNT",
        "UNTIL",
        "WKST",
        "BYMONTH",
        "BYMONTHDAY",
        "BYYEARDAY",
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
        if !KNOWN.contains(&name) {
            let known = KNOWN.join(", ");
            let name = crate::invalid::cut(name, 32);
            let wrong = BadSchedule::new("rrule", format_args!("{name} is not supported")).at(offset);
            return Err(wrong.instead(format_args!("supported are {known}")));
        }
        if parts.iter().any(|known| known.name == name) {
            return Err(part.refuse("it is there twice"));
        }
        parts.push(part);
        offset += text.len() + 1;
    }
    Ok(parts)
}

/// Refuses what the RFC does not let stand together, where implementations differ or ignore it.
fn refuse_misplaced<'a>(unit: Unit, get: &impl Fn(&str) -> Option<Part<'a>>) -> Result<(), BadSchedule> {
    let misplaced = [
        ("BYMONTHDAY", unit == Unit::Week, "does not stand with FREQ=WEEKLY"),
        (
            "BYYEARDAY",
            matches!(unit, Unit::Day | Unit::Week | Unit::Month),
            "stands with YEARLY, HOURLY and shorter only",
        ),
        ("BYSETPOS", unit < Unit::Day, "stands with DAILY and longer only"),
        ("COUNT", get("UNTIL").is_some(), "does not stand with UNTIL"),
    ];
    for (name, is_misplaced, words) in misplaced {
        if let Some(part) = get(name).filter(|_| is_misplaced) {
            return Err(part.refuse(words));
        }
    }
    Ok(())
}

fn days<'a>(
    start: Wall,
    unit: Unit,
    get: &impl Fn(&str) -> Option<Part<'a>>,
) -> Result<DayFilter, BadSchedule> {
    let month = get("BYMONTH").map(|part| part.bits(1, 12)).transpose()?;
    let mut filter = DayFilter {
        months: month.unwrap_or(ALL_MONTHS),
        month_days: get("BYMONTHDAY").map_or(Ok(Vec::new()), |part| part.both_ends(31))?,
        year_days: get("BYYEARDAY").map_or(Ok(Vec::new()), |part| part.both_ends(366))?,
        weekdays: get("BYDAY").map_or(Ok(Vec::new()), |part| weekdays(&part, unit))?,
        in_year: unit == Unit::Year && month.is_none(),
    };
    // What is not given is as at the start.
    let date = start.date();
    let no_day = filter.month_days.is_empty() && filter.year_days.is_empty() && filter.weekdays.is_empty();
    match unit {
        Unit::Year if no_day && month.is_none() => {
            filter.months = 1 << date.month;
            filter.month_days = vec![date.day.into()];
        }
        Unit::Year | Unit::Month if no_day => filter.month_days = vec![date.day.into()],
        Unit::Week if no_day => filter.weekdays = vec![(0, date.weekday())],
        Unit::Second | Unit::Minute | Unit::Hour | Unit::Day | Unit::Week | Unit::Month | Unit::Year => {}
    }
    Ok(filter)
}

/// `MO`, `2TU`, `-1FR`.
fn weekdays(part: &Part<'_>, unit: Unit) -> Result<Vec<(i32, u8)>, BadSchedule> {
    let most = if unit == Unit::Year { 53 } else { 5 };
    part.value
        .split(',')
        .map(|text| {
            let cut = text.len().saturating_sub(2);
            let (nth, name) = text.split_at_checked(cut).unwrap_or(("", text));
            let weekday = weekday(part, name)?;
            if !nth.is_empty() && unit < Unit::Month {
                return Err(part.refuse(format_args!(
                    "`{text}` counts weekdays, which stands with MONTHLY and YEARLY only"
                )));
            }
            Ok((if nth.is_empty() { 0 } else { part.signed(nth, most)? }, weekday))
        })
        .collect()
}

fn weekday(part: &Part<'_>, text: &str) -> Result<u8, BadSchedule> {
    let place = (0..).zip(WEEKDAYS).find(|(_, name)| *name == text);
    place.map(|(number, _)| number).ok_or_else(|| {
        part.refuse(format_args!("`{text}` is no weekday")).instead("write MO, TU, WE, TH, FR, SA or SU")
    })
}

fn times<'a>(
    start: Wall,
    unit: Unit,
    get: &impl Fn(&str) -> Option<Part<'a>>,
) -> Result<TimeFilter, BadSchedule> {
    let second = start.time().0;
    let of = |name: &str, most: u32, longer: bool, at_start: u32| match get(name) {
        Some(part) => part.bits(0, most),
        None if longer => Ok(1 << at_start),
        None => Ok(u64::MAX),
    };
    let mut times = TimeFilter {
        hours: of("BYHOUR", 23, unit > Unit::Hour, second / 3600)?,
        minutes: of("BYMINUTE", 59, unit > Unit::Minute, second / 60 % 60)?,
        seconds: of("BYSECOND", 59, unit > Unit::Second, second % 60)?,
        of_day: Vec::new(),
    };
    if unit < Unit::Day {
        return Ok(times);
    }
    let number = times.hours.count_ones() * times.minutes.count_ones() * times.seconds.count_ones();
    if number as usize > limits::SCHEDULE_TIMES {
        let wrong = BadSchedule::new("rrule", format_args!("{number} times in a day"));
        return Err(wrong.instead("write FREQ=HOURLY or shorter"));
    }
    times.of_day = (0..86_400)
        .filter(|second: &u32| {
            let bit = |bits: u64, number: u32| bits & 1 << number != 0;
            bit(times.hours, second / 3600)
                && bit(times.minutes, second / 60 % 60)
                && bit(times.seconds, second % 60)
        })
        .map(TimeOfDay)
        .collect();
    Ok(times)
}

/// `20260105T093000`.
fn wall(text: &str) -> Option<Wall> {
    let (day, time) = text.split_once('T')?;
    if time.len() != 6 || !time.is_ascii() {
        return None;
    }
    let part = |from: usize| digits(time.get(from..from + 2)?);
    Some(Wall::new(date(day)?, TimeOfDay::new(part(0)?, part(2)?, part(4)?)?))
}

/// `20260105`.
fn date(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.is_ascii() {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[4..6])?, digits(&text[6..])?);
    Date::new(i32::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}
