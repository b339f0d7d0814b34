//! What a field counts: its bounds and its names.

use super::Dialect;

/// One of the six fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub name: &'static str,
    pub min: u8,
    /// The last value that `*` stands for.
    pub max: u8,
    /// The full names of the values, beginning with `min`.
    pub names: &'static [&'static str],
}

pub(super) const SECOND: Unit = Unit { name: "second", min: 0, max: 59, names: &[] };
pub(super) const MINUTE: Unit = Unit { name: "minute", min: 0, max: 59, names: &[] };
pub(super) const HOUR: Unit = Unit { name: "hour", min: 0, max: 23, names: &[] };
pub(super) const DAY: Unit = Unit { name: "day", min: 1, max: 31, names: &[] };
pub(super) const MONTH: Unit = Unit { name: "month", min: 1, max: 12, names: MONTHS };
pub(super) const WEEKDAY: Unit = Unit { name: "weekday", min: 0, max: 6, names: WEEKDAYS };

/// The months in English.
pub(crate) const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The weekdays in English, from Sunday on.
pub(crate) const WEEKDAYS: &[&str] =
    &["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Unit {
    /// The last number that may be written: in the crontab of Unix, Sunday is 7 as well.
    pub(super) fn last(&self, dialect: Dialect) -> u8 {
        match dialect {
            Dialect::Unix if *self == WEEKDAY => 7,
            Dialect::Unix | Dialect::Ncrontab => self.max,
        }
    }

    /// Returns the values that may be written: `1 to 12, or Jan to Dec`.
    pub(super) fn allowed(&self, dialect: Dialect) -> String {
        let numbers = format!("{} to {}", self.min, self.last(dialect));
        match self.names {
            [first, .., last] => format!("{numbers}, or {} to {}", &first[..3], &last[..3]),
            _ => numbers,
        }
    }

    /// All values, one bit each.
    pub(super) fn all(&self) -> u64 {
        bits(self.min, self.max, 1)
    }

    /// A value as it would be written: by its short name if it has one and `named` says so.
    pub(super) fn show(&self, value: u8, named: bool) -> String {
        let name = self.names.get(usize::from(value.wrapping_sub(self.min)));
        match name {
            Some(name) if named => name[..3].to_owned(),
            _ => value.to_string(),
        }
    }
}

/// The bits from `low` to `high` in steps.
pub(super) fn bits(low: u8, high: u8, step: u8) -> u64 {
    (low..=high).step_by(usize::from(step.max(1))).fold(0, |bits, value| bits | 1 << value)
}
