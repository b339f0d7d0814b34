//! Instants that come once.

use std::fmt;

use super::BadSchedule;
use crate::{Timestamp, limits};

/// One or a few single times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    instants: Vec<Timestamp>,
}

impl At {
    /// At these instants, in whatever order and however often they are named.
    ///
    /// # Errors
    /// Refuses none, and more than [`limits::SCHEDULE_TIMES`].
    pub fn new(instants: impl IntoIterator<Item = Timestamp>) -> Result<Self, BadSchedule> {
        let mut instants: Vec<_> = instants.into_iter().take(limits::SCHEDULE_TIMES + 1).collect();
        if instants.is_empty() || instants.len() > limits::SCHEDULE_TIMES {
            let wrong = if instants.is_empty() { "no time given" } else { "too many times" };
            return Err(BadSchedule::new("at", wrong)
                .instead(format_args!("1 to {} of them", limits::SCHEDULE_TIMES)));
        }
        instants.sort_unstable();
        instants.dedup();
        Ok(Self { instants })
    }

    /// Reads instants with an offset, parted by commas.
    pub(crate) fn parse(text: &str) -> Result<Self, BadSchedule> {
        let mut offset = 0;
        let mut instants = Vec::new();
        for part in text.split(',') {
            let lead = part.len() - part.trim_start().len();
            let at = part.trim().parse().map_err(|bad: crate::Invalid| {
                BadSchedule::new("at", format_args!("{} is not a time", bad.found))
                    .at(offset + lead)
                    .instead("write it with an offset up to ±14:00, such as 2026-03-29T02:30:00Z")
            })?;
            instants.push(at);
            offset += part.len() + 1;
        }
        Self::new(instants)
    }

    /// The instants in their order.
    #[must_use]
    pub fn instants(&self) -> &[Timestamp] {
        &self.instants
    }

    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let passed = self.instants.partition_point(|at| *at <= after);
        self.instants.get(passed).copied()
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instants: Vec<String> = self.instants.iter().map(ToString::to_string).collect();
        write!(f, "at {}", instants.join(", "))
    }
}
