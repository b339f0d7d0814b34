//! From one slot of a rule to the next.

use super::super::wall::{DAY, Date, TimeOfDay, Wall};
use super::periods::Period;
use super::{Rrule, Unit};

impl Rrule {
    /// Returns the first slot at `from` or after it, which is not before the start. Takes off `steps` what it looks at,
    /// and ends at 0: at most a step for each day, so that they say how far it looks.
    pub(super) fn search(&self, from: Wall, steps: &mut u32) -> Option<Wall> {
        let mut day = from.date().days();
        loop {
            let period = self.period_from(day)?;
            if self.last.is_some_and(|last| period.first * DAY > last.0) {
                return None;
            }
            if self.unit >= Unit::Day && !self.positions.is_empty() {
                let days = self.days_of(period, steps)?;
                if let Some(slot) = self.first_of(&days, from) {
                    return Some(slot);
                }
                day = period.end();
                continue;
            }
            day = day.max(period.first);
            while day < period.end() {
                *steps = steps.checked_sub(1)?;
                let date = Date::from_days(day);
                if !self.days.has_month(date) {
                    day = date.next_month().days();
                    continue;
                }
                if self.days.has(date)
                    && let Some(slot) = self.first_on(day, from, steps)
                {
                    return Some(slot);
                }
                day += 1;
            }
        }
    }

    /// Returns the days of a period that match.
    fn days_of(&self, period: Period, steps: &mut u32) -> Option<Vec<i64>> {
        let mut days = Vec::new();
        for day in period.first..period.end() {
            *steps = steps.checked_sub(1)?;
            let date = Date::from_days(day);
            if self.days.has_month(date) && self.days.has(date) {
                days.push(day);
            }
        }
        Some(days)
    }

    /// Returns the first slot of a period at the chosen positions among its days, at `from` or after it.
    fn first_of(&self, days: &[i64], from: Wall) -> Option<Wall> {
        let times = &self.times.of_day;
        let all = i64::try_from(days.len() * times.len()).ok()?;
        let slot = |position: i32| {
            let place = i64::from(position) + if position > 0 { -1 } else { all };
            let place = usize::try_from(place).ok().filter(|_| place < all)?;
            Some(Wall(days[place / times.len()] * DAY + i64::from(times[place % times.len()].0)))
        };
        // Those from the first and those from the last are each in the order of time.
        let (first, last) = self.positions.split_at(self.positions.partition_point(|position| *position > 0));
        let of = |half: &[i32]| {
            let has_passed = |position: &i32| slot(*position).map_or(*position < 0, |slot| slot < from);
            half.get(half.partition_point(has_passed)).and_then(|position| slot(*position))
        };
        [of(first), of(last)].into_iter().flatten().min()
    }

    /// Returns the first slot of a day that matches, at `from` or after it.
    pub(super) fn first_on(&self, day: i64, from: Wall, steps: &mut u32) -> Option<Wall> {
        let midnight = day * DAY;
        let mut second = (from.0 - midnight).max(0);
        loop {
            let time = TimeOfDay(u32::try_from(second).ok()?);
            let slot = midnight + i64::from(self.times.at_least(time)?.0);
            let Some(unit) = self.unit.seconds() else {
                return Some(Wall(slot));
            };
            // The interval counts units from that of the start on. A time between two of them is no slot.
            let begin = self.start.0.div_euclid(unit) * unit;
            let from_begin = slot.div_euclid(unit) * unit - begin;
            let left = (-from_begin).rem_euclid(unit * self.interval);
            if left == 0 {
                return Some(Wall(slot));
            }
            second = begin + from_begin + left - midnight;
            if second >= DAY {
                return None;
            }
            *steps = steps.checked_sub(1)?;
        }
    }
}

impl Unit {
    /// Returns its length if that is less than a day.
    pub(super) fn seconds(self) -> Option<i64> {
        match self {
            Self::Second => Some(1),
            Self::Minute => Some(60),
            Self::Hour => Some(3600),
            Self::Day | Self::Week | Self::Month | Self::Year => None,
        }
    }
}
