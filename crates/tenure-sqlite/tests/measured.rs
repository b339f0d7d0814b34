//! What measuring costs: the same jobs are drained from a store that is measured and from one that is not.

// A test that unwraps fails at the right place, and has no caller to return an error to.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Due, HostId, IdSequence, Kind, NewJob, Priority, QueueName, RetryPolicy, Timestamp, Verdict,
};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{Clock, Kinds, MeasuredStore, MemoryStore, Reserve, Store, SystemClock, Want};

const JOBS: usize = 40_000;

fn ask(at_most: usize) -> Reserve {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
    let (holder, ttl) = (HostId::new(Timestamp::EPOCH, 1), Duration::from_secs(60));
    Reserve { holder, ttl, wants: vec![want], at_most }
}

/// Enqueues the jobs, then settles and reserves so many at a time until none is left. Answers how long the latter took.
async fn drain(store: &dyn Store, at_once: usize) -> Duration {
    let mut ids = IdSequence::default();
    let mut job = || NewJob {
        id: ids.next(SystemClock.now(), 7),
        kind: Kind::new("mail").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::default(),
    };
    for _ in 0..JOBS / 1_000 {
        store.enqueue((0..1_000).map(|_| job()).collect()).await.unwrap();
    }
    let (began, policy, mut drained, mut settlements) =
        (SystemClock.moment(), RetryPolicy::default(), 0, Vec::new());
    while drained < JOBS {
        let turn = store.settle(std::mem::take(&mut settlements), Some(ask(at_once))).await.unwrap();
        drained += turn.reservation.jobs.len();
        let settle =
            |reserved: tenure_core::Reserved| reserved.settle(Verdict::Succeeded(None), &policy, 0.5);
        settlements = turn.reservation.jobs.into_iter().map(settle).collect();
    }
    store.settle(settlements, None).await.unwrap();
    SystemClock.moment().since(began)
}

/// Run it with `cargo test --release -p tenure-sqlite --test it -- --ignored --nocapture measured::`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures, and proves nothing"]
async fn draining_with_and_without() {
    let directory = tempfile::tempdir().unwrap();
    let clock = || Arc::new(SystemClock) as Arc<dyn Clock>;
    let mut files = 0;
    for at_once in [1, 100] {
        for on_file in [false, true] {
            let mut best = [Duration::MAX; 2];
            for round in 0..10 {
                let store: Arc<dyn Store> = if on_file {
                    files += 1;
                    let options = Options { durability: Durability::Normal, ..Options::default() };
                    SqliteStore::open(directory.path().join(format!("{files}.db")), options, clock()).unwrap()
                } else {
                    Arc::new(MemoryStore::new(clock()))
                };
                let is_measured = round % 2 == 1;
                let store = if is_measured { Arc::new(MeasuredStore::new(store)) } else { store };
                let took = drain(&*store, at_once).await;
                best[usize::from(is_measured)] = best[usize::from(is_measured)].min(took);
                store.close().await.unwrap();
            }
            let rate = |took: Duration| JOBS as f64 / took.as_secs_f64();
            let place = if on_file { "a file" } else { "memory" };
            println!(
                "{place}, {at_once} at once: {:.0} jobs/s, measured {:.0}",
                rate(best[0]),
                rate(best[1])
            );
        }
    }
}
