//! For how long a lease is taken.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, limits, seconds};

/// The whole seconds that the oldest ancestor allowed.
const COMPATIBLE: std::ops::RangeInclusive<u64> = 15..=60;

/// The duration of a lease unless it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "Given")]
pub enum Ttl {
    /// From 1 second to 24 hours.
    For(Duration),
    /// Until it is released or broken.
    Endless,
}

/// As it comes from outside.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Given {
    For(Duration),
    Endless,
}

impl Ttl {
    /// Accepts a span. Stores keep whole microseconds; what is beyond them is cut off.
    ///
    /// # Errors
    /// Refuses less than a second and more than a day.
    pub fn new(span: Duration) -> Result<Self, Invalid> {
        let whole = span - Duration::from_nanos(u64::from(span.subsec_nanos() % 1_000));
        Self::For(span).check().map(|()| Self::For(whole))
    }

    /// Accepts a number of seconds, as configuration and wire formats give it.
    ///
    /// # Errors
    /// Refuses NaN, negative numbers, less than a second and more than a day.
    pub fn of_seconds(value: f64) -> Result<Self, Invalid> {
        seconds("ttl", value).map_err(|_| Self::refuse(value)).and_then(Self::new)
    }

    /// Accepts what the blob leases of old did: 15 to 60 whole seconds, or -1 for one without end.
    ///
    /// # Errors
    /// Refuses everything else, fractions included.
    pub fn compatible(value: f64) -> Result<Self, Invalid> {
        if value == -1.0 {
            return Ok(Self::Endless);
        }
        let span = seconds("ttl", value).ok().filter(|_| value.fract() == 0.0);
        span.filter(|span| COMPATIBLE.contains(&span.as_secs())).map(Self::For).ok_or_else(|| {
            let found = format_args!("{value:?} seconds");
            Invalid::new("ttl", found, "15 to 60 whole seconds, or -1 for a lease without expiry")
        })
    }

    /// When an ownership that is taken or renewed at `now` ends; never if `None`.
    #[must_use]
    pub fn until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::For(span) => Some(now.after(span)),
            Self::Endless => None,
        }
    }

    pub(crate) fn check(self) -> Result<(), Invalid> {
        match self {
            Self::For(span) if !(limits::SHORTEST_LEASE..=limits::LONGEST_LEASE).contains(&span) => {
                Err(Self::refuse(span.as_secs_f64()))
            }
            Self::For(_) | Self::Endless => Ok(()),
        }
    }

    fn refuse(value: f64) -> Invalid {
        Invalid::new(
            "ttl",
            format_args!("{value:?} seconds"),
            format_args!(
                "{} to {} seconds",
                limits::SHORTEST_LEASE.as_secs(),
                limits::LONGEST_LEASE.as_secs()
            ),
        )
    }
}

impl TryFrom<Given> for Ttl {
    type Error = Invalid;

    fn try_from(given: Given) -> Result<Self, Invalid> {
        match given {
            Given::For(span) => Self::new(span),
            Given::Endless => Ok(Self::Endless),
        }
    }
}
