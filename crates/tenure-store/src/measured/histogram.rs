//! How often a value was at most so great.

use std::time::Duration;

/// Where the buckets of calls to a store end, in seconds: from what memory takes to what somebody gives up on.
pub(super) const CALL_SECONDS: &[f64] =
    &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Where the buckets of what many take end, in seconds: from what a loop takes to what a long job takes.
const LONG_SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3_600.0, 14_400.0];
/// Where the buckets of jobs that one claim was granted end.
pub(super) const JOBS: &[f64] =
    &[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0];

/// How often a value was at most so great.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Default for Histogram {
    /// For how long jobs and requests take: from a millisecond to some hours.
    fn default() -> Self {
        Self::within(LONG_SECONDS)
    }
}

impl Histogram {
    /// With a bucket up to each of these bounds, which grow, and one for what is greater.
    pub(super) fn within(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// Counts a span, in seconds.
    pub fn add_span(&mut self, span: Duration) {
        self.add(span.as_secs_f64());
    }

    /// Counts all that another has counted. Both have the same buckets.
    pub fn add_all(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(here, there)| *here += there);
        self.sum += other.sum;
    }

    /// Where each bucket ends but the last, which has no end.
    #[must_use]
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// How many values are in each bucket: one more than there are bounds.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// All values together.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_holds_it() {
        let mut spans = Histogram::default();
        [0.000_5, 0.001].into_iter().for_each(|span| spans.add(span));
        let mut others = Histogram::default();
        [0.3, 1e9].into_iter().for_each(|span| others.add(span));
        spans.add_all(&others);
        let last = spans.bounds().len();
        assert_eq!((spans.counts()[0], spans.counts()[7], spans.counts()[last]), (2, 1, 1));
        assert_eq!((spans.count(), spans.sum()), (4, 1e9 + 0.301_5));
    }

    #[test]
    fn bounds_grow() {
        for bounds in [CALL_SECONDS, LONG_SECONDS, JOBS] {
            assert!(bounds.is_sorted_by(|before, after| before < after), "{bounds:?}");
        }
    }
}
