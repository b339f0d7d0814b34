//! A spread that is the same each time somebody asks.

use std::time::Duration;

use super::BadSchedule;
use super::length::Length;
use crate::{Timestamp, limits};

/// A jitter that spreads the runs of different timers, so that not all of them run on the hour.
///
/// The jitter of a run depends only on the timer's name and the scheduled time, so every host and version gets the
/// same. The scheduled time does not change; only the enqueue is delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter(Duration);

impl Jitter {
    /// Spread over this long from the slot on, in whole milliseconds.
    ///
    /// # Errors
    /// Refuses more than [`limits::LONGEST_JITTER`].
    pub fn within(span: Duration) -> Result<Self, BadSchedule> {
        if span > limits::LONGEST_JITTER {
            let wrong = format_args!("{} is too long", Length(span));
            return Err(BadSchedule::new("jitter", wrong)
                .instead(format_args!("at most {}", Length(limits::LONGEST_JITTER))));
        }
        Ok(Self(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))))
    }

    /// The longest that it puts anything off.
    #[must_use]
    pub fn longest(self) -> Duration {
        self.0
    }

    /// By how much a slot of a timer is put off, in whole milliseconds.
    #[must_use]
    pub fn of(self, timer: &str, slot: Timestamp) -> Duration {
        let room = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        // The upper half of the product: evenly spread, and without a division.
        let spread = (u128::from(hash(timer, slot)) * u128::from(room)) >> 64;
        Duration::from_millis(u64::try_from(spread).unwrap_or(0))
    }
}

/// FNV-1a over both, then mixed until each bit depends on each. It must never change: what is due would move.
fn hash(timer: &str, slot: Timestamp) -> u64 {
    let bytes = timer.bytes().chain([0xff]).chain(slot.as_micros().to_le_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: i64) -> Timestamp {
        Timestamp::from_micros(number * 60_000_000).unwrap()
    }

    #[test]
    fn the_spread_is_stable_within_its_bound_and_even() {
        let jitter = Jitter::within(Duration::from_secs(9)).unwrap();
        let mut tenths = [0_u32; 10];
        for number in 0..10_000 {
            let spread = jitter.of("nightly", slot(number));
            assert!(spread <= jitter.longest());
            assert_eq!(spread, jitter.of("nightly", slot(number)));
            tenths[usize::try_from(spread.as_millis() / 901).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn the_spread_that_is_stored_nowhere_never_changes() {
        let jitter = Jitter::within(Duration::from_secs(60)).unwrap();
        let spread = |timer: &str| jitter.of(timer, slot(29_000_000)).as_millis();
        assert_eq!([spread("nightly"), spread("nightlz"), spread("")], [3202, 59_348, 59_297]);
    }

    #[test]
    fn no_jitter_is_none_and_a_day_is_the_most() {
        assert_eq!(Jitter::within(Duration::ZERO).unwrap().of("any", slot(1)), Duration::ZERO);
        assert!(Jitter::within(Duration::from_secs(86_401)).is_err());
    }
}
