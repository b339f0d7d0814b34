//! Hundreds of seeds, and those that once found something.

use std::collections::BTreeSet;

use tenure_sim::{Probe, StoreKind, Summary, report};

/// Seeds that every run of the tests includes.
const SEEDS: u64 = 12;
/// Seeds that `--long` adds.
const MORE_SEEDS: u64 = 1_000;
/// Seeds that every run of the tests includes on SQLite, which takes four times as long.
const SQLITE_SEEDS: u64 = 4;
/// Seeds that `--long` runs on SQLite.
const MORE_SQLITE_SEEDS: u64 = 500;
/// Minimum number of refused late writes per seed, on average. With fewer, the simulation proves nothing about them.
const LATE_WRITES: u64 = 1;
/// Minimum number of schedule occurrences per seed that get their jobs, on average.
const SLOTS: u64 = 10;

fn regressions() -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines();
    let numbers =
        lines.map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty());
    numbers.map(|line| line.parse().expect("a line of seeds.txt begins with a seed")).collect()
}

#[test]
fn no_seed_breaks_a_promise_and_every_probe_is_hit() {
    let summary = run(StoreKind::Memory, (0..SEEDS).chain(regressions()).collect());
    assert_is_telling(&summary);
}

#[test]
fn no_seed_breaks_a_promise_on_sqlite() {
    run(StoreKind::Sqlite, (0..SQLITE_SEEDS).collect());
}

#[test]
#[ignore = "takes minutes: `cargo xtask test --long`"]
fn a_thousand_more_seeds_break_no_promise() {
    assert_is_telling(&run(StoreKind::Memory, (SEEDS..SEEDS + MORE_SEEDS).collect()));
}

#[test]
#[ignore = "takes minutes: `cargo xtask test --long`"]
fn more_seeds_break_no_promise_on_sqlite() {
    assert_is_telling(&run(StoreKind::Sqlite, (0..MORE_SQLITE_SEEDS).chain(regressions()).collect()));
}

fn run(store: StoreKind, seeds: BTreeSet<u64>) -> Summary {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let summary = Summary::of(store, &seeds, 2, &|_| ());
    if let Some(failed) = &summary.failed {
        panic!("{}", report(failed));
    }
    summary
}

/// Everything that has to happen in many seeds did happen.
fn assert_is_telling(summary: &Summary) {
    let (number, never) = (summary.seeds, summary.never());
    assert!(never.is_empty(), "never happened in {number} seeds: {never:#?}");
    let refused = summary.probes.get(&Probe::StaleWriteRefused).copied().unwrap_or(0);
    assert!(refused >= number * LATE_WRITES, "only {refused} late writes were refused");
    let fired = summary.probes.get(&Probe::SlotFired).copied().unwrap_or(0);
    assert!(fired >= number * SLOTS, "only {fired} occurrences got their jobs");
    println!("{}", summary.probes_told());
}
