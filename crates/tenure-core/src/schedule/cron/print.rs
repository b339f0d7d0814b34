//! A matcher as text again: the shortest list of numbers and ranges.

use super::Cron;
use super::days::ones;
use super::unit::{DAY, HOUR, MINUTE, MONTH, SECOND, Unit, WEEKDAY};

impl Cron {
    /// The expression with its names as numbers, its steps written out and neighbours as ranges, in the form in which
    /// NCrontab prints it. None if it says something that this form cannot, such as `L`.
    #[must_use]
    pub fn normalized(&self) -> Option<String> {
        let matcher = &self.matcher;
        let days = &matcher.days;
        let plain = days.from_end | days.near | days.last_of == 0 && !days.last_working && days.nth == [0; 7];
        if !plain || matcher.years.is_some() {
            return None;
        }
        let mut fields = vec![
            field(MINUTE, matcher.minute),
            field(HOUR, matcher.hour),
            field(DAY, days.number),
            field(MONTH, matcher.month),
            field(WEEKDAY, days.weekday),
        ];
        if self.with_seconds {
            fields.insert(0, field(SECOND, matcher.second));
        }
        Some(fields.join(" "))
    }
}

fn field(unit: Unit, bits: u64) -> String {
    if bits == unit.all() {
        return "*".to_owned();
    }
    let runs: Vec<String> = runs(bits)
        .into_iter()
        .map(|(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") })
        .collect();
    runs.join(",")
}

/// Neighbouring bits together, each run by its first and last.
pub(super) fn runs(bits: u64) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for value in ones(bits) {
        match runs.last_mut() {
            Some((_, high)) if *high + 1 == value => *high = value,
            _ => runs.push((value, value)),
        }
    }
    runs
}
