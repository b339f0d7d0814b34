//! Recurrence rules in words.

use super::super::rrule::{Rrule, Unit};
use super::words::{and, months_of, nth, ordinal, weekdays_of};

impl Rrule {
    pub(super) fn describe(&self) -> String {
        let mut words = vec![self.every()];
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
        if let Some(months) = self.months() {
            words.push(format!("in {}", months_of(months)));
        }
        let times: Vec<String> = self.times_of_day().iter().take(7).map(ToString::to_string).collect();
        match times.len() {
            0 => {}
            7 => words.push("several times a day".to_owned()),
            _ => words.push(format!("at {}", and(&times))),
        }
        let positions: Vec<String> = self.positions().iter().map(|position| counted(*position, "")).collect();
        if !positions.is_empty() {
            words.push(format!("(only {} of them)", and(&positions)));
        }
        words.join(" ")
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
