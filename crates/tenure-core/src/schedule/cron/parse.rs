//! From text to a matcher, refusing what cron programs silently get wrong.

use super::super::BadSchedule;
use super::super::rule::Repeats;
use super::super::text::check_length;
use super::super::wall::{Date, TimeOfDay, Wall, digits};
use super::days::{Days, ones};
use super::field::{Values, Written};
use super::unit::{DAY, HOUR, MINUTE, MONTH, MONTHS, SECOND, Unit, WEEKDAY};
use super::walk::time_of;
use super::years::Years;
use super::{Cron, Dialect, Matcher};

/// The names that the crontab of Unix knows for whole expressions.
const NAMED: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const UNITS: [Unit; 6] = [SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY];

impl Cron {
    /// Reads five fields (minute, hour, day, month, weekday), six (a second before them) or seven (and a year behind
    /// them).
    ///
    /// # Errors
    /// Refuses what is no cron expression, and what other programs accept and then do something else than it says:
    /// ranges that run backwards, steps of 0 or longer than their range, names of fewer than three letters, dates
    /// that never come. The complaint names the field and the column.
    pub fn parse(dialect: Dialect, text: &str) -> Result<Self, BadSchedule> {
        check_length(text)?;
        let lead = text.len() - text.trim_start().len();
        let text = text.trim();
        if text.starts_with('@') {
            return Self::named(dialect, text).map_err(|bad| bad.at(lead));
        }
        Self::fields(dialect, text).map_err(|bad| bad.moved(lead))
    }

    fn named(dialect: Dialect, text: &str) -> Result<Self, BadSchedule> {
        let lower = text.to_ascii_lowercase();
        let Some((name, fields)) = NAMED.iter().find(|(name, _)| *name == lower) else {
            let wrong = BadSchedule::new(
                "cron",
                format_args!("{:?} is not supported", crate::invalid::cut(text, 32)),
            );
            return Err(match lower.as_str() {
                "@reboot" => {
                    wrong.instead("set `run_on_start` on the schedule to run it when the program starts")
                }
                _ => wrong.instead("use @yearly, @monthly, @weekly, @daily or @hourly"),
            });
        };
        if dialect == Dialect::Ncrontab {
            let wrong = BadSchedule::new("cron", format_args!("`{name}` belongs to the unix dialect"));
            return Err(wrong.instead(format_args!("write `{fields}` or `unix {name}`")));
        }
        Ok(Self { text: (*name).into(), ..Self::fields(dialect, fields)? })
    }

    fn fields(dialect: Dialect, text: &str) -> Result<Self, BadSchedule> {
        let tokens: Vec<(usize, &str)> = tokens(text).collect();
        if let Some(misread) = misread(&tokens) {
            return Err(misread);
        }
        let units = match tokens.len() {
            5 => &UNITS[1..],
            6 | 7 => &UNITS[..],
            number => {
                let wrong = BadSchedule::new("cron", format_args!("{number} fields instead of 5 to 7"));
                return Err(wrong.instead(FIELDS));
            }
        };
        let mut written =
            tokens.iter().zip(units).map(|(&(offset, text), &unit)| Written { text, offset, unit, dialect });
        let zero = Written { text: "0", offset: 0, unit: SECOND, dialect };
        let with_seconds = tokens.len() > 5;
        let second = if with_seconds { written.next().unwrap_or(zero) } else { zero };
        let (second, rest) = (second.values()?, written.collect::<Vec<_>>());
        let [minute, hour, day, month, weekday] = rest.as_slice() else {
            return Err(BadSchedule::new("cron", "missing fields").instead(FIELDS));
        };
        let years = tokens.get(6).map_or(Ok(None), |(offset, text)| Years::read(text, *offset))?;
        let (minute, hour) = (minute.values()?, hour.values()?);
        let days = Days::read(*day, *weekday)?;
        let matcher = Matcher {
            second: second.bits,
            minute: minute.bits,
            hour: hour.bits,
            month: month.values()?.bits,
            days,
            years,
            first: first_time(second, minute, hour),
        };
        if matcher.next(Wall::new(Date { year: 1970, month: 1, day: 1 }, TimeOfDay::MIDNIGHT)).is_none() {
            return Err(never(*day, &matcher));
        }
        let points = second.points && minute.points && hour.points;
        let repeats = if points { Repeats::Once } else { Repeats::Twice };
        let words: Vec<&str> = tokens.iter().map(|(_, text)| *text).collect();
        Ok(Self { text: words.join(" ").into(), dialect, matcher, repeats, with_seconds })
    }
}

/// The fields with the bytes before them. Only blanks and tabs part them.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split([' ', '\t'])
        .map(move |token| {
            let offset = next;
            next += token.len() + 1;
            (offset, token)
        })
        .filter(|(_, token)| !token.is_empty())
}

fn first_time(second: Values, minute: Values, hour: Values) -> TimeOfDay {
    let lowest = |values: Values| ones(values.bits).next().unwrap_or(0);
    time_of(lowest(hour), lowest(minute), lowest(second)).unwrap_or(TimeOfDay::MIDNIGHT)
}

const FIELDS: &str = "write [second] minute hour day month weekday [year]; a year needs a second";

/// Finds words that other programs write into an expression.
fn misread(tokens: &[(usize, &str)]) -> Option<BadSchedule> {
    let wrong = |offset: usize, words: std::fmt::Arguments<'_>| BadSchedule::new("cron", words).at(offset);
    if let Some((offset, _)) = tokens.iter().skip(5).find(|(_, text)| text.starts_with('#')) {
        return Some(wrong(*offset, format_args!("a comment")).instead("remove the comment"));
    }
    let is_word = |text: &str| text.len() > 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    match (tokens.first(), tokens.get(5), tokens.get(6)) {
        (Some((offset, first)), _, Some(_)) if is_word(first) => {
            let first = crate::invalid::cut(first, 32);
            let advice = "use `ncrontab` or `unix` before the fields";
            Some(wrong(*offset, format_args!("{first:?} is not a dialect")).instead(advice))
        }
        (_, Some((offset, "in")), Some(_)) => {
            Some(wrong(*offset, format_args!("two time zones")).instead("remove the second time zone"))
        }
        (Some(_), Some((offset, year)), None) if digits(year).is_some_and(|year| year > 1_000) => {
            let wrong = wrong(*offset, format_args!("a year as the 6th field"));
            Some(wrong.instead("write 7 fields, with a second before the minute"))
        }
        _ => None,
    }
}

/// Says that the date never comes, and why if that is plain.
fn never(day: Written<'_>, matcher: &Matcher) -> BadSchedule {
    let months: Vec<&str> =
        ones(matcher.month).filter_map(|month| MONTHS.get(usize::from(month) - 1)).copied().collect();
    let years = if matcher.years.is_some() { " of these years" } else { "" };
    let wrong = day.refuse(format_args!("this day never occurs in {}{years}", months.join(", ")));
    match day.dialect {
        Dialect::Unix => wrong.instead("use `L` for the last day of a month"),
        Dialect::Ncrontab => wrong.instead("use `L` of the unix dialect for the last day of a month"),
    }
}
