//! The parts of a rule, `NAME=value`, and what they say of days and times.

use super::super::BadSchedule;
use super::super::wall::{TimeOfDay, Wall, digits};
use super::{ALL_MONTHS, DayFilter, TimeFilter, Unit};
use crate::limits;

const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// One `NAME=value` of a rule.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub name: &'a str,
    pub value: &'a str,
    pub offset: usize,
}

impl Part<'_> {
    pub(super) fn refuse(&self, wrong: impl std::fmt::Display) -> BadSchedule {
        BadSchedule::new(self.name, wrong).at(self.offset)
    }

    /// Numbers within bounds that count from 1 or from -1.
    pub(super) fn both_ends(&self, most: i32) -> Result<Vec<i32>, BadSchedule> {
        self.value.split(',').map(|text| self.signed(text, most)).collect()
    }

    pub(super) fn signed(&self, text: &str, most: i32) -> Result<i32, BadSchedule> {
        let plain = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number = digits(plain).and_then(|number| i32::try_from(number).ok());
        match number {
            Some(number) if (1..=most).contains(&number) => {
                Ok(if text.starts_with('-') { -number } else { number })
            }
            _ => Err(self.refuse(format_args!("`{text}` is outside 1 to {most} and -1 to -{most}"))),
        }
    }

    /// Numbers within bounds, one bit each.
    pub(super) fn bits(&self, low: u32, high: u32) -> Result<u64, BadSchedule> {
        self.value.split(',').try_fold(0, |bits, text| match digits(text) {
            Some(number) if (low..=high).contains(&number) => Ok(bits | 1 << number),
            _ => Err(self.refuse(format_args!("`{text}` is outside {low} to {high}"))),
        })
    }

    pub(super) fn number(&self, most: u32) -> Result<u32, BadSchedule> {
        match digits(self.value) {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(self
                .refuse(format_args!("`{}` is out of range", self.value))
                .instead(format_args!("1 to {most}"))),
        }
    }
}

pub(super) fn days<'a>(
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
                return Err(
                    part.refuse(format_args!("`{text}` counts weekdays, which requires MONTHLY or YEARLY"))
                );
            }
            Ok((if nth.is_empty() { 0 } else { part.signed(nth, most)? }, weekday))
        })
        .collect()
}

pub(super) fn weekday(part: &Part<'_>, text: &str) -> Result<u8, BadSchedule> {
    let place = (0..).zip(WEEKDAYS).find(|(_, name)| *name == text);
    place.map(|(number, _)| number).ok_or_else(|| {
        part.refuse(format_args!("`{text}` is not a weekday")).instead("write MO, TU, WE, TH, FR, SA or SU")
    })
}

pub(super) fn times<'a>(
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
        return Err(wrong.instead("use FREQ=HOURLY or shorter"));
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
