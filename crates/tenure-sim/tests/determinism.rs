//! A seed decides everything.

use tenure_sim::{Setup, StoreKind};

/// Seeds whose traces are compared on each store.
const SEEDS: u64 = 20;

fn trace(store: StoreKind, seed: u64) -> Vec<String> {
    Setup { whole_trace: true, ..Setup::on(store, seed) }.run().trace
}

fn assert_repeats(store: StoreKind) {
    for seed in 0..SEEDS {
        let (once, again) = (trace(store, seed), trace(store, seed));
        let differs = once.iter().zip(&again).position(|(one, other)| one != other);
        if let Some(line) = differs {
            panic!("seed {seed} on {store}, line {line}:\n  {}\n  {}", once[line], again[line]);
        }
        assert_eq!(once.len(), again.len(), "seed {seed} on {store}");
        assert!(once.len() > 100, "seed {seed} on {store} hardly did anything: {} lines", once.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    assert_repeats(StoreKind::Memory);
}

#[test]
fn the_same_seed_gives_the_same_trace_on_sqlite() {
    assert_repeats(StoreKind::Sqlite);
}

#[test]
fn seeds_that_run_at_once_do_not_touch_each_other() {
    for store in StoreKind::ALL {
        let alone = Setup::on(store, 3).run().digest;
        let digests = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| Setup::on(store, 3).run().digest)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(digests, [alone, alone], "{store}");
        assert_ne!(Setup::on(store, 4).run().digest, alone, "{store}");
    }
}
