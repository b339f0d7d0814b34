//! Whoever was too late to keep a lease comes after those who wait for it.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{LeaseName, limits};
use tenure_store::Moment;

/// For how long it is left to them. Their turns may be over though none of them could ask: a program that is
/// stopped while it has locked the file of its store keeps all others from asking.
const STEP_BACK: Duration = Duration::from_millis(500);

/// What this program has just lost by being late.
#[derive(Debug, Default)]
pub(super) struct Late {
    until: BTreeMap<LeaseName, Moment>,
    /// When nothing in here matters any more.
    over: Option<Moment>,
}

impl Late {
    /// It was lost now.
    pub(super) fn lost(&mut self, name: &LeaseName, now: Moment) {
        if self.until.len() >= limits::HELD_LEASES || self.over.is_some_and(|over| over <= now) {
            self.until.clear();
        }
        let until = now.after(STEP_BACK);
        self.until.insert(name.clone(), until);
        self.over = Some(until);
    }

    /// When to ask for it again, if not at once.
    pub(super) fn until(&self, name: &LeaseName) -> Option<Moment> {
        self.until.get(name).copied()
    }
}
