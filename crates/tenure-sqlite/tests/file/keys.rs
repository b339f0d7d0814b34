//! Jobs with keys: many at once, two programs at once, and rows that cannot be read.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    Head, Key, Limit, LimitKey, NewJob, OrderingKey, QueueName, Rate, StateName, Terms, Verdict,
};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Clock, Jobs, Kinds, ManualClock, Reserve, Store, Views, Want};

use crate::given::agree::assert_agrees;
use crate::given::{ask, file, host, new_job, open, open_live, runtime, settle};

fn key(text: &str) -> Key {
    Key::new("key", text).unwrap()
}

fn on_terms(number: u64, terms: &Terms) -> NewJob {
    NewJob { terms: Arc::new(terms.clone()), ..new_job(number) }
}

fn limited(most: Option<u32>) -> Terms {
    Terms { limit: Some(LimitKey { key: key("smtp"), most }), ..Terms::default() }
}

fn ordered(order: &str) -> Terms {
    let ordering = Some(OrderingKey { key: key(order), head: Head::Block });
    Terms { ordering, ..Terms::default() }
}

async fn count(store: &SqliteStore, state: StateName) -> u64 {
    let counts = store.counts().await.unwrap();
    counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
}

fn agrees(file: &Path) {
    assert_agrees(&Connection::open(file).unwrap());
}

/// More than are moved one by one, and more than are pushed out at once.
#[test]
fn a_limit_that_is_lifted_and_set_again_lets_in_and_pushes_out_all_there_are() {
    const JOBS: u64 = 1_300;
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue((1..=JOBS).map(|n| on_terms(n, &limited(Some(2)))).collect()).await.unwrap();
        let shown =
            async || (count(&store, StateName::Queued).await, count(&store, StateName::Blocked).await);
        assert_eq!(shown().await, (2, JOBS - 2));
        for (most, queued) in [(1_000, 1_000), (990, 990), (9, 9), (1_100, 1_100), (600, 600), (1, 1)] {
            store.set_limit(&key("smtp"), Some(Limit::of(most))).await.unwrap();
            // A call lets in a thousand, and the next one the rest.
            store.tend().await.unwrap();
            assert_eq!(shown().await, (queued, JOBS - queued));
        }
        assert_eq!(store.reserve(ask(host(1), 9)).await.unwrap().jobs.len(), 1);
        store.set_limit(&key("smtp"), None).await.unwrap();
        assert_eq!(shown().await, (1, JOBS - 2));
        store.close().await.unwrap();
    });
    agrees(&file);
}

/// The clock of a machine is set back: jobs in line are not due any more, and others are granted before them.
#[test]
fn a_limit_is_kept_over_a_clock_that_was_set_back() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap();
    runtime().block_on(async {
        let start = clock.now();
        let urgent =
            |number| NewJob { priority: tenure_core::Priority::FIRST, ..on_terms(number, &limited(Some(2))) };
        clock.step_to(start.after(Duration::from_secs(20)));
        store.enqueue(vec![urgent(1), urgent(2)]).await.unwrap();
        clock.step_to(start);
        store.set_limit(&key("smtp"), Some(Limit::of(4))).await.unwrap();
        store.enqueue((3..=8).map(|n| on_terms(n, &limited(Some(2)))).collect()).await.unwrap();
        let first = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
        let seqs: Vec<u64> = first.iter().map(|reserved| reserved.job().seq).collect();
        assert_eq!(seqs, [3, 4]);
        clock.step_to(start.after(Duration::from_secs(21)));
        for expected in [vec![1, 2], vec![], vec![5, 6]] {
            let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
            let seqs: Vec<u64> = granted.iter().map(|reserved| reserved.job().seq).collect();
            assert_eq!(seqs, expected);
            if expected.is_empty() {
                store.set_limit(&key("smtp"), Some(Limit::of(6))).await.unwrap();
            }
        }
        store.close().await.unwrap();
    });
    agrees(&file);
}

/// What runs now, and what has run of each order.
#[derive(Default)]
struct Seen {
    running: HashMap<String, u64>,
    last: HashMap<String, u64>,
    most: u64,
}

