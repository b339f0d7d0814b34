//! What is counted while the server runs: bounded, whatever clients call their queues and kinds.

use std::collections::BTreeMap;

/// Different labels of one metric; what comes beyond that is counted together.
const MOST: usize = 1_000;
/// What is said of those that are counted together.
const OTHER: &str = "(other)";

/// Values by labels.
#[derive(Debug, Default)]
pub(super) struct ByLabels<const N: usize, T> {
    values: BTreeMap<[String; N], T>,
}

impl<const N: usize, T: Default> ByLabels<N, T> {
    /// The value for these labels.
    pub(super) fn of(&mut self, labels: [&str; N]) -> &mut T {
        let mut labels = labels.map(str::to_owned);
        if self.values.len() >= MOST && !self.values.contains_key(&labels) {
            labels = [OTHER; N].map(str::to_owned);
        }
        self.values.entry(labels).or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ([&str; N], &T)> {
        self.values.iter().map(|(labels, value)| (labels.each_ref().map(String::as_str), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_labels_than_are_kept_apart_are_counted_together() {
        let mut counts: ByLabels<1, u64> = ByLabels::default();
        for number in 0..3_000 {
            *counts.of([&format!("kind-{number}")]) += 1;
        }
        *counts.of(["kind-7"]) += 1;
        assert_eq!(counts.iter().count(), MOST + 1);
        let value = |label| counts.iter().find(|([found], _)| *found == label).map(|(_, count)| *count);
        assert_eq!((value(OTHER), value("kind-7")), (Some(2_000), Some(2)));
    }
}
