//! Numbers, times and spans from here to there.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure_core::Timestamp;

use super::BadSearch;
use super::lex::Text;

const MICRO: Duration = Duration::from_micros(1);

/// A whole number, `>2`, `<=0` or `1..5`.
pub(super) fn numbers(value: &Text) -> Result<RangeInclusive<i64>, BadSearch> {
    let read = |text: &str| text.parse::<i64>().ok().map(|number| (number, number));
    between(
        value,
        (i64::MIN, i64::MAX),
        "a whole number, such as 2, >2, <=0 or 1..5",
        read,
        (1, -1),
        i64::saturating_add,
    )
}

/// A span such as `30s`, `>5m` or `1s..2s`.
pub(super) fn spans(value: &Text) -> Result<RangeInclusive<Duration>, BadSearch> {
    let allowed = "a duration, such as >30s, <=500ms or 1m..2h";
    let read = |text: &str| span(text).map(|span| (span, span));
    let step = |span: Duration, by: i64| {
        if by > 0 { span.saturating_add(MICRO) } else { span.saturating_sub(MICRO) }
    };
    between(value, (Duration::ZERO, Duration::MAX), allowed, read, (1, -1), step)
}

/// A time such as `>-2h`, `2026-11-20` or `2026-11-20T12:00:00Z..-1h`.
pub(super) fn times(value: &Text, now: Timestamp) -> Result<RangeInclusive<Timestamp>, BadSearch> {
    let allowed = "a time, such as >-2h, 2026-11-20, <2026-11-20T12:00:00Z or 2026-11-20..2026-11-21";
    // Nobody means a single instant by it.
    if let Some(ago) = value.text.strip_prefix('-').filter(|ago| !ago.contains(".."))
        && let Some(ago) = span(ago)
    {
        return Ok(now.before(ago)..=Timestamp::LAST);
    }
    let read = |text: &str| {
        if let Some(ago) = text.strip_prefix('-') {
            let at = now.before(span(ago)?);
            return Some((at, at));
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Some((at, at));
        }
        let first: Timestamp = format!("{text}T00:00:00Z").parse().ok()?;
        Some((first, first.after(Duration::from_secs(86_400)).before(MICRO)))
    };
    let step = |at: Timestamp, by: i64| if by > 0 { at.after(MICRO) } else { at.before(MICRO) };
    between(value, (Timestamp::EPOCH, Timestamp::LAST), allowed, read, (1, -1), step)
}

/// What is read of each end is the first and the last that it means: a day means all of it.
fn between<T: PartialOrd + Copy>(
    value: &Text,
    (least, most): (T, T),
    allowed: &str,
    read: impl Fn(&str) -> Option<(T, T)>,
    (up, down): (i64, i64),
    step: impl Fn(T, i64) -> T,
) -> Result<RangeInclusive<T>, BadSearch> {
    let bad = || BadSearch::new(value.at, format_args!("{:?}", value.text), allowed);
    let read = |text: &str| read(text).ok_or_else(bad);
    let text = value.text.as_str();
    if let Some((from, to)) = text.split_once("..") {
        let from = if from.is_empty() { least } else { read(from)?.0 };
        let to = if to.is_empty() { most } else { read(to)?.1 };
        return if from <= to { Ok(from..=to) } else { Err(bad()) };
    }
    if let Some(text) = text.strip_prefix(">=") {
        return Ok(read(text)?.0..=most);
    }
    if let Some(text) = text.strip_prefix("<=") {
        return Ok(least..=read(text)?.1);
    }
    if let Some(text) = text.strip_prefix('>') {
        return Ok(step(read(text)?.1, up)..=most);
    }
    if let Some(text) = text.strip_prefix('<') {
        return Ok(least..=step(read(text)?.0, down));
    }
    let (first, last) = read(text)?;
    Ok(first..=last)
}

/// `500ms`, `30s`, `5m`, `2h` or `7d`.
fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}
