//! Trying again while a store is away: ever more slowly, and without flooding the log.

use std::time::Duration;

use tenure_store::{Chance, Fault};

/// Growing, spread waits. The first fault is logged, then each doubling of their number.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    ceiling: Duration,
    faults: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, ceiling: Duration) -> Self {
        Self { first, ceiling, faults: 0 }
    }

    /// All is well again.
    pub(crate) fn reset(&mut self) {
        if self.faults > 0 {
            tracing::info!(after = self.faults, "the store is available again");
        }
        self.faults = 0;
    }

    /// Counts a fault and answers how long to wait.
    pub(crate) fn next(&mut self, chance: &Chance, doing: &str, fault: &Fault) -> Duration {
        self.faults = self.faults.saturating_add(1);
        if self.faults.is_power_of_two() {
            tracing::warn!(%fault, faults = self.faults, "{doing} failed; retrying");
        }
        let doublings = (self.faults - 1).min(16);
        let plain = self.first.saturating_mul(1 << doublings).min(self.ceiling);
        plain.mul_f64(0.5 + 0.5 * chance.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T141, T090: waits grow to a ceiling and start over after a success. T090 asks for this of an empty queue, too, where
    /// each poll of a storage queue costs money. Here an empty queue is polled at a fixed interval, and a job that another
    /// process enqueues wakes a worker by a hint: `told` in this crate's tests, `pooler` and `several` in the store's.
    #[test]
    fn waits_grow_to_a_ceiling_and_start_over() {
        let chance = Chance::seeded(1);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let fault = Fault::Unavailable("down".into());
        let waits: Vec<_> = (0..20).map(|_| backoff.next(&chance, "a test", &fault)).collect();
        for (n, wait) in waits.iter().enumerate() {
            let plain = Duration::from_millis(100).saturating_mul(1 << n.min(16)).min(Duration::from_secs(5));
            assert!((plain / 2..=plain).contains(wait), "{n}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next(&chance, "a test", &fault) <= Duration::from_millis(100));
    }
}
