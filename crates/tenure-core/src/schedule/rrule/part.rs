//! The parts of a rule, `NAME=value`, and what they say of days and times.

use super::super::BadSchedule;
use super::super::cron::ones;
use super::super::wall::{TimeOfDay, Wall, digits};
use super::both_ends::BothEnds;
use super::{ALL_MONTHS, DayFilter, TimeFilter, Unit, Weekdays};
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
    pub(super) fn both_ends(&self, most: i32) -> Result<BothEnds, BadSchedule> {
        self.value.split(',').map(|text| self.signed(text, most)).collect()
    }

    pub(super) fn signed(&self, text: &str, most: i32) -> Result<i32, BadSchedule> {
        let plain = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number = digits(plain).and_then(|number| i32::try_from(number).ok());
        match number {
            Some(number) if (1..=most).contains(&number) => {
                Ok(if text.starts_with('-') { -number } else { number })
            }
            _ => Err(self
                .refuse(format_args!("`{text}` is out of range"))
                .instead(format_args!("1 to {most} or -1 to -{most}"))),
        }
    }

    /// Numbers within bounds, one bit each.
    pub(super) fn bits(&self, low: u32, high: u32) -> Result<u64, BadSchedule> {
        self.value.split(',').try_fold(0, |bits, text| match digits(text) {
            Some(number) if (low..=high).contains(&number) => Ok(bits | 1 << number),
            _ => Err(self
                .refuse(format_args!("`{text}` is out of range"))
                .instead(format_args!("{low} to {high}"))),
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
        month_days: get("BYMONTHDAY").map(|part| part.both_ends(31)).transpose()?,
        year_days: get("BYYEARDAY").map(|part| part.both_ends(366)).transpose()?,
        weeks: get("BYWEEKNO").map(|part| part.both_ends(53)).transpose()?,
        week_start: get("WKST").map_or(Ok(1), |part| weekday(&part, part.value))?,
        weekdays: get("BYDAY").map(|part| weekdays(&part, unit)).transpose()?,
        in_year: unit == Unit::Year && month.is_none(),
    };
    // What is not given is as at the start.
    let date = start.date();
    let day = BothEnds::from_iter([date.day.into()]);
    let no_day = filter.month_days.is_none() && filter.year_days.is_none() && filter.weekdays.is_none();
    match unit {
        Unit::Year if no_day && month.is_none() => {
            filter.months = 1 << date.month;
            filter.month_days = Some(day);
        }
        Unit::Year | Unit::Month if no_day => filter.month_days = Some(day),
        Unit::Week if no_day => {
            filter.weekdays = Some(Weekdays { each: 1 << date.weekday(), ..Weekdays::default() })
        }
        Unit::Second | Unit::Minute | Unit::Hour | Unit::Day | Unit::Week | Unit::Month | Unit::Year => {}
    }
    Ok(filter)
}

/// `MO`, `2TU`, `-1FR`.
fn weekdays(part: &Part<'_>, unit: Unit) -> Result<Weekdays, BadSchedule> {
    let most = if unit == Unit::Year { 53 } else { 5 };
    let mut weekdays = Weekdays::default();
    for text in part.value.split(',') {
        let cut = text.len().saturating_sub(2);
        let (nth, name) = text.split_at_checked(cut).unwrap_or(("", text));
        let weekday = weekday(part, name)?;
        if nth.is_empty() {
            weekdays.each |= 1 << weekday;
            continue;
        }
        if unit < Unit::Month {
            return Err(
                part.refuse(format_args!("`{text}` counts weekdays, which requires MONTHLY or YEARLY"))
            );
        }
        weekdays.nth[usize::from(weekday)].insert(part.signed(nth, most)?);
    }
    Ok(weekdays)
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
        None => Ok((2 << most) - 1),
    };
    let mut times = TimeFilter {
        hours: of("BYHOUR", 23, unit > Unit::Hour, second / 3600)?,
        minutes: of("BYMINUTE", 59, unit > Unit::Minute, second / 60 % 60)?,
        seconds: of("BYSECOND", 59, unit > Unit::Second, second % 60)?,
        of_day: Vec::new(),
        of_hour: None,
    };
    if unit < Unit::Day {
        return Ok(times);
    }
    let number = times.hours.count_ones() * times.minutes.count_ones() * times.seconds.count_ones();
    if number as usize > limits::SCHEDULE_TIMES {
        let wrong = BadSchedule::new("rrule", format_args!("{number} times in a day"));
        return Err(wrong.instead("use FREQ=HOURLY or shorter"));
    }
    times.of_day = ones(times.hours)
        .flat_map(|hour| ones(times.minutes).map(move |minute| u32::from(hour) * 60 + u32::from(minute)))
        .flat_map(|minute| ones(times.seconds).map(move |second| TimeOfDay(minute * 60 + u32::from(second))))
        .collect();
    Ok(times)
}

impl TimeFilter {
    /// Keeps the times at these positions within each hour, minute or second, which all have the same ones.
    pub(super) fn select(&mut self, unit: Unit, positions: &[i32]) {
        let Some(length) = unit.seconds().and_then(|length| u32::try_from(length).ok()) else {
            return;
        };
        let of_unit: Vec<u32> = (0..3600)
            .filter(|second| self.minutes >> (second / 60) & self.seconds >> (second % 60) & 1 != 0)
            .collect();
        let selected = of_unit.chunk_by(|a, b| a / length == b / length).flat_map(|times| {
            let place = |position: &i32| match position {
                1.. => usize::try_from(*position).ok()?.checked_sub(1),
                _ => times.len().checked_sub(usize::try_from(position.unsigned_abs()).ok()?),
            };
            let mut times: Vec<u32> =
                positions.iter().filter_map(|position| times.get(place(position)?).copied()).collect();
            times.sort_unstable();
            times.dedup();
            times
        });
        self.of_hour = Some(selected.collect());
    }
}
