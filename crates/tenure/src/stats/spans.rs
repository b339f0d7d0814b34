//! How many spans were how long.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Each bucket ends where the one before does, times this: ten of them make a span ten times as long.
const WIDTH: f64 = 1.258_925_411_794_167_3;
/// Where the first one ends, in seconds.
const FIRST: f64 = 0.000_1;
/// The last one, which has no end: from about four months on.
const LAST: u8 = 111;

/// A histogram of durations, each exact to within a quarter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpanCounts {
    counts: BTreeMap<u8, u64>,
}

impl SpanCounts {
    /// Returns `true` if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the percentile for a share from 0 to 1; `None` if it is empty.
    #[must_use]
    pub fn within(&self, share: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in &self.counts {
            seen += count;
            if seen as f64 >= wanted {
                return Some(end_of(*bucket));
            }
        }
        None
    }

    pub(crate) fn add(&mut self, span: Duration) {
        *self.counts.entry(bucket_of(span)).or_default() += 1;
    }

    pub(super) fn join(&mut self, more: &Self) {
        more.counts.iter().for_each(|(bucket, count)| *self.counts.entry(*bucket).or_default() += count);
    }
}

fn bucket_of(span: Duration) -> u8 {
    let widths = (span.as_secs_f64() / FIRST).log(WIDTH).ceil();
    // What is shorter than the first one ends has a negative logarithm, and nothing has none.
    if widths > 0.0 { widths.min(f64::from(LAST)) as u8 } else { 0 }
}

fn end_of(bucket: u8) -> Duration {
    Duration::from_secs_f64(FIRST * WIDTH.powi(i32::from(bucket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_within_a_quarter() {
        for micros in [0_u64, 1, 100, 101, 999, 5_000, 1_234_567, 3_600_000_000, 86_400_000_000] {
            let span = Duration::from_micros(micros);
            let mut one = SpanCounts::default();
            one.add(span);
            let told = one.within(0.5).unwrap();
            assert!(told >= span.mul_f64(0.999_999), "{span:?} is told as {told:?}");
            assert!(
                told <= span.mul_f64(1.26).max(Duration::from_micros(100)),
                "{span:?} is told as {told:?}"
            );
        }
    }

    #[test]
    fn shares_are_counted_over_all_that_were_joined() {
        let (mut few, mut many) = (SpanCounts::default(), SpanCounts::default());
        (0..5).for_each(|_| few.add(Duration::from_secs(100)));
        (0..95).for_each(|_| many.add(Duration::from_millis(1)));
        few.join(&many);
        assert_eq!(few.count(), 100);
        assert!(few.within(0.95).unwrap() < Duration::from_millis(2));
        assert!(few.within(0.96).unwrap() >= Duration::from_secs(100));
        assert_eq!(SpanCounts::default().within(0.5), None);
    }
}
