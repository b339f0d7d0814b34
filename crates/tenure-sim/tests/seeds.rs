//! A thousand seeds, and those that once found something.

use std::collections::BTreeSet;

use tenure_sim::{Probe, Summary, report};

/// Seeds that are run whenever the tests are.
const SEEDS: u64 = 1_000;
/// So many late writes to what leases guard have to be refused, or the simulation proves nothing about them.
const LATE_WRITES: u64 = 1_000;
/// So many slots of timers have to get their jobs.
const SLOTS: u64 = 10_000;

fn regressions() -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines();
    let numbers =
        lines.map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty());
    numbers.map(|line| line.parse().expect("a line of seeds.txt begins with a seed")).collect()
}

#[test]
fn no_seed_breaks_a_promise_and_every_probe_is_hit() {
    let seeds: BTreeSet<u64> = (0..SEEDS).chain(regressions()).collect();
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let summary = Summary::of(&seeds, 2, &|_| ());
    if let Some(failed) = &summary.failed {
        panic!("{}", report(failed));
    }
    let never = summary.never();
    assert!(never.is_empty(), "never happened in {} seeds: {never:#?}", summary.seeds);
    let refused = summary.probes.get(&Probe::StaleWriteRefused).copied().unwrap_or(0);
    assert!(refused >= LATE_WRITES, "only {refused} late writes were refused");
    let fired = summary.probes.get(&Probe::SlotFired).copied().unwrap_or(0);
    assert!(fired >= SLOTS, "only {fired} slots of timers got their jobs");
    println!("{}", summary.probes_told());
}