#[test]
fn two_programs_keep_one_limit_and_one_order() {
    const JOBS: u64 = 300;
    const MOST: u32 = 3;
    let (_directory, file) = file();
    let stores = [0, 1].map(|_| open_live(&file, Options::default()));
    let terms =
        |number: u64| Terms { limit: limited(Some(MOST)).limit, ..ordered(&format!("order-{}", number % 7)) };
    let runtime = runtime();
    runtime.block_on(async {
        for number in 1..=JOBS {
            let store = &stores[usize::try_from(number % 2).unwrap()];
            store.enqueue(vec![on_terms(number, &terms(number))]).await.unwrap();
        }
    });
    let seen = Arc::new(Mutex::new(Seen::default()));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (store, seen) = (stores[usize::try_from(task % 2).unwrap()].clone(), Arc::clone(&seen));
            runtime.spawn(async move {
                let mut idle = 0;
                while idle < 200 {
                    let granted = store.reserve(ask(host(task), 2)).await.unwrap().jobs;
                    idle = if granted.is_empty() { idle + 1 } else { 0 };
                    for reserved in granted {
                        let order = reserved.job().terms.ordering.as_ref().unwrap().key.to_string();
                        let seq = reserved.job().seq;
                        {
                            let mut seen = seen.lock().unwrap();
                            assert!(
                                seen.running.insert(order.clone(), seq).is_none(),
                                "two of {order} at once"
                            );
                            let last = seen.last.insert(order.clone(), seq).unwrap_or(0);
                            assert!(last < seq, "{seq} of {order} after {last}");
                            seen.most = seen.most.max(seen.running.len() as u64);
                        }
                        tokio::task::yield_now().await;
                        seen.lock().unwrap().running.remove(&order);
                        store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
                    }
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(count(&stores[0], StateName::Succeeded).await, JOBS);
        for store in &stores {
            store.close().await.unwrap();
        }
    });
    let most = seen.lock().unwrap().most;
    assert!((2..=u64::from(MOST)).contains(&most), "{most} at once");
    agrees(&file);
}

/// What nobody can read shall not end what shares its keys: its turn comes when it can be read again.
#[test]
fn a_job_with_keys_that_a_newer_version_wrote_keeps_its_turn_until_it_can_be_read() {
    for terms in [ordered("cart"), Terms { limit: limited(None).limit, ..ordered("cart") }] {
        let (_directory, file) = file();
        let clock = ManualClock::new();
        let store = SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap();
        let other = Connection::open(&file).unwrap();
        runtime().block_on(async {
            store.enqueue((1..=3).map(|n| on_terms(n, &terms)).collect()).await.unwrap();
            let known: String =
                other.query_row("SELECT terms FROM job WHERE seq = 2", [], |row| row.get(0)).unwrap();
            let first = store.reserve(ask(host(1), 9)).await.unwrap().jobs.remove(0);
            other.execute("UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 2", []).unwrap();
            store.settle(vec![settle(first, Verdict::Succeeded(None))], Some(ask(host(1), 9))).await.unwrap();
            for _ in 0..3 {
                assert_eq!(store.reserve(ask(host(1), 9)).await.unwrap().jobs, []);
                clock.advance(Duration::from_secs(60));
            }
            other.execute("UPDATE job SET terms = ?1 WHERE seq = 2", [known]).unwrap();
            clock.advance(Duration::from_secs(60));
            for expected in [2, 3] {
                let reserved = store.reserve(ask(host(1), 9)).await.unwrap().jobs.remove(0);
                assert_eq!(reserved.job().seq, expected);
                store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
            }
            store.close().await.unwrap();
        });
        drop(other);
        agrees(&file);
    }
}

/// A newer version may know kinds of limits that this one does not.
#[test]
fn a_limit_that_cannot_be_read_stops_only_the_lines_of_its_own_jobs() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let open = || SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap();
    let store = open();
    let other = Connection::open(&file).unwrap();
    let elsewhere = |number| NewJob { queue: QueueName::new("post").unwrap(), ..new_job(number) };
    runtime().block_on(async {
        let rate = Limit::default().at_rate(Rate::new(1, Duration::from_secs(10)));
        store.set_limit(&key("smtp"), Some(rate)).await.unwrap();
        store.enqueue((1..=3).map(|n| on_terms(n, &limited(None))).collect()).await.unwrap();
        assert_eq!(store.reserve(ask(host(1), 1)).await.unwrap().jobs.len(), 1);
        clock.advance(Duration::from_secs(11));
        store.tend().await.unwrap();
        assert_eq!(count(&store, StateName::Queued).await, 1);
        store.close().await.unwrap();
    });
    let known: String = other.query_row("SELECT set_to FROM limit_key", [], |row| row.get(0)).unwrap();
    other.execute("UPDATE limit_key SET set_to = '[\"of a newer version\"]'", []).unwrap();
    let store = open();
    runtime().block_on(async {
        store.enqueue((4..=6).map(elsewhere).collect()).await.unwrap();
        // Its room comes, and a clock that is put back has it looked at, too.
        clock.advance(Duration::from_secs(11));
        let want = |queue| Want { queue, kinds: Kinds::All, at_most: 1 };
        let both = || Reserve {
            wants: vec![want(QueueName::default()), want(QueueName::new("post").unwrap())],
            ..ask(host(1), 9)
        };
        for _ in 0..2 {
            assert_eq!(store.reserve(both()).await.unwrap().jobs.len(), 1, "what does not need it");
            store.tend().await.unwrap();
        }
        assert!(store.set_limit(&key("smtp"), None).await.unwrap_err().is_passing());
        other.execute("UPDATE limit_key SET set_to = ?1", [known]).unwrap();
        clock.advance(Duration::from_secs(61));
        let granted = store.reserve(both()).await.unwrap().jobs;
        assert_eq!(granted.len(), 2, "one of each");
        store.close().await.unwrap();
    });
    drop(other);
    agrees(&file);
}
