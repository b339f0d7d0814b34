//! The lines of a rule that name local times: DTSTART, EXDATE and RDATE.

use std::collections::BTreeSet;

use super::super::wall::{Date, TimeOfDay, Wall, digits};
use super::super::{BadSchedule, Zone};
use crate::limits;

/// A line, and the zone that it names.
pub(super) struct Line {
    pub name: &'static str,
    pub zone: Option<Zone>,
    pub values: Vec<Value>,
    pub offset: usize,
}

/// A value of a line.
#[derive(Clone, Copy)]
pub(super) enum Value {
    Local(Wall),
    Utc(Wall),
    Day(Date),
}

/// The local times that are taken from a rule or added to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Exceptions {
    excluded: BTreeSet<Wall>,
    excluded_days: BTreeSet<Date>,
    added: BTreeSet<Wall>,
}

impl Line {
    /// Reads `EXDATE;TZID=Europe/Berlin:20260105T093000,20260112T093000` or `EXDATE;VALUE=DATE:20260105`.
    pub(super) fn read(name: &'static str, text: &str, offset: usize) -> Result<Self, BadSchedule> {
        let refuse = || {
            let wrong = format_args!("{:?} is not a local time", crate::invalid::cut(text, 64));
            let advice = format_args!("write {name};TZID=Europe/Berlin:20260105T093000");
            BadSchedule::new(name, wrong).at(offset).instead(advice)
        };
        let (head, values) = text.rsplit_once(':').ok_or_else(refuse)?;
        let mut line = Self { name, zone: None, values: Vec::new(), offset };
        let mut at = offset + name.len() + 1;
        for parameter in head.split(';').skip(1) {
            let (key, value) = parameter.split_once('=').ok_or_else(refuse)?;
            match key.to_ascii_uppercase().as_str() {
                "TZID" => {
                    let zone =
                        value.strip_prefix('"').and_then(|zone| zone.strip_suffix('"')).unwrap_or(value);
                    line.zone = Some(Zone::named(zone).map_err(|bad| bad.at(at + key.len() + 1))?);
                }
                "VALUE" if ["DATE", "DATE-TIME"].iter().any(|kind| value.eq_ignore_ascii_case(kind)) => {}
                _ => return Err(refuse()),
            }
            at += parameter.len() + 1;
        }
        for value in values.split(',') {
            line.values.push(Value::read(value).ok_or_else(refuse)?);
        }
        Ok(line)
    }

    /// The start of a rule, and its zone.
    pub(super) fn start(&self) -> Result<(Wall, Option<Zone>), BadSchedule> {
        match self.values.as_slice() {
            [Value::Local(wall)] => Ok((*wall, self.zone.clone())),
            [Value::Day(date)] => Ok((Wall::new(*date, TimeOfDay::MIDNIGHT), self.zone.clone())),
            [Value::Utc(wall)] if self.zone.is_none() => Ok((*wall, Some(Zone::utc()))),
            [Value::Utc(_)] => Err(self.refuse("a start with both TZID and `Z`").instead("remove the `Z`")),
            _ => Err(self
                .refuse("more than one start")
                .instead("write one DTSTART, and RDATE for other times")),
        }
    }

    fn refuse(&self, wrong: impl std::fmt::Display) -> BadSchedule {
        BadSchedule::new(self.name, wrong).at(self.offset)
    }

    /// Local times in the zone of the start.
    fn in_zone(&self, of_start: Option<&Zone>) -> Result<Vec<Value>, BadSchedule> {
        if let Some(zone) = self.zone.as_ref().filter(|zone| Some(*zone) != of_start) {
            let wrong = self.refuse(format_args!("the time zone {zone} is not the one of DTSTART"));
            return Err(wrong.instead("use the same TZID in all lines"));
        }
        let local = |value: &Value| match (*value, of_start) {
            (Value::Utc(wall), Some(zone)) => Ok(Value::Local(zone.wall(wall.0))),
            (Value::Utc(_), None) => {
                Err(self.refuse("a UTC time, but DTSTART has no time zone").instead("remove the `Z`"))
            }
            (value, _) => Ok(value),
        };
        self.values.iter().map(local).collect()
    }
}

impl Value {
    fn read(text: &str) -> Option<Self> {
        let text = text.to_ascii_uppercase();
        match text.strip_suffix('Z') {
            Some(utc) => wall(utc).map(Self::Utc),
            None => wall(&text).map(Self::Local).or_else(|| date(&text).map(Self::Day)),
        }
    }
}

impl Exceptions {
    /// Collects the lines EXDATE and RDATE of a rule.
    pub(super) fn of(lines: &[Line], zone: Option<&Zone>) -> Result<Self, BadSchedule> {
        let mut all = Self::default();
        for line in lines {
            let is_added = line.name == "RDATE";
            for value in line.in_zone(zone)? {
                match value {
                    Value::Day(date) if is_added => {
                        all.added.insert(Wall::new(date, TimeOfDay::MIDNIGHT));
                    }
                    Value::Day(date) => {
                        all.excluded_days.insert(date);
                    }
                    Value::Local(wall) | Value::Utc(wall) => {
                        let set = if is_added { &mut all.added } else { &mut all.excluded };
                        set.insert(wall);
                    }
                }
            }
            let largest = all.added.len().max(all.excluded.len() + all.excluded_days.len());
            if largest > limits::SCHEDULE_TIMES {
                let most = format_args!("at most {} of them", limits::SCHEDULE_TIMES);
                return Err(line.refuse("too many dates").instead(most));
            }
        }
        Ok(all)
    }

    /// Returns the local time from which to search on if a time is excluded.
    pub(super) fn after_excluded(&self, wall: Wall) -> Option<Wall> {
        if self.excluded_days.contains(&wall.date()) {
            return Some(wall.next_midnight());
        }
        self.excluded.contains(&wall).then_some(Wall(wall.0 + 1))
    }

    /// Returns the first added time at `from` or after it that is not excluded.
    pub(super) fn next_added(&self, from: Wall) -> Option<Wall> {
        self.added.range(from..).copied().find(|wall| self.after_excluded(*wall).is_none())
    }

    /// The numbers of excluded and added times.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.excluded.len() + self.excluded_days.len(), self.added.len())
    }
}

impl std::fmt::Display for Exceptions {
    /// The lines in their shortest form, each behind a blank.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let days = self.excluded_days.iter().map(ToString::to_string);
        let excluded = self.excluded.iter().map(ToString::to_string);
        let added = self.added.iter().map(ToString::to_string);
        for (name, values) in
            [("EXDATE", days.chain(excluded).collect::<Vec<_>>()), ("RDATE", added.collect::<Vec<_>>())]
        {
            if !values.is_empty() {
                write!(f, " {name}:{}", values.join(",").replace(['-', ':'], ""))?;
            }
        }
        Ok(())
    }
}

/// `20260105T093000`.
pub(super) fn wall(text: &str) -> Option<Wall> {
    let (day, time) = text.split_once('T')?;
    if time.len() != 6 || !time.is_ascii() {
        return None;
    }
    let part = |from: usize| digits(time.get(from..from + 2)?);
    Some(Wall::new(date(day)?, TimeOfDay::new(part(0)?, part(2)?, part(4)?)?))
}

/// `20260105`.
pub(super) fn date(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.is_ascii() {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[4..6])?, digits(&text[6..])?);
    Date::new(i32::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}
