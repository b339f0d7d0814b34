//! A turn that ends many jobs settles and claims at the same time, by two transactions: either may fail by itself.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

mod given;

use std::sync::Arc;
use std::time::Duration;

use given::jobs::{ask, new_jobs, settle};
use given::{host, number, options, schema, server, user};
use tenure_core::{Settlement, StateName, Verdict};
use tenure_postgres::PostgresStore;
use tenure_store::{Fault, Jobs, Settled, Store};

/// So many are settled by a transaction of their own.
const MANY: usize = 100;

/// A store that waits for a lock for less than a second, and the ends of all jobs that it has granted; as many others wait.
async fn given(schema: &str) -> (Arc<PostgresStore>, Vec<Settlement>) {
    let mut options = options(schema);
    options.patience = Duration::from_secs(1);
    let store = PostgresStore::open(&server().url(), options, None).await.unwrap();
    store.enqueue(new_jobs(1, 2 * MANY as u64)).await.unwrap();
    let granted = store.reserve(ask(host(1), MANY)).await.unwrap().jobs;
    assert_eq!(granted.len(), MANY);
    (store, granted.into_iter().map(|reserved| settle(reserved, Verdict::Succeeded(None))).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_granted_is_given_back_if_the_ends_cannot_be_written() {
    let s = schema();
    let (store, ends) = given(&s).await;
    let client = user(&server().url()).await;
    client
        .batch_execute(&format!("BEGIN; SELECT FROM {s}.granted ORDER BY fence LIMIT 1 FOR UPDATE"))
        .await
        .unwrap();
    let turn = store.settle(ends.clone(), Some(ask(host(1), MANY))).await;
    assert!(matches!(turn, Err(Fault::Unavailable(_))), "{turn:?}");
    client.batch_execute("COMMIT").await.unwrap();
    let waiting = format!("SELECT count(*) FROM {s}.ready");
    assert_eq!(number(&client, &waiting).await, MANY as i64, "nobody has to wait until they lapse");
    let turn = store.settle(ends, Some(ask(host(1), MANY))).await.unwrap();
    assert_eq!(turn.settled, vec![Settled::Done(StateName::Succeeded); MANY]);
    assert_eq!(turn.reservation.jobs.len(), MANY);
    assert!(turn.reservation.jobs.iter().all(|reserved| reserved.job().attempt == 1), "no attempt was spent");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_is_told_if_nothing_can_be_granted() {
    let s = schema();
    let (store, ends) = given(&s).await;
    let client = user(&server().url()).await;
    client.batch_execute(&format!("BEGIN; LOCK TABLE {s}.ready IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let turn = store.settle(ends, Some(ask(host(1), MANY))).await.unwrap();
    assert_eq!(turn.settled, vec![Settled::Done(StateName::Succeeded); MANY]);
    assert_eq!((turn.reservation.jobs.len(), turn.reservation.due_in), (0, Some(Duration::ZERO)));
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.reserve(ask(host(1), MANY)).await.unwrap().jobs.len(), MANY);
    store.close().await.unwrap();
}
