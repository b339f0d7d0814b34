//! A store accepts jobs on the runtime in which it was opened, and goes on without it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;

use futures_util::future::join_all;
use given::jobs::{new_job, new_jobs};
use given::{number, open, schema, server, user};
use tenure_core::{Name, Terms};
use tenure_postgres::PostgresStore;
use tenure_store::{Enqueued, Jobs, ManualClock, Store};
use tokio::runtime::{Builder, Runtime};

fn many_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

async fn enqueue(store: &PostgresStore, from: u64) {
    assert!(matches!(store.enqueue(new_jobs(from, 1)).await.unwrap(), Enqueued::Stored(_)));
}

async fn opened(schema: &str, clock: &ManualClock) -> Arc<PostgresStore> {
    let store = open(schema, clock).await;
    enqueue(&store, 1).await;
    enqueue(&store, 2).await;
    store
}

/// Opens a store, and enqueues from there, from elsewhere, and once more from elsewhere when there is gone.
#[test]
fn whoever_enqueues_from_another_runtime_needs_not_the_one_in_which_the_store_was_opened() {
    let (schema, clock) = (schema(), ManualClock::new());
    let (there, elsewhere) = (many_threads(), many_threads());
    let store = there.block_on(opened(&schema, &clock));
    let count = |number_of: i64| {
        let one_thread = Builder::new_current_thread().enable_all().build().unwrap();
        let there = one_thread.block_on(async {
            let client = user(&server().url()).await;
            number(&client, &format!("SELECT count(*) FROM {schema}.job")).await
        });
        assert_eq!(there, number_of);
    };
    elsewhere.block_on(enqueue(&store, 3));
    count(3);
    there.shutdown_background();
    elsewhere.block_on(enqueue(&store, 4));
    Builder::new_current_thread().build().unwrap().block_on(enqueue(&store, 5));
    count(5);
    elsewhere.block_on(store.close()).unwrap();
}

/// A handler that blocks and hears nobody keeps its runtime from running for as long as it likes.
#[test]
fn a_store_is_closed_though_the_runtime_in_which_it_was_opened_does_nothing_any_more() {
    let (schema, clock) = (schema(), ManualClock::new());
    let there = many_threads();
    let store = there.block_on(async { tokio::spawn(async move { opened(&schema, &clock).await }).await });
    let store = store.unwrap();
    let (blocks, is_blocked) = std::sync::mpsc::channel();
    let (let_go, waits) = std::sync::mpsc::channel::<()>();
    there.spawn(async move {
        blocks.send(()).unwrap();
        waits.recv().unwrap_err();
    });
    is_blocked.recv().unwrap();
    many_threads().block_on(store.close()).unwrap();
    drop(let_go);
}

/// A store has its own timers and sockets.
#[test]
fn a_runtime_without_timers_and_sockets_is_enough() {
    let (schema, clock) = (schema(), ManualClock::new());
    let bare = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    bare.block_on(async {
        let store = open(&schema, &clock).await;
        enqueue(&store, 1).await;
        store.close().await.unwrap();
    });
}

/// Whoever has a single thread enqueues on that of the store: what waits there for somebody's lock has one of two connections.
#[tokio::test]
async fn jobs_that_need_no_more_than_a_statement_do_not_wait_for_one_that_waits_for_a_lock() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = opened(&schema, &clock).await;
    let (locks, looks) = (user(&server().url()).await, user(&server().url()).await);
    let plain = async |round: u64| join_all((1..=8).map(|one| enqueue(&store, round * 100 + one))).await;
    locks.batch_execute(&format!("BEGIN; LOCK TABLE {schema}.tag IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let mut tagged = new_job(50);
    tagged.terms = Arc::new(Terms { tags: vec![Name::new("tag", "late").unwrap()], ..Terms::default() });
    let tagged = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.enqueue(vec![tagged]).await }
    });
    plain(1).await;
    let waits =
        format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{schema}.tag'::regclass");
    while number(&looks, &waits).await == 0 {}
    for round in 2..6 {
        plain(round).await;
    }
    assert!(!tagged.is_finished());
    locks.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(tagged.await.unwrap().unwrap(), Enqueued::Stored(_)));
    store.close().await.unwrap();
}
