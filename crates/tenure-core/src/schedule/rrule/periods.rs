//! The days, weeks, months and years of a rule, counted from its start.

use super::super::wall::{Date, days_in_month, is_leap};
use super::{Rrule, Unit};

/// A stretch of whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub first: i64,
    pub days: i64,
}

impl Period {
    /// Returns the day after the last.
    pub(super) fn end(self) -> i64 {
        self.first + self.days
    }
}

impl Rrule {
    /// Returns the first period that has a given day in it or lies after it. For a unit shorter than a day, it is a day.
    pub(super) fn period_from(&self, day: i64) -> Option<Period> {
        if self.unit >= Unit::Day {
            return self.period(self.period_with(day));
        }
        let period = Period { first: self.meetings.from(day)?, days: 1 };
        (Date::from_days(period.first).year <= Date::LAST_YEAR).then_some(period)
    }

    /// The number of the first period that has a given day in it or lies after it, counted in intervals.
    fn period_with(&self, day: i64) -> i64 {
        let units = self.units_at(day) - self.units_at(self.first_day());
        units.div_euclid(self.interval) + i64::from(units.rem_euclid(self.interval) > 0)
    }

    /// The period of that number.
    fn period(&self, number: i64) -> Option<Period> {
        let units = self.units_at(self.first_day()) + number.checked_mul(self.interval)?;
        let period = match self.unit {
            Unit::Week => Period { first: units * 7 + self.week_offset(), days: 7 },
            Unit::Month => {
                let (year, month) = (units.div_euclid(12), u8::try_from(units.rem_euclid(12)).ok()? + 1);
                let date = Date::new(i32::try_from(year).ok()?, month, 1)?;
                Period { first: date.days(), days: days_in_month(date.year, month).into() }
            }
            Unit::Year => {
                let date = Date::new(i32::try_from(units).ok()?, 1, 1)?;
                Period { first: date.days(), days: if is_leap(date.year) { 366 } else { 365 } }
            }
            Unit::Second | Unit::Minute | Unit::Hour | Unit::Day => Period { first: units, days: 1 },
        };
        (Date::from_days(period.first).year <= Date::LAST_YEAR).then_some(period)
    }

    /// Whole units from some beginning to a day.
    fn units_at(&self, day: i64) -> i64 {
        let date = Date::from_days(day);
        match self.unit {
            Unit::Week => (day - self.week_offset()).div_euclid(7),
            Unit::Month => i64::from(date.year) * 12 + i64::from(date.month) - 1,
            Unit::Year => date.year.into(),
            Unit::Second | Unit::Minute | Unit::Hour | Unit::Day => day,
        }
    }

    /// A day on which a week begins. Day 0 was a Thursday.
    fn week_offset(&self) -> i64 {
        i64::from(self.days.week_start) - 4
    }

    fn first_day(&self) -> i64 {
        self.start.date().days()
    }
}
