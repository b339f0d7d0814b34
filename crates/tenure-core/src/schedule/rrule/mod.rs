//! Recurrence rules of calendars: a part of RFC 5545, and no part of it silently left out.

mod both_ends;
mod count;
mod dates;
mod meetings;
mod parse;
mod part;
mod periods;
mod walk;

use std::fmt;
use std::sync::Arc;

use super::cron::time_at_least;
use super::rule::Repeats;
use super::wall::{Date, TimeOfDay, Wall, days_in_month, is_leap};
use super::{Steps, Zone};
use crate::{Timestamp, limits};
use both_ends::BothEnds;
use dates::Exceptions;
use meetings::Meetings;

/// A recurrence rule of RFC 5545 with the local time at which it starts.
///
/// Supports FREQ from SECONDLY to YEARLY, INTERVAL, COUNT, UNTIL, WKST, and BYMONTH, BYMONTHDAY, BYYEARDAY, BYWEEKNO,
/// BYDAY, BYHOUR, BYMINUTE, BYSECOND and BYSETPOS where the RFC lets them stand, and the lines EXDATE and RDATE. Anything
/// else is refused by name. The start is a slot only if it matches the rule. An EXDATE of a whole day skips all its slots.
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
    days: DayFilter,
    times: TimeFilter,
    /// The days on which the interval meets those times, for a unit shorter than a day.
    meetings: Meetings,
    /// Positions in the set of a period, from 1 or from -1, each once.
    positions: Vec<i32>,
    exceptions: Exceptions,
    count: Option<u32>,
    /// The zone in which `until` is the last of as many slots.
    counted_in: Option<Zone>,
    /// The steps that the search for that slot took.
    count_steps: u32,
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
    /// `None` for all.
    month_days: Option<BothEnds>,
    year_days: Option<BothEnds>,
    /// Weeks of the year.
    weeks: Option<BothEnds>,
    /// The day on which they begin, 0 for Sunday.
    week_start: u8,
    weekdays: Option<Weekdays>,
    /// Whether the weekdays are counted in the year and not in the month.
    in_year: bool,
}

/// Which weekdays match.
#[derive(Debug, Clone, Default)]
pub(super) struct Weekdays {
    /// Each of them: bit 0 for Sunday.
    each: u8,
    /// The n-th of them, from Sunday on.
    nth: [BothEnds; 7],
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
    /// The seconds of each hour that positions select, sorted; for shorter units with positions.
    of_hour: Option<Vec<u32>>,
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

    /// The weekdays from Monday on, each with which of them it is: from 1 or from -1, and 0 for each.
    pub(super) fn weekdays(&self) -> Vec<(i32, u8)> {
        let Some(weekdays) = &self.days.weekdays else {
            return Vec::new();
        };
        let from_monday = [1, 2, 3, 4, 5, 6, 0];
        let each = from_monday.into_iter().filter(|day| weekdays.each >> day & 1 != 0).map(|day| (0, day));
        let nth = from_monday
            .into_iter()
            .flat_map(|day| weekdays.nth[usize::from(day)].list().map(move |nth| (nth, day)));
        each.chain(nth).collect()
    }

    pub(super) fn month_days(&self) -> Vec<i32> {
        self.days.month_days.iter().flat_map(BothEnds::list).collect()
    }

    pub(super) fn year_days(&self) -> Vec<i32> {
        self.days.year_days.iter().flat_map(BothEnds::list).collect()
    }

    pub(super) fn weeks(&self) -> Vec<i32> {
        self.days.weeks.iter().flat_map(BothEnds::list).collect()
    }

    /// The months, unless all are meant.
    pub(super) fn months(&self) -> Option<u64> {
        Some(self.days.months).filter(|months| *months != ALL_MONTHS)
    }

    pub(super) fn times_of_day(&self) -> &[TimeOfDay] {
        &self.times.of_day
    }

    /// The bits of the hours, minutes and seconds.
    pub(super) fn times(&self) -> [u64; 3] {
        [self.times.hours, self.times.minutes, self.times.seconds]
    }

    pub(super) fn count(&self) -> Option<u32> {
        self.count
    }

    /// The last local time at which it may fire, if the rule gives one.
    pub(super) fn last(&self) -> Option<Wall> {
        self.last
    }

    pub(super) fn positions(&self) -> &[i32] {
        &self.positions
    }

