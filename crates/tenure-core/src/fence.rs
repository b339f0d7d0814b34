//! The fence: the number of an ownership.

use std::fmt;

use serde::{Deserialize, Serialize};

const COUNTER_BITS: u32 = 40;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;

/// Counts restores and failovers of an installation; the upper part of every [`Fence`].
///
/// A restored file may lack grants that were made after the backup. Its epoch is raised before it grants again, so
/// that no fencing token is ever granted twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Epoch(u16);

impl Epoch {
    /// The largest epoch: a fence has to fit the 53 bits that every JSON reader keeps exactly.
    pub const LAST: Self = Self((1 << (53 - COUNTER_BITS)) - 1);

    /// The epoch with this number; stops at the last one.
    #[must_use]
    pub fn new(number: u16) -> Self {
        Self(number.min(Self::LAST.0))
    }

    /// The number of this epoch.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self::new(self.0.saturating_add(1))
    }
}

/// A fencing token. It grows with each grant and never goes back.
///
/// It is one ordered number, made of an [`Epoch`] and a counter, and fits in 53 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(u64);

impl Fence {
    /// The fence of a name or job that was never granted.
    pub const NONE: Self = Self(0);

    /// Creates a fence from a stored or printed number.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The fence of the next grant in this epoch: greater than this one, whatever its epoch.
    ///
    /// It stops at the last number rather than begin again at the first: that many grants are never
    /// made, so a row that holds it is damaged, and its owners must not look like the oldest ones.
    #[must_use]
    pub fn next(self, epoch: Epoch) -> Self {
        let floor = u64::from(epoch.number()) << COUNTER_BITS;
        Self(self.0.max(floor).saturating_add(1))
    }

    /// The epoch in which this fence was granted.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        Epoch::new(u16::try_from(self.0 >> COUNTER_BITS).unwrap_or(u16::MAX))
    }

    /// How many grants were made in its epoch, up to this one.
    #[must_use]
    pub fn counter(self) -> u64 {
        self.0 & COUNTER_MASK
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_in_a_later_epoch_exceeds_every_grant_of_an_earlier_one() {
        let many = (0..1000).fold(Fence::NONE, |fence, _| fence.next(Epoch::new(3)));
        let forgotten = Fence::NONE.next(Epoch::new(3));
        assert!(forgotten.next(Epoch::new(4)) > many);
        assert_eq!(forgotten.next(Epoch::new(4)).epoch(), Epoch::new(4));
    }

    #[test]
    fn a_fence_grows_even_if_the_epoch_goes_back() {
        let fence = Fence::NONE.next(Epoch::new(9));
        assert!(fence.next(Epoch::default()) > fence);
    }

    #[test]
    fn every_fence_survives_a_json_reader_that_keeps_doubles() {
        let last = Fence::NONE.next(Epoch::LAST);
        assert!(last.number() < 1 << 53);
        assert_eq!(Epoch::LAST.next(), Epoch::LAST);
    }

    #[test]
    fn a_fence_does_not_begin_again_after_its_last_number() {
        let last = Fence::from_number(u64::MAX);
        assert_eq!(last.next(Epoch::LAST), last);
    }
}
