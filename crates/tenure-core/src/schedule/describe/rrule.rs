//! Recurrence rules in words.

use super::super::rrule::{Rrule, Unit};
use super::cron::{Pattern, hours, pattern, unit};
use super::instant;
use super::words::{and, months_of, nth, ordinal, weekdays_of};

/// So many times of a day are listed; more are told as a pattern.
const LISTED: usize = 6;

impl Rrule {
    pub(super) fn describe(&self) -> String {
        let mut words = vec![self.every()];
        words.extend(self.within_units());
        let weekdays: Vec<String> =
            self.weekdays().into_iter().map(|(number, day)| which(number, day)).collect();
        if !weekdays.is_empty() {
            words.push(format!("on {}", and(&weekdays)));
        }
        for (days, of) in [(self.month_days(), "day"), (self.year_days(), "day of the year")] {
            let days: Vec<String> = days.into_iter().map(|day| counted(day, of)).collect();
            if !days.is_empty() {
                words.push(format!("on {}", and(&days)));
            }
        }
        let weeks: Vec<String> = self.weeks().into_iter().map(|week| counted(week, "week")).collect();
        if !weeks.is_empty() {
            words.push(format!("in {} of the year", and(&weeks)));
        }
        if let Some(months) = self.months() {
            words.push(format!("in {}", months_of(months)));
        }
        let times = self.times_of_day();
        match times.len() {
            0 => {}
            1..=LISTED => {
                words.push(format!("at {}", and(&times.iter().map(ToString::to_string).collect::<Vec<_>>())))
            }
            _ => {
                let [hours, minutes, seconds] = self.times();
                words.push(format!("({})", pattern(seconds, minutes, hours)));
            }
        }
        let positions: Vec<String> = self.positions().iter().map(|position| counted(*position, "")).collect();
        if !positions.is_empty() {
            words.push(format!("(only {} of them)", and(&positions)));
        }
        words.join(" ")
    }

    /// The end that the rule itself sets: `5 times`, `until 2026-12-31 23:59 UTC`.
    pub(super) fn describe_end(&self) -> Option<String> {
        match (self.count(), self.last(), self.until()) {
            (Some(1), _, _) => Some("once".to_owned()),
            (Some(count), _, _) => Some(format!("{count} times")),
            (None, Some(last), _) => Some(format!("until {}", last.to_string().replace('T', " "))),
            (None, None, until) => until.map(|until| format!("until {}", instant(until))),
        }
    }

    /// Its own exceptions: `except 2 times`, `and 1 added time`.
    pub(super) fn describe_exceptions(&self) -> Vec<String> {
        let times = |count: usize| if count == 1 { "1 time".to_owned() } else { format!("{count} times") };
        let (excluded, added) = self.exceptions();
        let excluded = (excluded > 0).then(|| format!("without {} of EXDATE", times(excluded)));
        let added = (added > 0).then(|| format!("with {} of RDATE", times(added)));
        excluded.into_iter().chain(added).collect()
    }

    /// The hours, minutes and seconds in which a unit shorter than a day has its slots.
    fn within_units(&self) -> Vec<String> {
        const ALL: u64 = (1 << 60) - 1;
        const FIRST: u64 = 1;
        let [hours_of, minutes, seconds] = self.times();
        let usual = match self.unit() {
            Unit::Hour => (FIRST, FIRST),
            Unit::Minute => (ALL, FIRST),
            Unit::Second => (ALL, ALL),
            Unit::Day | Unit::Week | Unit::Month | Unit::Year => return Vec::new(),
        };
        let mut words = Vec::new();
        for (bits, usual, name) in [(minutes, usual.0, "minute"), (seconds, usual.1, "second")] {
            if bits != usual {
                words.push(places(&Pattern::of(bits, 59), name));
            }
        }
        words.extend(hours(&Pattern::of(hours_of, 23)));
        words
    }

    fn every(&self) -> String {
        let unit = match self.unit() {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Year => "year",
        };
        match self.interval() {
            1 => format!("every {unit}"),
            number => format!("every {number} {unit}s"),
        }
    }
}

/// `at minutes 0 and 30`, `at every 5th second`.
fn places(pattern: &Pattern, name: &str) -> String {
    match pattern {
        Pattern::All => format!("at every {name}"),
        Pattern::Step { every, from: 0 } => format!("at every {} {name}", ordinal((*every).into())),
        Pattern::Step { every, from } => {
            format!("at every {} {name} from {name} {from} on", ordinal((*every).into()))
        }
        Pattern::Run { .. } | Pattern::Some(_) => unit(pattern, name),
    }
}

fn which(number: i32, weekday: u8) -> String {
    let day = weekdays_of(1 << weekday);
    match number {
        0 => day,
        -1 => format!("the last {day}"),
        1.. => format!("the {} {day}", nth(number.unsigned_abs())),
        _ => format!("the {} {day} from the end", nth(number.unsigned_abs())),
    }
}

/// A position that is counted from 1 or from -1.
fn counted(number: i32, of: &str) -> String {
    let of = if of.is_empty() { String::new() } else { format!(" {of}") };
    match number {
        -1 => format!("the last{of}"),
        ..0 => format!("the {}{of} from the end", ordinal(number.unsigned_abs())),
        _ if of == " day" => format!("the {}", ordinal(number.unsigned_abs())),
        _ => format!("the {}{of}", ordinal(number.unsigned_abs())),
    }
}
