//! Steady intervals, and waits after each run.

use std::fmt;
use std::time::Duration;

use super::BadSchedule;
use super::length::{Length, check_interval};
use crate::Timestamp;

/// A fixed interval. Its runs lie on a grid from a fixed time on, so that a late run does not shift later ones.
///
/// The default grid contains the beginning of 1970: every five minutes means :00, :05, :10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    span: Duration,
    from: Option<Timestamp>,
}

/// A delay after the end of each run. It has no grid, so a long run moves all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    span: Duration,
}

impl Every {
    /// Every `span`.
    ///
    /// # Errors
    /// Refuses less than a second, more than a hundred years, and parts of a millisecond.
    pub fn new(span: Duration) -> Result<Self, BadSchedule> {
        check_interval("interval", span)?;
        Ok(Self { span, from: None })
    }

    /// The same interval on the grid that contains `instant`.
    #[must_use]
    pub fn anchored_at(self, instant: Timestamp) -> Self {
        Self { from: Some(instant), ..self }
    }

    /// How long it is.
    #[must_use]
    pub fn span(self) -> Duration {
        self.span
    }

    /// An instant of the grid, if one was given.
    #[must_use]
    pub fn anchor(self) -> Option<Timestamp> {
        self.from
    }

    /// The first slot after `after`.
    pub(crate) fn next(self, after: Timestamp) -> Option<Timestamp> {
        let span = i64::try_from(self.span.as_micros()).ok()?;
        let into = (after.as_micros() - self.from.unwrap_or(Timestamp::EPOCH).as_micros()).rem_euclid(span);
        Timestamp::from_micros(after.as_micros().checked_add(span - into)?).ok()
    }

    /// How many slots lie between an instant of its grid and another; fewer than none if that is before.
    pub(crate) fn slots_before(self, until: Timestamp) -> Option<i64> {
        let span = i64::try_from(self.span.as_micros()).ok()?;
        let since = until.as_micros() - self.from.unwrap_or(Timestamp::EPOCH).as_micros();
        // The slot at that instant is not before it.
        Some((since - 1).div_euclid(span))
    }
}

impl Delay {
    /// A wait of `span`.
    ///
    /// # Errors
    /// As [`Every::new`].
    pub fn new(span: Duration) -> Result<Self, BadSchedule> {
        check_interval("delay", span)?;
        Ok(Self { span })
    }

    /// How long it is.
    #[must_use]
    pub fn span(self) -> Duration {
        self.span
    }

    /// When to run again after a run that ended at `after`.
    pub(crate) fn next(self, after: Timestamp) -> Option<Timestamp> {
        let next = after.after(self.span);
        (next > after && next < Timestamp::LAST).then_some(next)
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "every {}", Length(self.span))?;
        match self.from {
            Some(from) => write!(f, " from {from}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {}", Length(self.span))
    }
}
