//! What happens while a model is searched, beside the states: what was seen to happen, and the first counterexample.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Probes of one model at most.
const MOST: usize = 24;

/// Which of the situations that have to occur did occur. A search that never met a stale write proves nothing about
/// stale writes.
#[derive(Debug, Default)]
pub struct Seen {
    probes: [AtomicBool; MOST],
    told: AtomicBool,
}

impl Seen {
    /// It occurred.
    pub fn hit(&self, probe: usize) {
        if let Some(probe) = self.probes.get(probe)
            && !probe.load(Ordering::Relaxed)
        {
            probe.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it occurred.
    #[must_use]
    pub fn has(&self, probe: usize) -> bool {
        self.probes.get(probe).is_some_and(|probe| probe.load(Ordering::Relaxed))
    }

    /// Those of the wanted ones that did not occur, by their names.
    pub fn missing<P: fmt::Debug>(&self, wanted: Vec<P>, number: fn(&P) -> usize) -> Vec<String> {
        let unseen = wanted.into_iter().filter(|probe| !self.has(number(probe)));
        unseen.map(|probe| format!("{probe:?}")).collect()
    }

    /// Whether a counterexample is the first of this search, whose path is the shortest.
    #[must_use]
    pub fn is_first_counterexample(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }
}
