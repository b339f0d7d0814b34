//! What a clock on the wall shows: a date and a time of day, without saying where the clock hangs.

use std::fmt;

pub(crate) const DAY: i64 = 86_400;

/// A local time in whole seconds, counted as if every day had 24 hours, from 1970-01-01 00:00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wall(pub i64);

/// A date of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Date {
    pub year: i32,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

/// A time of day in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TimeOfDay(pub u32);

impl Wall {
    pub(crate) fn new(date: Date, time: TimeOfDay) -> Self {
        Self(date.days() * DAY + i64::from(time.0))
    }

    pub(crate) fn date(self) -> Date {
        Date::from_days(self.0.div_euclid(DAY))
    }

    pub(crate) fn time(self) -> TimeOfDay {
        TimeOfDay(u32::try_from(self.0.rem_euclid(DAY)).unwrap_or(0))
    }

    /// Midnight at the beginning of the next day.
    pub(crate) fn next_midnight(self) -> Self {
        Self((self.0.div_euclid(DAY) + 1) * DAY)
    }

    #[cfg(test)]
    /// Reads `2026-03-29T02:30`, with or without seconds, with a blank or a `T`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', ' '])?;
        Some(Self::new(Date::parse(date)?, TimeOfDay::parse(time)?))
    }
}

impl Date {
    /// The last date that anything is looked for at.
    pub(crate) const LAST_YEAR: i32 = 9999;

    /// A date that exists.
    pub(crate) fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let fits = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
        (fits && (0..=Self::LAST_YEAR).contains(&year)).then_some(Self { year, month, day })
    }

    /// Days since 1970-01-01. The year is thought to begin in March, so that leap days come last.
    pub(crate) fn days(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The other way round.
    pub(crate) fn from_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        // The numbers fit: a month, a day of it, and a year of some thousands.
        Self { year: year as i32, month: month as u8, day: day as u8 }
    }

    /// The first day of the month after it.
    pub(crate) fn next_month(self) -> Self {
        match self.month {
            12 => Self { year: self.year + 1, month: 1, day: 1 },
            month => Self { month: month + 1, day: 1, ..self },
        }
    }

    /// 0 for Sunday to 6 for Saturday.
    pub(crate) fn weekday(self) -> u8 {
        weekday_of(self.days())
    }

    /// Reads `2026-03-29`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || year.len() != 4 {
            return None;
        }
        Self::new(i32::try_from(digits(year)?).ok()?, two_digits(month)?, two_digits(day)?)
    }
}

impl TimeOfDay {
    pub(crate) const MIDNIGHT: Self = Self(0);

    /// A time that a clock shows, 00:00:00 to 23:59:59.
    pub(crate) fn new(hour: u32, minute: u32, second: u32) -> Option<Self> {
        (hour < 24 && minute < 60 && second < 60).then_some(Self(hour * 3600 + minute * 60 + second))
    }

    /// Reads `09:30` or `09:30:15`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let hour = parts.next().filter(|hour| (1..=2).contains(&hour.len()))?;
        let minute = two_digits(parts.next()?)?;
        let second = parts.next().map_or(Some(0), two_digits)?;
        if parts.next().is_some() {
            return None;
        }
        Self::new(digits(hour)?, minute.into(), second.into())
    }
}

/// 0 for Sunday to 6 for Saturday. The first day of 1970 was a Thursday.
pub(crate) fn weekday_of(days: i64) -> u8 {
    (days + 4).rem_euclid(7) as u8
}

pub(crate) fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A number that consists of digits only: no sign, no blanks.
pub(crate) fn digits(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2).then(|| digits(text)).flatten().and_then(|number| u8::try_from(number).ok())
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = self.date();
        let second = self.time().0;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for TimeOfDay {
    /// Without seconds if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60)?;
        match self.0 % 60 {
            0 => Ok(()),
            second => write!(f, ":{second:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_from_1900_to_2400_is_counted_as_the_calendar_does() {
        let mut expected = jiff::civil::date(1900, 1, 1);
        let (first, last) = (Date::new(1900, 1, 1).unwrap(), Date::new(2400, 12, 31).unwrap());
        for days in first.days()..=last.days() {
            let date = Date::from_days(days);
            assert_eq!(date.to_string(), expected.to_string());
            assert_eq!(date.days(), days);
            assert_eq!(i64::from(date.weekday()), i64::from(expected.weekday().to_sunday_zero_offset()));
            expected = expected.tomorrow().unwrap();
        }
    }

    #[test]
    fn local_times_are_read_and_printed() {
        let wall = Wall::parse("1969-12-31T23:59:58").unwrap();
        assert_eq!(wall, Wall(-2));
        assert_eq!(wall.to_string(), "1969-12-31T23:59:58");
        assert_eq!(TimeOfDay::parse("9:30").unwrap().to_string(), "09:30");
        assert_eq!(TimeOfDay::parse("09:30:05").unwrap().to_string(), "09:30:05");
        for wrong in ["24:00", "9", "9:3", "09:60", "+9:30", "09:30:05:1", "", "009:30"] {
            assert_eq!(TimeOfDay::parse(wrong), None, "{wrong}");
        }
        for wrong in ["2026-02-29", "2026-13-01", "26-01-01", "2026-1-1", "2026-01-01-01"] {
            assert_eq!(Date::parse(wrong), None, "{wrong}");
        }
    }
}
