//! Lengths of time as people write them: `10m`, `1h30m`, and the time spans of .NET with their trap.

use std::fmt;
use std::time::Duration;

use super::BadSchedule;
use super::wall::digits;
use crate::limits;

const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// A length of time in whole milliseconds, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Length(pub Duration);

impl Length {
    /// Reads `1h30m`, `90s`, or .NET's `00:10:00` and `1.00:00:00`.
    pub(crate) fn parse(field: &str, text: &str) -> Result<Self, BadSchedule> {
        let lead = text.len() - text.trim_start().len();
        let text = text.trim();
        let length = if text.contains(':') { time_span(field, text) } else { units(field, text) };
        let length = length.map_err(|bad| bad.at(lead))?;
        if length > limits::LONGEST {
            let wrong = BadSchedule::new(field, format_args!("`{}` is too long", shown(text))).at(lead);
            return Err(wrong.instead("at most 100 years"));
        }
        Ok(Self(length))
    }

    /// Reads an interval, which cannot be shorter than a second.
    pub(crate) fn interval(field: &str, text: &str) -> Result<Self, BadSchedule> {
        let length = Self::parse(field, text)?;
        let lead = text.len() - text.trim_start().len();
        check_interval(field, length.0).map_err(|bad| bad.at(lead))?;
        Ok(length)
    }
}

/// Refuses an interval that is too short or too long.
pub(crate) fn check_interval(field: &str, length: Duration) -> Result<(), BadSchedule> {
    if length < limits::SHORTEST_INTERVAL {
        let wrong = format_args!("an interval of {} is too short", Length(length));
        return Err(BadSchedule::new(field, wrong).instead("at least 1 second"));
    }
    if length > limits::LONGEST || !length.as_micros().is_multiple_of(1000) {
        let wrong = BadSchedule::new(field, "a fraction of a millisecond");
        return Err(wrong.instead("a whole number of milliseconds, at most 100 years"));
    }
    Ok(())
}

fn units(field: &str, text: &str) -> Result<Duration, BadSchedule> {
    if text.starts_with('-') {
        let wrong = BadSchedule::new(field, format_args!("`{}` is negative", shown(text)));
        return Err(wrong.instead("at least 1 second"));
    }
    let refuse = || {
        let wrong = BadSchedule::new(field, format_args!("{:?} is not a duration", shown(text)));
        let plain = digits(text).is_some_and(|number| number > 0);
        wrong.instead(if plain {
            format!("write `{text}s`, `{text}m` or `{text}d`")
        } else {
            "write a duration such as `10m` or `1h30m`".into()
        })
    };
    let mut rest = text;
    let mut millis: u64 = 0;
    let mut largest = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(leading(rest, |c| c.is_ascii_digit()));
        let (unit, after) = after.split_at(leading(after, |c| c.is_ascii_alphabetic()));
        let number = digits(number).ok_or_else(refuse)?;
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, size) = known.ok_or_else(|| if unit.is_empty() { refuse() } else { no_unit(field, unit) })?;
        // From the largest unit to the smallest, each once: `10m1h` is more often a slip than a wish.
        if *size >= largest {
            return Err(refuse());
        }
        largest = *size;
        millis = u64::from(number)
            .checked_mul(*size)
            .and_then(|more| millis.checked_add(more))
            .ok_or_else(refuse)?;
        rest = after;
    }
    if text.is_empty() { Err(refuse()) } else { Ok(Duration::from_millis(millis)) }
}

fn no_unit(field: &str, unit: &str) -> BadSchedule {
    let units = "use w, d, h, m, s or ms; write a year as 365d";
    BadSchedule::new(field, format_args!("unknown unit `{}`", shown(unit))).instead(units)
}

