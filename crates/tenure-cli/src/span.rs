//! Spans, as they are said on the command line.

use std::time::Duration;

use tenure::{Clock, SystemClock, Timestamp};

/// Reads `90s`, `500ms`, `5m`, `1h30m` or `2d`. A number alone says no unit, and so is refused unless it is nothing.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    const ALLOWED: &str = "expected a number with a unit (ms, s, m, h or d), such as 500ms, 90s or 1h30m";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_digit() || sign == b'.') {
        return Err(format!("add a unit: {text}s, {text}m, {text}h, {text}d"));
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.').ok_or(ALLOWED)?;
        let number: f64 = rest[..digits].parse().map_err(|_| ALLOWED)?;
        let unit_ends =
            rest[digits..].find(|sign: char| sign.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let unit = match &rest[digits..unit_ends] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(ALLOWED.to_owned()),
        };
        let part = Duration::try_from_secs_f64(number * unit).map_err(|_| ALLOWED)?;
        sum = sum.checked_add(part).ok_or(ALLOWED)?;
        rest = &rest[unit_ends..];
    }
    if text.is_empty() { Err(ALLOWED.to_owned()) } else { Ok(sum) }
}

/// Reads an instant, or how long ago it was.
pub(crate) fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(instant) = text.parse() {
        return Ok(instant);
    }
    let ago = span(text).map_err(|allowed| format!("{allowed}; or a time such as 2026-03-28T12:00:00Z"))?;
    Ok(SystemClock.now().before(ago))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_units() {
        let read = |text| span(text).map(|span| span.as_millis());
        assert_eq!(read("90s"), Ok(90_000));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("500ms"), Ok(500));
        assert_eq!(read("1h30m"), Ok(5_400_000));
        assert_eq!(read("1.5s"), Ok(1_500));
        for bad in ["", "s", "5x", "-1s", "1 h", "1m5", "..s", "9e99s", "ms5"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read("10"), Err("add a unit: 10s, 10m, 10h, 10d".to_owned()));
    }
}
