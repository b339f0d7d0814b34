//! A seed decides everything.

use tenure_sim::{Setup, StoreKind};

/// Seeds that run twice on the memory store.
const SEEDS: u64 = 3;
/// Seeds that run twice on SQLite, which takes longer.
const SQLITE_SEEDS: u64 = 2;

fn trace(store: StoreKind, seed: u64) -> Vec<String> {
    Setup { whole_trace: true, ..Setup::on(store, seed) }.run().trace
}

fn assert_same(seed: u64, once: &[String], again: &[String]) {
    let differs = once.iter().zip(again).position(|(one, other)| one != other);
    if let Some(line) = differs {
        panic!("seed {seed}, line {line}:\n  {}\n  {}", once[line], again[line]);
    }
    assert_eq!(once.len(), again.len(), "seed {seed}");
    assert!(once.len() > 100, "seed {seed} hardly did anything: {} lines", once.len());
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for seed in 0..SEEDS {
        let (once, again) = (trace(StoreKind::Memory, seed), trace(StoreKind::Memory, seed));
        assert_same(seed, &once, &again);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_on_sqlite_even_at_once() {
    for seed in 0..SQLITE_SEEDS {
        let (once, again) = std::thread::scope(|scope| {
            let once = scope.spawn(|| trace(StoreKind::Sqlite, seed));
            let again = trace(StoreKind::Sqlite, seed);
            (once.join().unwrap(), again)
        });
        assert_same(seed, &once, &again);
    }
}

#[test]
fn seeds_that_run_at_once_do_not_touch_each_other() {
    let alone = Setup::of(3).run().digest;
    let digests = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| Setup::of(3).run().digest)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(digests, [alone, alone]);
    assert_ne!(Setup::of(4).run().digest, alone);
}
