//! From one match to the next, by bits: a step for each month at most, never one for each second.

use super::super::wall::{Date, TimeOfDay, Wall};
use super::Matcher;

/// The Gregorian calendar repeats after 400 years, weekdays included: what does not come by then never does.
const MONTHS: u32 = 400 * 12;

impl Matcher {
    /// The first match at `from` or after it.
    pub(super) fn next(&self, from: Wall) -> Option<Wall> {
        let Date { mut year, mut month, day } = from.date();
        let first_year = self.year_from(year)?;
        if first_year > year {
            // December of the year before, so that the search goes on with the first month.
            (year, month) = (first_year - 1, 12);
        } else if self.month & 1 << month != 0 {
            let days = self.days.of(year, month);
            if days & 1 << day != 0
                && let Some(time) = self.time(from.time())
            {
                return Some(Wall::new(Date { year, month, day }, time));
            }
            if let Some(day) = at_least(days, day + 1) {
                return Some(Wall::new(Date { year, month, day }, self.first));
            }
        }
        for _ in 0..MONTHS {
            match at_least(self.month, month + 1) {
                Some(next) => month = next,
                None => (year, month) = (self.year_from(year + 1)?, at_least(self.month, 1)?),
            }
            if year > Date::LAST_YEAR {
                return None;
            }
            if let Some(day) = at_least(self.days.of(year, month), 1) {
                return Some(Wall::new(Date { year, month, day }, self.first));
            }
        }
        None
    }

    /// The first year at `from` or after it that matches.
    fn year_from(&self, from: i32) -> Option<i32> {
        self.years.as_ref().map_or(Some(from), |years| years.from(from))
    }

    /// How many matches there are in so many minutes from a full one on, all of them in one hour.
    pub(super) fn within_hour(&self, from: Wall, minutes: u32) -> u64 {
        let (Date { year, month, day }, time) = (from.date(), from.time());
        let is_hour = self.hour & 1 << (time.0 / 3600) != 0;
        if !is_hour
            || self.year_from(year) != Some(year)
            || self.month & 1 << month == 0
            || self.days.of(year, month) & 1 << day == 0
        {
            return 0;
        }
        let first = time.0 / 60 % 60;
        let wanted = (1_u64 << (first + minutes).min(60)) - (1_u64 << first);
        u64::from((self.minute & wanted).count_ones()) * u64::from(self.second.count_ones())
    }

    /// The first time of day that matches, at `from` or after it.
    fn time(&self, from: TimeOfDay) -> Option<TimeOfDay> {
        time_at_least(self.hour, self.minute, self.second, from)
    }
}

/// The first time of day, at `from` or after it, whose hour, minute and second are among those given by their bits.
pub(in crate::schedule) fn time_at_least(
    hours: u64,
    minutes: u64,
    seconds: u64,
    from: TimeOfDay,
) -> Option<TimeOfDay> {
    let part = |number: u32| u8::try_from(number).unwrap_or(0);
    let (hour, minute, second) = (part(from.0 / 3600), part(from.0 / 60 % 60), part(from.0 % 60));
    let (first_minute, first_second) = (at_least(minutes, 0)?, at_least(seconds, 0)?);
    if hours & 1 << hour != 0 {
        if minutes & 1 << minute != 0
            && let Some(second) = at_least(seconds, second)
        {
            return time_of(hour, minute, second);
        }
        if let Some(minute) = at_least(minutes, minute + 1) {
            return time_of(hour, minute, first_second);
        }
    }
    time_of(at_least(hours, hour + 1)?, first_minute, first_second)
}

/// The lowest bit that is set at `least` or above.
fn at_least(bits: u64, least: u8) -> Option<u8> {
    let rest = bits.checked_shr(least.into()).filter(|rest| *rest != 0)?;
    u8::try_from(rest.trailing_zeros()).ok().map(|more| least + more)
}

pub(super) fn time_of(hour: u8, minute: u8, second: u8) -> Option<TimeOfDay> {
    TimeOfDay::new(hour.into(), minute.into(), second.into())
}
