//! What a running job tells about itself.

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, invalid, limits};

/// The progress of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Fraction done, from 0 to 1, in whole millionths.
    pub fraction: f64,
    /// Current step, limited in length.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
}

/// A log line of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Delivery that wrote the line.
    pub delivery: u32,
    /// Its number within the delivery, from 1; [`NEXT`](LogLine::NEXT) until a store has given it one.
    pub number: u32,
    /// When it was written.
    pub at: Timestamp,
    /// The text. Bounded.
    pub text: String,
}

impl Progress {
    /// Accepts a fraction from 0 to 1; a long message is cut and marked.
    ///
    /// The fraction is rounded to a millionth: JSON readers need not keep the last digits of a double,
    /// and progress that is read back shall be what was written.
    ///
    /// # Errors
    /// Refuses NaN and what lies outside 0 to 1.
    pub fn new(fraction: f64, message: &str) -> Result<Self, Invalid> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Invalid::new("progress", format_args!("{fraction:?}"), "0 to 1"));
        }
        let fraction = (fraction * 1e6).round() / 1e6;
        Ok(Self { fraction, message: invalid::storable(message, limits::LINE_BYTES) })
    }
}

impl LogLine {
    /// In place of a number: the one behind the last line that is kept when this one is.
    pub const NEXT: u32 = 0;

    /// A line of this delivery; a long text is cut and marked.
    #[must_use]
    pub fn new(delivery: u32, number: u32, at: Timestamp, text: &str) -> Self {
        Self { delivery, number, at, text: invalid::storable(text, limits::LINE_BYTES) }
    }

    /// The number under which it is kept behind a line with this number; none if it is there already.
    #[must_use]
    pub fn number_behind(&self, last: u32) -> Option<u32> {
        match self.number {
            Self::NEXT => last.checked_add(1),
            number => Some(number).filter(|number| *number > last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_outside_zero_to_one_is_refused() {
        for fraction in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(Progress::new(fraction, "").unwrap_err().field, "progress");
        }
        assert_eq!(Progress::new(1.0 / 3.0, "").unwrap().fraction, 0.333_333);
        assert!(Progress::new(1.0, &"x".repeat(10_000)).unwrap().message.len() <= limits::LINE_BYTES);
    }
}
