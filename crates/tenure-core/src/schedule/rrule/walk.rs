//! From one slot of a rule to the next.

use super::super::wall::{DAY, Date, Wall};
use super::{Rrule, Unit};
use crate::limits;

impl Rrule {
    /// The first slot at `from` or after it, for units of a day and longer.
    pub(super) fn next_of_days(&self, from: Wall) -> Option<Wall> {
        let first = self.period_with(from.date().days());
        for number in first..first.saturating_add(limits::RRULE_STEPS) {
            let period = self.period(number)?;
            if self.last.is_some_and(|last| period.first * DAY > last.0) {
                return None;
            }
            let days: Vec<i64> = (period.first..period.first + period.days)
                .filter(|day| self.days.has(Date::from_days(*day)))
                .collect();
            if let Some(slot) = self.first_of(&days, from) {
                return Some(slot);
            }
        }
        None
    }

    /// The first slot of a period, among its days, at `from` or after it.
    fn first_of(&self, days: &[i64], from: Wall) -> Option<Wall> {
        let times = &self.times.of_day;
        let slot = |position: usize| {
            Wall(days[position / times.len()] * DAY + i64::from(times[position % times.len()].0))
        };
        let all = days.len() * times.len();
        if self.positions.is_empty() {
            return (0..all).map(slot).find(|slot| *slot >= from);
        }
        let chosen = self.positions.iter().filter_map(|position| {
            let position =
                if *position > 0 { i64::from(*position) - 1 } else { all as i64 + i64::from(*position) };
            usize::try_from(position).ok().filter(|position| *position < all).map(slot)
        });
        chosen.filter(|slot| *slot >= from).min()
    }

    /// The first slot at `from` or after it, for units shorter than a day.
    pub(super) fn next_within_days(&self, from: Wall) -> Option<Wall> {
        let unit = match self.unit {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour | Unit::Day | Unit::Week | Unit::Month | Unit::Year => 3600,
        };
        let begin = self.start.0.div_euclid(unit) * unit;
        let step = unit * self.interval;
        let mut at = from.0.div_euclid(unit) * unit;
        for _ in 0..limits::RRULE_STEPS_IN_DAYS {
            // On the grid of the interval, at the target or after it.
            let begins = Wall(begin + (at - begin + step - 1).div_euclid(step).max(0) * step);
            let date = begins.date();
            if date.year > Date::LAST_YEAR || self.last.is_some_and(|last| begins > last) {
                return None;
            }
            let second = i64::from(begins.time().0);
            at = if !self.days.has(date) {
                begins.next_midnight().0
            } else if self.times.hours & 1 << (second / 3600) == 0 {
                begins.0 - second % 3600 + 3600
            } else if unit <= 60 && self.times.minutes & 1 << (second / 60 % 60) == 0 {
                begins.0 - second % 60 + 60
            } else if let Some(slot) = self.first_in_unit(begins, unit, from) {
                return Some(slot);
            } else {
                begins.0 + unit
            };
        }
        None
    }

    /// The first slot in an hour, minute or second, at `from` or after it.
    fn first_in_unit(&self, begins: Wall, unit: i64, from: Wall) -> Option<Wall> {
        let mut at = begins.0.max(from.0);
        while at < begins.0 + unit {
            let second = Wall(at).time().0;
            if self.times.minutes & 1 << (second / 60 % 60) == 0 {
                at += 60 - i64::from(second % 60);
            } else if self.times.seconds & 1 << (second % 60) == 0 {
                at += 1;
            } else {
                return Some(Wall(at));
            }
        }
        None
    }
}