    pub(crate) fn repeats(&self) -> Repeats {
        if self.unit < Unit::Day { Repeats::Twice } else { Repeats::Once }
    }

    /// The first local time of the rule at `from` or after it, without those of RDATE.
    pub(crate) fn next(&self, from: Wall, steps: &Steps) -> Option<Wall> {
        let most = steps.left().min(limits::RRULE_STEPS);
        let mut left = most;
        let found = self.next_allowed(from, &mut left);
        steps.spend(most - left)?;
        found
    }

    fn next_allowed(&self, mut from: Wall, steps: &mut u32) -> Option<Wall> {
        loop {
            let wall = self.next_within(from, steps)?;
            match self.exceptions.after_excluded(wall) {
                Some(later) => from = later,
                None => return Some(wall),
            }
        }
    }

    /// The first local time of RDATE at `from` or after it.
    pub(crate) fn next_added(&self, from: Wall) -> Option<Wall> {
        self.exceptions.next_added(from)
    }

    /// The numbers of excluded and added times.
    pub(super) fn exceptions(&self) -> (usize, usize) {
        self.exceptions.counts()
    }

    /// Searches in at most `steps` steps, and leaves the unused ones in `steps`: 0 if the search was cut.
    fn next_within(&self, from: Wall, steps: &mut u32) -> Option<Wall> {
        self.search(from.max(self.start), steps).filter(|next| self.last.is_none_or(|last| *next <= last))
    }
}

impl DayFilter {
    pub(super) fn has_month(&self, date: Date) -> bool {
        self.months & 1 << date.month != 0
    }

    /// Is a day of a month that matches among those that match?
    pub(super) fn has(&self, date: Date) -> bool {
        let in_month = (i32::from(date.day), i32::from(days_in_month(date.year, date.month)));
        // Few rules count days in the year, and to count them takes longer than all the rest.
        let in_year = || (day_of_year(date), if is_leap(date.year) { 366 } else { 365 });
        let is_among = |days: &BothEnds, (day, length): (i32, i32)| days.has(day, length + 1 - day);
        self.month_days.as_ref().is_none_or(|days| is_among(days, in_month))
            && self.weekdays.as_ref().is_none_or(|weekdays| {
                weekdays.has(date.weekday(), || if self.in_year { in_year() } else { in_month })
            })
            && self.year_days.as_ref().is_none_or(|days| is_among(days, in_year()))
            && self.weeks.as_ref().is_none_or(|weeks| self.is_in_weeks(weeks, date))
    }
}

impl DayFilter {
    /// Is a date in one of these weeks of its year? A week is of the year in which it has most of its days.
    fn is_in_weeks(&self, weeks: &BothEnds, date: Date) -> bool {
        let passed = (date.weekday() + 7 - self.week_start) % 7;
        let middle = Date::from_days(date.days() + 3 - i64::from(passed));
        let (day, length) = (day_of_year(middle), if is_leap(middle.year) { 366 } else { 365 });
        weeks.has((day - 1) / 7 + 1, (length - day) / 7 + 1)
    }
}

impl Weekdays {
    /// Is a weekday among them that is a day of a month or year of so many days?
    fn has(&self, weekday: u8, place: impl Fn() -> (i32, i32)) -> bool {
        let nth = &self.nth[usize::from(weekday)];
        let is_nth = || {
            let (day, length) = place();
            nth.has((day - 1) / 7 + 1, (length - day) / 7 + 1)
        };
        self.each >> weekday & 1 != 0 || (!nth.is_empty() && is_nth())
    }
}

impl TimeFilter {
    /// The first of the times at `from` or after it.
    fn at_least(&self, from: TimeOfDay) -> Option<TimeOfDay> {
        let Some(of_hour) = &self.of_hour else {
            return time_at_least(self.hours, self.minutes, self.seconds, from);
        };
        let (hour, second) = (from.0 / 3600, from.0 % 3600);
        let in_hour = |hour: u32, from: u32| {
            let second = of_hour.get(of_hour.partition_point(|second| *second < from))?;
            (self.hours & 1 << hour != 0).then_some(TimeOfDay(hour * 3600 + second))
        };
        in_hour(hour, second).or_else(|| (hour + 1..24).find_map(|hour| in_hour(hour, 0)))
    }
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
