//! The order inside a queue.

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// The priority of a job among the due jobs of its queue: smaller numbers first, like `nice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Priority(i8);

impl Priority {
    /// The highest priority.
    pub const FIRST: Self = Self(-100);
    /// The lowest priority.
    pub const LAST: Self = Self(100);

    /// Creates a priority.
    ///
    /// # Errors
    /// Refuses numbers outside −100 to 100.
    pub fn new(number: i64) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("priority", number, "-100 (first) to 100 (last)");
        let priority = i8::try_from(number).map(Self).map_err(|_| refuse())?;
        if priority < Self::FIRST || priority > Self::LAST {
            return Err(refuse());
        }
        Ok(priority)
    }

    /// The next lower one; the last stays what it is.
    pub(crate) fn lower(self) -> Self {
        if self < Self::LAST { Self(self.0 + 1) } else { self }
    }

    /// Returns the number.
    #[must_use]
    pub fn number(self) -> i64 {
        i64::from(self.0)
    }
}

impl TryFrom<i64> for Priority {
    type Error = Invalid;

    fn try_from(number: i64) -> Result<Self, Invalid> {
        Self::new(number)
    }
}

impl From<Priority> for i64 {
    fn from(priority: Priority) -> Self {
        priority.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_outside_the_range_are_refused() {
        assert_eq!(Priority::new(-100).unwrap(), Priority::FIRST);
        for number in [-101, 101, i64::MIN, i64::MAX] {
            assert_eq!(Priority::new(number).unwrap_err().field, "priority");
        }
    }
}
