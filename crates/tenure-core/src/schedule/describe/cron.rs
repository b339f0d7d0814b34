//! Cron expressions in words.

use super::super::cron::{Cron, Days, Dialect, Parts, Years, ones};
use super::super::wall::TimeOfDay;
use super::words::{and, months_of, nth, ordinal, weekdays_of};

/// Most times of a day that a description lists; it shows more as a pattern.
const LISTED: usize = 6;

/// What the values of a field have in common.
pub(super) enum Pattern {
    All,
    /// Every so many, from one on.
    Step {
        every: u8,
        from: u8,
    },
    /// From one to another, without a hole.
    Run {
        first: u8,
        last: u8,
    },
    Some(Vec<u8>),
}

impl Pattern {
    pub(super) fn of(bits: u64, max: u8) -> Self {
        let values: Vec<u8> = ones(bits).collect();
        if values.len() == usize::from(max) + 1 {
            return Self::All;
        }
        let [first, second, .., last] = values.as_slice() else {
            return Self::Some(values);
        };
        let (first, every, last) = (*first, second - first, *last);
        let even = values.windows(2).all(|pair| pair[1] - pair[0] == every);
        match (even, every) {
            (true, 1) => Self::Run { first, last },
            (true, _) if values.len() > 2 && last + every > max && first < every => {
                Self::Step { every, from: first }
            }
            _ => Self::Some(values),
        }
    }
}

impl Cron {
    pub(super) fn describe(&self) -> String {
        let years = self.parts().years.map(|years| format!(" in {}", years_of(years)));
        self.describe_every_year() + &years.unwrap_or_default()
    }

    fn describe_every_year(&self) -> String {
        let parts = self.parts();
        let days = days(parts.days, parts.month);
        if let Some(times) = listed(&parts) {
            return format!("{} at {times}", days.unwrap_or_else(|| "every day".to_owned()));
        }
        let pattern = pattern(parts.second, parts.minute, parts.hour);
        match days {
            Some(days) => format!("{pattern}, {days}"),
            None => pattern,
        }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let parts = self.parts();
        let mut warnings = Vec::new();
        let some_days = parts.days.number != ALL_DAYS && parts.days.weekday != ALL_WEEKDAYS;
        if self.dialect() == Dialect::Ncrontab && some_days {
            let words = "both day and weekday are set, and a date must match both; in the unix dialect, one is enough";
            warnings.push(words.to_owned());
        }
        for (name, whole, bits, max) in [
            ("second", "a minute", parts.second, 59),
            ("minute", "an hour", parts.minute, 59),
            ("hour", "a day", parts.hour, 23),
        ] {
            if let Pattern::Step { every, from } = Pattern::of(bits, max)
                && (max + 1) % every != 0
            {
                let last = ones(bits).last().unwrap_or(from);
                let later = max + 1 - last + from;
                warnings.push(format!(
                    "every {every} {name}s does not divide {whole} evenly: {name} {last} is followed by {name} {from}, {later} later"
                ));
            }
        }
        let lowest = ones(parts.days.number).next().unwrap_or(0);
        if lowest > 28 && !parts.days.either {
            warnings.push(format!("months without a {} are skipped", ordinal(lowest.into())));
        }
        warnings
    }
}

/// `2027`, `2027 to 2030 and 2035`.
fn years_of(years: &Years) -> String {
    let shown = |(first, last): (i32, i32)| match last - first {
        0 => format!("{first}"),
        _ => format!("{first} to {last}"),
    };
    match years.runs().as_slice() {
        [first, .., last] if years.runs().len() > LISTED => {
            format!("some years of {} to {}", first.0, last.1)
        }
        runs => and(&runs.iter().copied().map(shown).collect::<Vec<_>>()),
    }
}

const ALL_DAYS: u64 = (1 << 32) - 2;
const ALL_WEEKDAYS: u64 = 0b111_1111;

/// The times of a day, if they are few.
fn listed(parts: &Parts<'_>) -> Option<String> {
    let number = parts.hour.count_ones() * parts.minute.count_ones() * parts.second.count_ones();
    if number as usize > LISTED {
        return None;
    }
    let mut times = Vec::new();
    for hour in ones(parts.hour) {
        for minute in ones(parts.minute) {
            for second in ones(parts.second) {
                times.push(TimeOfDay::new(hour.into(), minute.into(), second.into())?.to_string());
            }
        }
    }
    Some(and(&times))
}

