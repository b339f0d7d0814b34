//! Lengths of time that people give.

use std::time::Duration;

use crate::{Invalid, limits};

/// Converts a number of seconds, as in configuration and wire formats, into a duration.
///
/// # Errors
/// Refuses NaN, infinity, negative numbers and more than a hundred years.
pub fn seconds(field: &str, value: f64) -> Result<Duration, Invalid> {
    let refuse = || {
        Invalid::new(
            field,
            format_args!("{value:?} seconds"),
            format_args!("0 to {} seconds", limits::LONGEST.as_secs()),
        )
    };
    let span = Duration::try_from_secs_f64(value).map_err(|_| refuse())?;
    if span > limits::LONGEST {
        return Err(refuse());
    }
    Ok(span)
}

/// Accepts a length of time that is not absurd.
///
/// # Errors
/// Refuses more than a hundred years.
pub fn delay_of(field: &str, span: Duration) -> Result<Duration, Invalid> {
    if span > limits::LONGEST {
        return Err(Invalid::new(
            field,
            format_args!("{} seconds", span.as_secs()),
            format_args!("at most {} seconds", limits::LONGEST.as_secs()),
        ));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_infinity_negative_and_huge_spans_are_refused_by_name() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.001, 1e300, 3.2e9] {
            let complaint = seconds("delay", value).unwrap_err();
            assert_eq!(complaint.field, "delay", "{value}");
            assert!(complaint.allowed.contains("seconds"));
        }
        assert!(delay_of("timeout", Duration::MAX).is_err());
    }

    #[test]
    fn ordinary_spans_pass() {
        assert_eq!(seconds("delay", 1.5).unwrap(), Duration::from_millis(1500));
        assert_eq!(seconds("delay", 0.0).unwrap(), Duration::ZERO);
    }
}
