//! Which days of a month match: by their number, by their weekday, or by both.

use super::super::BadSchedule;
use super::super::wall::{Date, days_in_month, digits, weekday_of};
use super::Dialect;
use super::field::{Values, Written};
use super::unit::{DAY, WEEKDAY};

/// The fields for day and weekday together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Days {
    /// Days by number: bit 1 for the first.
    pub number: u64,
    /// Days counted from the end of the month: bit 0 for the last.
    pub from_end: u64,
    /// The working day next to the day of that number, in the same month.
    pub near: u64,
    /// The last working day.
    pub last_working: bool,
    /// Weekdays: bit 0 for Sunday.
    pub weekday: u64,
    /// The n-th of a weekday: for each weekday a bit for each n, from 1.
    pub nth: [u8; 7],
    /// The last of a weekday: bit 0 for Sunday.
    pub last_of: u64,
    /// One of both fields has to match, not both.
    pub either: bool,
}

/// Every seventh day of a month, beginning with day 0.
const WEEKLY: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;

impl Days {
    pub(super) fn read(day: Written<'_>, weekday: Written<'_>) -> Result<Self, BadSchedule> {
        let mut days = Self::default();
        days.read_numbers(day)?;
        days.read_weekdays(weekday)?;
        let given = |field: Written<'_>| !matches!(field.text, "*" | "?");
        if day.dialect == Dialect::Ncrontab || !given(day) || !given(weekday) {
            return Ok(days);
        }
        // The crontab of Unix takes a field that begins with a star for one that was not given, other programs do not.
        for field in [day, weekday] {
            if field.text.starts_with('*') {
                let wrong =
                    format_args!("with both day and weekday set, cron programs disagree on `{}`", field.text);
                let full = field.text.replacen('*', &format!("{}-{}", field.unit.min, field.unit.max), 1);
                let matches_all = matches!(field.text, "*/1");
                let advice = if matches_all {
                    format!("write `*` to match only the other field, or `{full}` to match every day")
                } else {
                    format!("write `{full}` for \"or\", or use the ncrontab dialect for \"and\"")
                };
                return Err(field.refuse(wrong).instead(advice));
            }
        }
        // With "or", a full field matches every day on its own, and the other field adds nothing.
        if days.number == DAY.all() || days.weekday == WEEKDAY.all() {
            return Ok(Self { number: DAY.all(), weekday: WEEKDAY.all(), ..Self::default() });
        }
        days.either = true;
        Ok(days)
    }

    fn read_numbers(&mut self, field: Written<'_>) -> Result<(), BadSchedule> {
        let unix = field.dialect == Dialect::Unix;
        if unix && field.text == "?" {
            self.number = DAY.all();
            return Ok(());
        }
        for element in field.elements() {
            let text = element.text;
            match text {
                "L" | "l" if unix => self.from_end |= 1,
                _ if unix && text.eq_ignore_ascii_case("LW") => self.last_working = true,
                _ if unix && (text.starts_with("L-") || text.starts_with("l-")) => {
                    self.from_end |= 1 << days_before_the_last(element)?
                }
                _ if unix && text.len() > 1 && text.ends_with(['W', 'w']) => {
                    self.near |= 1 << Written { text: &text[..text.len() - 1], ..element }.value()?;
                }
                _ => self.number |= element.element()?.bits,
            }
        }
        Ok(())
    }

    fn read_weekdays(&mut self, field: Written<'_>) -> Result<(), BadSchedule> {
        let unix = field.dialect == Dialect::Unix;
        if unix && field.text == "?" {
            self.weekday = WEEKDAY.all();
            return Ok(());
        }
        for element in field.elements() {
            let text = element.text;
            if unix && text.eq_ignore_ascii_case("l") {
                let wrong = element.refuse("`L` alone is not a weekday");
                return Err(wrong.instead("write 6 for Saturday, or 5L for the last Friday of a month"));
            }
            if unix && text.contains(['#', 'L', 'l']) && text.contains('-') {
                let wrong = element.refuse(format_args!("`{text}` counts more than one weekday"));
                return Err(wrong.instead("write each of them, such as MON#1,TUE#1 or MONL,TUEL"));
            }
            if let Some((weekday, nth)) = text.split_once('#').filter(|_| unix) {
                let weekday = Written { text: weekday, ..element }.value()? % 7;
                let Some(nth @ 1..=5) = digits(nth) else {
                    let wrong = element.refuse(format_args!("`{text}` does not count from 1 to 5"));
                    return Err(wrong.instead("write FRI#1 to FRI#5, or FRIL for the last one"));
                };
                self.nth[usize::from(weekday)] |= 1 << nth;
            } else if unix && text.len() > 1 && text.ends_with(['L', 'l']) && element.value().is_err() {
                let weekday = Written { text: &text[..text.len() - 1], ..element }.value()? % 7;
                self.last_of |= 1 << weekday;
            } else {
                let Values { bits, .. } = element.element()?;
                self.weekday |= bits;
            }
        }
        Ok(())
    }

    /// The days of a month that match, one bit each.
    pub(super) fn of(&self, year: i32, month: u8) -> u64 {
        let length = days_in_month(year, month);
        let first = weekday_of(Date { year, month, day: 1 }.days());
        let all = (2_u64 << length) - 2;
        let number = self.numbers(length, first);
        let weekday = self.weekdays(length, first);
        all & if self.either { number | weekday } else { number & weekday }
    }

    fn numbers(&self, length: u8, first: u8) -> u64 {
        let mut days = self.number;
        if self.from_end | self.near == 0 && !self.last_working {
            return days;
        }
        for before in ones(self.from_end).filter(|before| *before < length) {
            days |= 1 << (length - before);
        }
        for day in ones(self.near).filter(|day| *day <= length) {
            days |= 1 << nearest_working_day(day, length, first);
        }
        if self.last_working {
            days |= 1 << nearest_working_day(length, length, first);
        }
        days
    }

    fn weekdays(&self, length: u8, first: u8) -> u64 {
        if self.weekday == WEEKDAY.all() {
            return u64::MAX;
        }
        let mut days = 0;
        for weekday in ones(self.weekday) {
            days |= WEEKLY << first_of(weekday, first);
        }
        for (weekday, nth) in (0..).zip(self.nth) {
            for nth in ones(nth.into()) {
                days |= 1 << (first_of(weekday, first) + 7 * (nth - 1));
            }
        }
        for weekday in ones(self.last_of) {
            let first = first_of(weekday, first);
            days |= 1 << (first + (length - first) / 7 * 7);
        }
        days
    }
}

/// The first day of a month that is a `weekday`, if the first of the month is a `first`.
fn first_of(weekday: u8, first: u8) -> u8 {
    1 + (weekday + 7 - first) % 7
}

/// The day itself, or the Friday or Monday next to it, without leaving the month.
fn nearest_working_day(day: u8, length: u8, first: u8) -> u8 {
    match (first + day - 1) % 7 {
        6 if day > 1 => day - 1,
        6 => day + 2,
        0 if day < length => day + 1,
        0 => day - 2,
        _ => day,
    }
}

fn days_before_the_last(element: Written<'_>) -> Result<u8, BadSchedule> {
    match digits(&element.text[2..]).and_then(|days| u8::try_from(days).ok()) {
        Some(days @ 0..=30) => Ok(days),
        _ => Err(element.refuse(format_args!("`{}` is not one of L-1 to L-30", element.text))),
    }
}

/// The numbers of the bits that are set.
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = u8::try_from(bits.trailing_zeros()).ok().filter(|_| bits != 0)?;
        bits &= bits - 1;
        Some(lowest)
    })
}
