//! What is to be sent as soon as it may be.

use std::collections::BTreeSet;

use super::Number;
use super::entry::{Entry, Stage};

/// Apart by when it may go: what cannot go yet is not looked through each time.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// At any time.
    pub(super) renewals: BTreeSet<Number>,
    /// When few requests are under way: what somebody waits for right now.
    pub(super) fresh: BTreeSet<Number>,
    /// At a pace.
    pub(super) looks: BTreeSet<Number>,
}

impl Ready {
    pub(super) fn insert(&mut self, number: Number, entry: &Entry) {
        let set = match &entry.stage {
            Stage::Had(_) => &mut self.renewals,
            Stage::Wanted(wanted) if wanted.looks => &mut self.looks,
            Stage::Wanted(_) | Stage::Leaving(_) => &mut self.fresh,
            // There is nothing to say about it.
            Stage::Lost(_) => return,
        };
        set.insert(number);
    }

    pub(super) fn remove(&mut self, number: Number) {
        for set in [&mut self.renewals, &mut self.fresh, &mut self.looks] {
            set.remove(&number);
        }
    }

    pub(super) fn contains(&self, number: Number) -> bool {
        [&self.renewals, &self.fresh, &self.looks].into_iter().any(|set| set.contains(&number))
    }
}