/// Times of a day by what they have in common, from the bits of their seconds, minutes and hours.
pub(super) fn pattern(second: u64, minute: u64, hour: u64) -> String {
    let mut words = Vec::new();
    let second = (second != 1).then(|| Pattern::of(second, 59));
    words.extend(second.iter().map(|second| unit(second, "second")));
    let minute = Pattern::of(minute, 59);
    match (&second, &minute) {
        (Some(Pattern::All | Pattern::Step { .. }), Pattern::All) => {}
        (Some(_), Pattern::All) => words.push("of every minute".to_owned()),
        _ => words.push(unit(&minute, "minute")),
    }
    let hour = Pattern::of(hour, 23);
    if matches!((&hour, &minute), (Pattern::All, Pattern::Some(_) | Pattern::Run { .. })) {
        words.push("of every hour".to_owned());
    }
    words.extend(hours(&hour));
    words.join(" ")
}

/// The hours, unless all are meant.
pub(super) fn hours(pattern: &Pattern) -> Option<String> {
    Some(match pattern {
        Pattern::All => return None,
        Pattern::Run { first, last } => format!("from {first:02}:00 to {last:02}:59"),
        Pattern::Step { every, from: 0 } => format!("in every {} hour", ordinal((*every).into())),
        Pattern::Step { every, from } => {
            format!("in every {} hour from {from:02}:00 on", ordinal((*every).into()))
        }
        Pattern::Some(hours) => {
            let shown: Vec<String> = hours.iter().map(|hour| format!("{hour:02}:00")).collect();
            format!("in the {} from {}", if hours.len() == 1 { "hour" } else { "hours" }, and(&shown))
        }
    })
}

pub(super) fn unit(pattern: &Pattern, name: &str) -> String {
    match pattern {
        Pattern::All => format!("every {name}"),
        Pattern::Step { every, from: 0 } => format!("every {every} {name}s"),
        Pattern::Step { every, from } => format!("every {every} {name}s from {name} {from} on"),
        Pattern::Run { first, last } => format!("at {name}s {first} to {last}"),
        Pattern::Some(values) => {
            let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("at {name}{} {}", if shown.len() == 1 { "" } else { "s" }, and(&shown))
        }
    }
}

/// The days, unless all are meant.
fn days(days: &Days, months: u64) -> Option<String> {
    let of_month = if months == 0b1_1111_1111_1110 { "every month".to_owned() } else { months_of(months) };
    let numbers = numbers(days);
    let weekdays = weekdays(days, &of_month);
    let in_months = if of_month == "every month" { String::new() } else { format!(" in {of_month}") };
    match (numbers, weekdays) {
        (None, None) if in_months.is_empty() => None,
        (None, None) => Some(format!("every day{in_months}")),
        (Some(numbers), None) => Some(format!("on {numbers} of {of_month}")),
        (None, Some(weekdays)) if weekdays.starts_with("every") => Some(format!("{weekdays}{in_months}")),
        (None, Some(weekdays)) => Some(weekdays),
        (Some(numbers), Some(weekdays)) if days.either => {
            let months = if weekdays.starts_with("every") { in_months } else { String::new() };
            Some(format!("on {numbers} of {of_month} and {weekdays}{months}"))
        }
        (Some(numbers), Some(weekdays)) => {
            let weekdays = weekdays.trim_start_matches("every ").to_owned();
            Some(format!("on {numbers} of {of_month} if it is a {}", weekdays.replace(" and ", " or ")))
        }
    }
}

fn numbers(days: &Days) -> Option<String> {
    if days.number == ALL_DAYS {
        return None;
    }
    let mut words: Vec<String> =
        ones(days.number).map(|day| format!("the {}", ordinal(day.into()))).collect();
    words
        .extend(ones(days.near).map(|day| format!("the working day nearest to the {}", ordinal(day.into()))));
    words.extend(ones(days.from_end).map(|before| match before {
        0 => "the last day".to_owned(),
        1 => "the day before the last".to_owned(),
        _ => format!("the {} day before the last", ordinal(before.into())),
    }));
    if days.last_working {
        words.push("the last working day".to_owned());
    }
    Some(and(&words))
}

fn weekdays(days: &Days, of_month: &str) -> Option<String> {
    if days.weekday == ALL_WEEKDAYS {
        return None;
    }
    let mut words = Vec::new();
    if days.weekday != 0 {
        words.push(format!("every {}", weekdays_of(days.weekday)));
    }
    let mut counted = Vec::new();
    for (weekday, bits) in days.nth.iter().enumerate() {
        counted.extend(
            ones((*bits).into())
                .map(|number| format!("the {} {}", nth(number.into()), weekdays_of(1 << weekday))),
        );
    }
    counted.extend(ones(days.last_of).map(|weekday| format!("the last {}", weekdays_of(1 << weekday))));
    if !counted.is_empty() {
        words.push(format!("on {} of {of_month}", and(&counted)));
    }
    Some(and(&words))
}