/// `hh:mm:ss` below a day, or `d.hh:mm:ss`, each with or without a fraction of a second.
fn time_span(field: &str, text: &str) -> Result<Duration, BadSchedule> {
    let refuse = |wrong: &str| BadSchedule::new(field, format_args!("`{}` {wrong}", shown(text)));
    if text.starts_with('-') {
        return Err(refuse("is negative").instead("at least 1 second"));
    }
    let parts: Vec<&str> = text.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else {
        let wrong = refuse("could mean hours and minutes, or a time of day");
        return Err(match parts.as_slice() {
            [_, _] => wrong.instead(format_args!(
                "write `{text}:00` for a duration, or `daily {text}` for a time of day"
            )),
            _ => refuse("is not a duration")
                .instead("write hours, minutes and seconds as 01:30:00, or days as 1.00:00:00"),
        });
    };
    let (days, hours) = hours.split_once('.').map_or((None, *hours), |(days, hours)| (Some(days), hours));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |text: &str| digits(text).ok_or_else(|| refuse("is not a duration"));
    let (hour, minute, second) = (number(hours)?, number(minutes)?, number(seconds)?);
    if days.is_none() && hour > 23 {
        let advice = format!("write `{}.{:02}:{minutes}:{seconds}` for {hour} hours", hour / 24, hour % 24);
        let wrong = refuse(&format!("means {hour} days to .NET, not {hour} hours"));
        return Err(
            wrong.instead(format_args!("{advice}, or `{hour}.00:{minutes}:{seconds}` for {hour} days"))
        );
    }
    if hour > 23 || minute > 59 || second > 59 {
        return Err(refuse("has a part that is too large").instead("write 24 hours as a day: 1.00:00:00"));
    }
    let days = days.map_or(Ok(0), number)?;
    let fraction = format!("{fraction:0<7}");
    let millis = match (fraction.len(), number(&fraction)?) {
        (7, ticks) if ticks % 10_000 == 0 => ticks / 10_000,
        _ => return Err(refuse("is finer than a millisecond")),
    };
    let seconds = u64::from(days) * 86_400 + u64::from(hour * 3600 + minute * 60 + second);
    Ok(Duration::from_secs(seconds) + Duration::from_millis(millis.into()))
}

fn leading(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn shown(text: &str) -> String {
    crate::invalid::cut(text, 32)
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        // Weeks are read and not written: `14d` is as plain as `2w`.
        for (name, size) in &UNITS[1..] {
            if rest >= *size {
                write!(f, "{}{name}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> u128 {
        Length::interval("interval", text).unwrap().0.as_millis()
    }

    #[test]
    fn lengths_are_read_and_printed() {
        for (text, expected, printed) in [
            ("10m", 600_000, "10m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90s", 90_000, "1m30s"),
            ("2w", 1_209_600_000, "14d"),
            ("1500ms", 1_500, "1s500ms"),
            ("00:10:00", 600_000, "10m"),
            ("1.00:00:00", 86_400_000, "1d"),
            ("23:59:59.5", 86_399_500, "23h59m59s500ms"),
            ("00:00:01.0000000", 1_000, "1s"),
        ] {
            assert_eq!(millis(text), expected, "{text}");
            let length = Length::parse("interval", text).unwrap();
            assert_eq!(length.to_string(), printed);
            assert_eq!(Length::parse("interval", printed).unwrap(), length);
        }
    }

    /// T051: the trap of .NET's time spans, and intervals that never or always come.
    #[test]
    fn what_dotnet_reads_as_days_is_refused_and_so_are_zero_and_negative_intervals() {
        let refused = |text: &str| Length::interval("interval", text).unwrap_err().to_string();
        assert_eq!(
            refused("24:00:00"),
            "interval at column 1: `24:00:00` means 24 days to .NET, not 24 hours; write `1.00:00:00` for 24 hours, or `24.00:00:00` for 24 days"
        );
        assert!(refused("25:30:00").contains("`1.01:30:00` for 25 hours"));
        assert!(refused("09:30").contains("daily 09:30"));
        assert!(refused("10").contains("write `10s`, `10m` or `10d`"));
        for text in [
            "00:00:00",
            "0s",
            "999ms",
            "-00:10:00",
            "-10m",
            "",
            "1.24:00:00",
            "00:60:00",
            "10x",
            "m",
            "1h1h",
            "1m1h",
        ] {
            assert!(refused(text).starts_with("interval"), "{text}");
        }
        for text in ["99999999d", "1:2:3:4", "00:00:01.00001", "00:00:0x", "٣m"] {
            assert!(Length::interval("interval", text).is_err(), "{text}");
        }
    }
}
