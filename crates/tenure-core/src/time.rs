//! An instant as stores keep it: whole microseconds since 1970 in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// A point in time, in whole microseconds since 1970-01-01 UTC.
///
/// It lies between the years 1970 and 9998. Times in 9999 are refused, because people write that year for "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// The latest time: 9998-12-31T23:59:59.999999Z.
    pub const LAST: Self = Self(253_370_764_799_999_999);

    /// Creates a time from microseconds since 1970.
    ///
    /// # Errors
    /// Refuses times before 1970 or after the year 9998.
    pub fn from_micros(micros: i64) -> Result<Self, Invalid> {
        let at = Self(micros);
        if at < Self::EPOCH || at > Self::LAST {
            return Err(Self::out_of_range("timestamp", format_args!("{micros} µs since 1970")));
        }
        Ok(at)
    }

    /// Returns microseconds since 1970.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns milliseconds since 1970.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0 / 1_000
    }

    /// Returns the time `span` later, at most the latest time.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::LAST.0))
    }

    /// Returns the time `span` earlier, at least 1970.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros).max(Self::EPOCH.0))
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    fn out_of_range(field: &str, found: impl fmt::Display) -> Invalid {
        Invalid::new(field, found, "a time from 1970-01-01T00:00:00Z to 9998-12-31T23:59:59Z")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at:.6}"),
            Err(_) => write!(f, "{} µs since 1970", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = Invalid;

    /// Reads RFC 3339 text with its offset; local time without one is refused.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let at = text.parse::<jiff::Timestamp>().ok().filter(|_| has_real_offset(text));
        // One sentence for both faults: the parser itself stops within the year 9999, so that it
        // cannot tell a date out of range from nonsense.
        at.and_then(|at| Self::from_micros(at.as_microsecond()).ok()).ok_or_else(|| {
            let shown = crate::invalid::cut(text, 64);
            Invalid::new(
                "timestamp",
                format_args!("{shown:?}"),
                "RFC 3339 with an offset up to ±14:00, such as 2026-03-29T02:30:00Z, in the years 1970 to 9998",
            )
        })
    }
}

/// No clock in the world is further from UTC, and the parser takes offsets beyond a day.
const FARTHEST_OFFSET: i32 = 14 * 3600;

fn has_real_offset(text: &str) -> bool {
    static PARSER: jiff::fmt::temporal::DateTimeParser = jiff::fmt::temporal::DateTimeParser::new();
    text.ends_with(['Z', 'z'])
        || PARSER
            .parse_pieces(text)
            .ok()
            .and_then(|pieces| pieces.to_numeric_offset())
            .is_some_and(|offset| offset.seconds().abs() <= FARTHEST_OFFSET)
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        at.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl TryFrom<std::time::SystemTime> for Timestamp {
    type Error = Invalid;

    fn try_from(at: std::time::SystemTime) -> Result<Self, Invalid> {
        let refuse = || Self::out_of_range("timestamp", "a system time out of range");
        let since = at.duration_since(std::time::UNIX_EPOCH).map_err(|_| refuse())?;
        Self::from_micros(i64::try_from(since.as_micros()).map_err(|_| refuse())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_instant_are_the_same_thing() {
        let at: Timestamp = "2026-03-29T02:30:00.000001+02:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-03-29T00:30:00.000001Z");
        assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        assert_eq!("2026-03-29T14:00:00+14:00".parse(), "2026-03-29T00:00:00Z".parse::<Timestamp>());
        assert_eq!("2026-03-29 02:30:00-12".parse(), "2026-03-29T14:30:00z".parse::<Timestamp>());
        assert_eq!(Timestamp::LAST.to_string(), "9998-12-31T23:59:59.999999Z");
    }

    #[test]
    fn local_time_the_year_9999_and_nonsense_are_refused() {
        for text in [
            "2026-03-29T02:30:00+14:01",
            "2026-03-29T02:30:00-25:00",
            "2026-03-29T02:30:00",
            "9999-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "soon",
            "",
        ] {
            let complaint = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(complaint.field, "timestamp", "{text}");
        }
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Timestamp::LAST.after(Duration::MAX), Timestamp::LAST);
        assert_eq!(Timestamp::EPOCH.before(Duration::from_secs(1)), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::LAST), Duration::ZERO);
        assert_eq!(
            Timestamp::EPOCH.after(Duration::from_secs(3)).since(Timestamp::EPOCH),
            Duration::from_secs(3)
        );
    }
}
