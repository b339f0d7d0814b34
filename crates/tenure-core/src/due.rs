//! When a job becomes visible, in the words of whoever asks for it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, delay_of};

/// An instant that the store works out by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// So long after the store's now.
    In(Duration),
    /// At this instant; at once if it has passed.
    At(Timestamp),
}

impl Due {
    /// The instant, by the store's clock.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::In(span) => now.after(span),
            Self::At(at) => at,
        }
    }

    pub(crate) fn check(self, field: &str) -> Result<(), Invalid> {
        match self {
            Self::Now | Self::At(_) => Ok(()),
            Self::In(span) => delay_of(field, span).map(drop),
        }
    }
}
