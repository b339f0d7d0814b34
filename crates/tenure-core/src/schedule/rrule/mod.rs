//! Recurrence rules of calendars: a part of RFC 5545, and no part of it silently left out.

mod parse;
mod part;
mod periods;
mod walk;

use std::fmt;
use std::sync::Arc;

use super::rule::Repeats;
use super::wall::{Date, TimeOfDay, Wall, days_in_month, is_leap};
use crate::Timestamp;

/// A recurrence rule of RFC 5545 with the local time at which it starts.
///
/// It knows FREQ from SECONDLY to YEARLY, INTERVAL, COUNT, UNTIL, WKST, and BYMONTH, BYMONTHDAY, BYYEARDAY, BYDAY,
/// BYHOUR, BYMINUTE, BYSECOND and BYSETPOS where the RFC lets them stand. Anything else is refused by name. The start
/// is a slot only if it matches the rule.
///
/// ```
/// use tenure_core::schedule::Schedule;
///
/// let last_working_day = "DTSTART;TZID=Europe/Berlin:20260101T170000 \
///     RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1";
/// let schedule = Schedule::parse(last_working_day)?;
/// let next = schedule.next_after("2026-05-01T00:00:00Z".parse()?).unwrap();
/// assert_eq!(next.to_string(), "2026-05-29T15:00:00.000000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rrule {
    text: Arc<str>,
    start: Wall,
    unit: Unit,
    interval: i64,
    /// The first day of a week, 0 for Sunday.
    week_start: u8,
    days: DayFilter,
    times: TimeFilter,
    /// Positions in the set of a period, from 1 or from -1.
    positions: Vec<i32>,
    /// No local time after it.
    last: Option<Wall>,
    /// No instant after it.
    until: Option<Timestamp>,
}

const ALL_MONTHS: u64 = 0b1_1111_1111_1110;

/// What FREQ counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::schedule) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// Which days match.
#[derive(Debug, Clone, Default)]
pub(super) struct DayFilter {
    /// Bit 1 for January. All, if no month was given.
    months: u64,
    /// From 1 or from -1; empty for all.
    month_days: Vec<i32>,
    year_days: Vec<i32>,
    /// The weekday, and which of them: from 1 or from -1, and 0 for each.
    weekdays: Vec<(i32, u8)>,
    /// Whether the weekdays are counted in the year and not in the month.
    in_year: bool,
}

/// Which times of a day match.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeFilter {
    /// One bit each. Where nothing was given: that of the start if the unit is longer, or all.
    hours: u64,
    minutes: u64,
    seconds: u64,
    /// All of a day, sorted; for units of a day and longer.
    of_day: Vec<TimeOfDay>,
}

impl Rrule {
    /// The rule and its start, as they would be written. The zone is the schedule's.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The last instant at which it may fire, if the rule gives one as an instant.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until
    }

    pub(super) fn unit(&self) -> Unit {
        self.unit
    }

    pub(super) fn interval(&self) -> i64 {
        self.interval
    }

    pub(super) fn weekdays(&self) -> &[(i32, u8)] {
        &self.days.weekdays
    }

    pub(super) fn month_days(&self) -> &[i32] {
        &self.days.month_days
    }

    pub(super) fn year_days(&self) -> &[i32] {
        &self.days.year_days
    }

    /// The months, unless all are meant.
    pub(super) fn months(&self) -> Option<u64> {
        Some(self.days.months).filter(|months| *months != ALL_MONTHS)
    }

    pub(super) fn times_of_day(&self) -> &[TimeOfDay] {
        &self.times.of_day
    }

    pub(super) fn positions(&self) -> &[i32] {
        &self.positions
    }

    pub(crate) fn repeats(&self) -> Repeats {
        if self.unit < Unit::Day { Repeats::Twice } else { Repeats::Once }
    }

    /// The first local time at `from` or after it.
    pub(crate) fn next(&self, from: Wall) -> Option<Wall> {
        let from = from.max(self.start);
        if self.last.is_some_and(|last| from > last) {
            return None;
        }
        let next = if self.unit < Unit::Day { self.next_within_days(from) } else { self.next_of_days(from) };
        next.filter(|next| self.last.is_none_or(|last| *next <= last))
    }
}

impl DayFilter {
    pub(super) fn has(&self, date: Date) -> bool {
        if self.months & 1 << date.month == 0 {
            return false;
        }
        let day = i32::from(date.day);
        let length = i32::from(days_in_month(date.year, date.month));
        // Few rules count days in the year, and to count them takes longer than all the rest.
        let in_year = || (day_of_year(date), if is_leap(date.year) { 366 } else { 365 });
        let is_nth = |nth: i32| {
            let (day, length) = if self.in_year { in_year() } else { (day, length) };
            if nth > 0 { (day - 1) / 7 + 1 == nth } else { (length - day) / 7 + 1 == -nth }
        };
        let weekday = || {
            let weekday = date.weekday();
            self.weekdays.iter().any(|(nth, day)| *day == weekday && (*nth == 0 || is_nth(*nth)))
        };
        let year_day = || {
            let (day, length) = in_year();
            either_end(&self.year_days, day, length)
        };
        either_end(&self.month_days, day, length)
            && (self.weekdays.is_empty() || weekday())
            && (self.year_days.is_empty() || year_day())
    }
}

/// Is a number among those that are counted from 1 or from -1? All are, if none was given.
fn either_end(given: &[i32], number: i32, length: i32) -> bool {
    given.is_empty() || given.iter().any(|day| *day == number || *day == number - length - 1)
}

fn day_of_year(date: Date) -> i32 {
    let before = Date { month: 1, day: 1, ..date }.days();
    i32::try_from(date.days() - before).unwrap_or(0) + 1
}

impl PartialEq for Rrule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rrule {}

impl fmt::Display for Rrule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
