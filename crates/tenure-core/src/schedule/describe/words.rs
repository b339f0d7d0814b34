//! Numbers, days and lists as words.

use std::time::Duration;

use super::super::cron::{MONTHS, WEEKDAYS, ones};

/// `a`, `a and b`, `a, b and c`.
pub(super) fn and<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// `1st`, `2nd`, `11th`.
pub(super) fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// `first` to `fifth`.
pub(super) fn nth(number: u32) -> String {
    const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
    let word = usize::try_from(number).ok().and_then(|number| NTH.get(number.wrapping_sub(1)));
    word.map_or_else(|| ordinal(number), |word| (*word).to_owned())
}

/// The weekdays of some bits, from Monday on: `weekday`, `Monday and Friday`.
pub(super) fn weekdays_of(bits: u64) -> String {
    match bits {
        0b111_1111 => return "day".to_owned(),
        0b011_1110 => return "weekday".to_owned(),
        _ => {}
    }
    let from_monday: Vec<&str> = [1, 2, 3, 4, 5, 6, 0]
        .into_iter()
        .filter(|day| bits & 1 << day != 0)
        .map(|day| WEEKDAYS[day])
        .collect();
    and(&from_monday)
}

/// The months of some bits: `March to May`, `January and July`.
pub(super) fn months_of(bits: u64) -> String {
    let name = |month: u8| MONTHS[usize::from(month) - 1].to_owned();
    let all: Vec<u8> = ones(bits).collect();
    match all.as_slice() {
        [first, _, .., last] if usize::from(last - first) + 1 == all.len() => {
            format!("{} to {}", name(*first), name(*last))
        }
        all => and(&all.iter().map(|month| name(*month)).collect::<Vec<_>>()),
    }
}

/// What follows "every": `minute`, `5 minutes`, `1 hour and 30 minutes`.
pub(super) fn length(span: Duration) -> String {
    let all = plural(span);
    match all.strip_prefix("1 ") {
        Some(unit) if !unit.contains(' ') => unit.to_owned(),
        _ => all,
    }
}

/// `1 minute`, `90 days`, `1 hour and 30 minutes`.
pub(super) fn plural(span: Duration) -> String {
    let mut rest = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (unit, size) in
        [("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000), ("millisecond", 1)]
    {
        match rest / size {
            0 => {}
            1 => parts.push(format!("1 {unit}")),
            number => parts.push(format!("{number} {unit}s")),
        }
        rest %= size;
    }
    if parts.is_empty() { "0 seconds".to_owned() } else { and(&parts) }
}
