//! The fence: the number of an ownership.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Fences between two epochs that begin a microsecond apart. No store grants so many in that time.
const PER_MICROSECOND: u64 = 4;
/// 2026-01-01, in microseconds since 1970: epochs begin to be counted here, and last for 70 years.
const FIRST_DAY: i64 = 1_767_225_600_000_000;
/// The distance to the epoch before, if the clock shows no later time than that one: at least, and by chance.
const LEAST_STEP: u64 = 1 << 12;
const CHANCE_MASK: u64 = (1 << 24) - 1;

/// The floor of a store's fences: each [`Fence`] that it grants is greater.
///
/// A restored file or database lacks the grants that were made after the backup. It begins a new epoch before it grants
/// again. The number contains the time of that moment. So it exceeds every earlier fence, also those that the backup lacks,
/// and each restore of one backup begins a different epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Epoch(u64);

impl Epoch {
    /// The largest epoch: a fence has to fit the 53 bits that every JSON reader keeps exactly.
    pub const LAST: Self = Self((1 << 53) - (1 << 40));

    /// The epoch with this number; stops at the last one.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number.min(Self::LAST.0))
    }

    /// The number of this epoch: the greatest fence that is not of it.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The epoch that begins at this time, above this one.
    ///
    /// If the clock was set back, `chance` tells two epochs apart that follow the same one.
    #[must_use]
    pub fn next(self, now: Timestamp, chance: u64) -> Self {
        let since = u64::try_from(now.as_micros() - FIRST_DAY).unwrap_or(0);
        let by_clock = since.saturating_mul(PER_MICROSECOND);
        if by_clock > self.0 {
            return Self::new(by_clock);
        }
        Self::new(self.0 + LEAST_STEP + (chance & CHANCE_MASK))
    }
}

/// A fencing token. It grows with each grant and never goes back.
///
/// A fence is greater than the [`Epoch`] in which it was granted, and fits in 53 bits.
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
        Self(self.0.max(epoch.number()).saturating_add(1))
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

    const DAY: i64 = 86_400_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(FIRST_DAY + micros).unwrap()
    }

    #[test]
    fn a_grant_in_a_later_epoch_exceeds_every_grant_of_an_earlier_one() {
        let backup = Epoch::default().next(at(DAY), 0);
        let many = (0..1000).fold(Fence::NONE, |fence, _| fence.next(backup));
        assert!(Fence::NONE.next(backup.next(at(DAY + 1000), 0)) > many);
    }

    #[test]
    fn each_restore_of_a_backup_begins_an_epoch_above_all_earlier_restores() {
        let backup = Epoch::default().next(at(DAY), 0);
        let mut last = backup;
        for later in 1..100 {
            let restored = backup.next(at(DAY + later), u64::MAX);
            assert!(restored > last, "{later}");
            last = restored;
        }
    }

    #[test]
    fn where_the_clock_was_set_back_chance_tells_two_restores_apart() {
        let backup = Epoch::default().next(at(DAY), 0);
        for now in [at(DAY), at(0), Timestamp::EPOCH] {
            let (one, other) = (backup.next(now, 1), backup.next(now, 2));
            assert!(one > backup && other > backup && one != other);
        }
    }

    #[test]
    fn a_fence_grows_even_if_the_epoch_goes_back() {
        let fence = Fence::NONE.next(Epoch::new(9));
        assert!(fence.next(Epoch::default()) > fence);
    }

    #[test]
    fn every_fence_survives_a_json_reader_that_keeps_doubles() {
        let last = Epoch::default().next(Timestamp::LAST, u64::MAX);
        assert_eq!((last, last.next(Timestamp::LAST, u64::MAX)), (Epoch::LAST, Epoch::LAST));
        assert!(Fence::NONE.next(last).number() < 1 << 53);
        assert!(Epoch::default().next(at(70 * 365 * DAY), 0) < Epoch::LAST);
    }

    #[test]
    fn a_fence_does_not_begin_again_after_its_last_number() {
        let last = Fence::from_number(u64::MAX);
        assert_eq!(last.next(Epoch::LAST), last);
    }
}
