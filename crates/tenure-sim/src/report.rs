//! What is told of many seeds, and of one that failed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::probes::Probe;
use crate::run::{Outcome, Setup};
use crate::stores::StoreKind;

/// What came of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many ran.
    pub seeds: u64,
    /// How often each probe was hit in all.
    pub probes: BTreeMap<Probe, u64>,
    /// Time that was simulated.
    pub simulated: Duration,
    /// Entries in all histories.
    pub entries: u64,
    /// The failed seed with the smallest number.
    pub failed: Option<Outcome>,
}

impl Summary {
    /// Runs these seeds with this store on so many threads, each seed in one; stops soon after the first failure.
    ///
    /// # Panics
    /// If a simulation panics: that is a failure of the simulation itself.
    #[must_use]
    pub fn of(store: StoreKind, seeds: &[u64], threads: usize, tell: &(dyn Fn(&Self) + Sync)) -> Self {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let summary = Mutex::new(Self::default());
        let work = || {
            while !failed.load(Ordering::Relaxed) {
                let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let outcome = Setup::on(store, *seed).run();
                failed.fetch_or(outcome.violation.is_some(), Ordering::Relaxed);
                let mut summary = summary.lock().expect("a panic in another thread ends this run as well");
                summary.add(outcome);
                tell(&summary);
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        summary.into_inner().expect("a panic in another thread ends this run as well")
    }

    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.simulated += outcome.simulated;
        self.entries += outcome.entries;
        for (probe, hits) in &outcome.probes {
            *self.probes.entry(*probe).or_default() += hits;
        }
        let is_first = self.failed.as_ref().is_none_or(|failed| outcome.seed < failed.seed);
        if outcome.violation.is_some() && is_first {
            self.failed = Some(outcome);
        }
    }

    /// Probes that no seed has hit.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        Probe::ALL
            .iter()
            .filter(|probe| !self.probes.contains_key(probe))
            .map(|probe| probe.sentence())
            .collect()
    }

    /// The probes and how often each was hit.
    #[must_use]
    pub fn probes_told(&self) -> String {
        Probe::ALL.iter().fold(String::new(), |mut told, probe| {
            let hits = self.probes.get(probe).copied().unwrap_or(0);
            // Writing into a string does not fail.
            let _ = writeln!(told, "{hits:>9}  {}", probe.sentence());
            told
        })
    }
}

/// What a person needs to know of a seed that failed.
#[must_use]
pub fn report(outcome: &Outcome) -> String {
    let Outcome { seed, store, .. } = outcome;
    let Some(violation) = &outcome.violation else { return format!("SEED={seed} is good") };
    let trace = outcome.trace.join("\n");
    format!(
        "SEED={seed} on {store} broke a promise\n{violation}\n\nThe end of its trace:\n{trace}\n\n\
         Run it again: cargo xtask sim --store {store} --seeds 1 --from {seed}\n\
         When it is mended, add it to crates/tenure-sim/seeds.txt"
    )
}
