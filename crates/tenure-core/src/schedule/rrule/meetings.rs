//! The days on which a short interval meets a time of day.

use super::super::wall::{DAY, Wall};
use super::Rrule;

/// For a unit shorter than a day: the days on which the interval meets a time that the rule names.
///
/// Every 7,919 seconds at 03:00:00 is once in 21 years, and the days between need not be tried.
#[derive(Debug, Clone, Default)]
pub(super) struct Meetings {
    /// Days after which the pattern repeats.
    cycle: i64,
    /// A bit for each day of the cycle.
    bits: Vec<u64>,
}

impl Meetings {
    pub(super) fn of(rule: &Rrule) -> Self {
        let Some(unit) = rule.unit.seconds() else {
            return Self::default();
        };
        let step = unit * rule.interval;
        let cycle = step / greatest_common_divisor(step, DAY);
        let mut bits = vec![0; usize::try_from(cycle).unwrap_or(0).div_ceil(64)];
        for (day, number) in (0..cycle).zip(0_usize..) {
            if rule.first_on(day, Wall(day * DAY), &mut u32::MAX.clone()).is_some() {
                bits[number / 64] |= 1 << (number % 64);
            }
        }
        Self { cycle, bits }
    }

    pub(super) fn are_none(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    /// Returns the first of the days at `day` or after it.
    pub(super) fn from(&self, day: i64) -> Option<i64> {
        let place = day.checked_rem_euclid(self.cycle)?;
        let first = usize::try_from(place / 64).ok()?;
        let passed = u64::MAX << (place % 64);
        let around = (first..self.bits.len()).chain(0..=first);
        let found =
            around.zip([passed].into_iter().chain(std::iter::repeat(u64::MAX))).find_map(|(at, mask)| {
                let word = self.bits.get(at)? & mask;
                (word != 0).then(|| at as i64 * 64 + i64::from(word.trailing_zeros()))
            })?;
        Some(day + (found - place).rem_euclid(self.cycle))
    }
}

fn greatest_common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
