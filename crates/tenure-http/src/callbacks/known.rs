//! Which events are known to have been appended: the last ones, by what their ids come to.

use std::collections::{BTreeSet, VecDeque};

use sha2::{Digest, Sha256};

/// As many are remembered. What is forgotten is not appended twice: the journal refuses it, which costs more.
const REMEMBERED: usize = 100_000;

/// The last ones.
#[derive(Default)]
pub(super) struct Known {
    all: BTreeSet<u128>,
    order: VecDeque<u128>,
}

impl Known {
    pub(super) fn has(&self, id: &str) -> bool {
        self.all.contains(&mark(id))
    }

    pub(super) fn remember(&mut self, id: &str) {
        let mark = mark(id);
        if self.all.insert(mark) {
            self.order.push_back(mark);
        }
        if self.order.len() > REMEMBERED
            && let Some(first) = self.order.pop_front()
        {
            self.all.remove(&first);
        }
    }
}

fn mark(id: &str) -> u128 {
    let digest = Sha256::digest(id);
    u128::from_be_bytes(std::array::from_fn(|at| digest[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_and_the_first_are_forgotten() {
        let mut known = Known::default();
        for number in 0..=REMEMBERED {
            known.remember(&number.to_string());
            known.remember(&number.to_string());
        }
        assert!(!known.has("0") && known.has("1") && known.has(&REMEMBERED.to_string()));
        assert_eq!((known.all.len(), known.order.len()), (REMEMBERED, REMEMBERED));
    }
}
