//! A turn that ends many jobs settles and claims at the same time, by two transactions: either may fail by itself.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use given::jobs::{ask, held, new_jobs, settle};
use given::{host, number, options, schema, server, user};
use tenure_core::{Head, Key, OrderingKey, Settlement, StateName, Terms, Verdict};
use tenure_postgres::PostgresStore;
use tenure_store::{Fault, Held, Jobs, Renew, Renewal, Settled, Store, Turn};
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::Client;

/// So many are settled by a transaction of their own.
const MANY: usize = 100;

/// A store that waits for a lock for less than a second, and the ends of all jobs that it has granted; as many others wait.
async fn given(schema: &str) -> (Arc<PostgresStore>, Vec<Settlement>) {
    given_in(schema, Duration::from_secs(1)).await
}

/// The same with a store that waits for so long.
async fn given_in(schema: &str, patience: Duration) -> (Arc<PostgresStore>, Vec<Settlement>) {
    let mut options = options(schema);
    options.patience = patience;
    let store = PostgresStore::open(&server().url(), options, None).await.unwrap();
    store.enqueue(new_jobs(1, 2 * MANY as u64)).await.unwrap();
    let granted = store.reserve(ask(host(1), MANY)).await.unwrap().jobs;
    assert_eq!(granted.len(), MANY);
    (store, granted.into_iter().map(|reserved| settle(reserved, Verdict::Succeeded(None))).collect())
}

/// Looks until a number is as expected.
async fn until(client: &Client, sql: &str, expected: i64, why: &str) {
    for _ in 0..100_000 {
        if number(client, sql).await == expected {
            return;
        }
    }
    panic!("{why}");
}

/// A turn that has been claimed, and whose ends wait until a transaction is over.
async fn held_up(
    schema: &str,
    store: &Arc<PostgresStore>,
    ends: Vec<Settlement>,
) -> (Client, JoinHandle<Result<Turn, Fault>>) {
    let client = user(&server().url()).await;
    client.batch_execute(&format!("BEGIN; LOCK TABLE {schema}.receipt IN SHARE MODE")).await.unwrap();
    let asker = Arc::clone(store);
    let asked = tokio::spawn(async move { asker.settle(ends, Some(ask(host(1), MANY))).await });
    let waiting = format!("SELECT count(*) FROM {schema}.ready");
    until(&client, &waiting, 0, "they are granted while the ends wait").await;
    (client, asked)
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
    let waiting = format!("SELECT count(*) FROM {s}.ready");
    let (turn, ()) = tokio::join!(
        store.settle(ends.clone(), Some(ask(host(1), MANY))),
        until(&client, &waiting, 0, "they are granted beside the ends"),
    );
    assert!(matches!(turn, Err(Fault::Unavailable(_))), "{turn:?}");
    client.batch_execute("COMMIT").await.unwrap();
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

/// Whoever gives up waiting for his turn keeps nobody from what it was granted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_granted_to_whoever_waits_no_more_is_given_back() {
    let s = schema();
    let (store, ends) = given_in(&s, Duration::from_secs(60)).await;
    let waiting = format!("SELECT count(*) FROM {s}.ready");
    let (client, asked) = held_up(&s, &store, ends).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    client.batch_execute("COMMIT").await.unwrap();
    until(&client, &waiting, MANY as i64, "they are given back").await;
    let receipts = format!("SELECT sum(bit_count(seqs))::bigint FROM {s}.receipt");
    assert_eq!(number(&client, &receipts).await, MANY as i64, "the ends are written");
    store.close().await.unwrap();
}

/// Whoever gives up while others have their turn is granted nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_no_more_when_his_turn_comes_is_granted_nothing() {
    let s = schema();
    let (store, _) = given_in(&s, Duration::from_secs(60)).await;
    let client = user(&server().url()).await;
    client.batch_execute(&format!("BEGIN; LOCK TABLE {s}.ready IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let first = Arc::clone(&store);
    let first = tokio::spawn(async move { first.reserve(ask(host(1), 10)).await });
    let held = format!(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{s}.ready'::regclass AND mode <> 'AccessExclusiveLock'"
    );
    until(&client, &held, 1, "the first waits").await;
    assert!(store.reserve(ask(host(2), 10)).now_or_never().is_none(), "it has asked and waits no more");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().jobs.len(), 10);
    assert_eq!(store.reserve(ask(host(3), MANY)).await.unwrap().jobs.len(), MANY - 10);
    store.close().await.unwrap();
}

/// Whatever comes behind a turn finds written what that has settled, though the next turn need not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_behind_a_turn_finds_it_written() {
    let s = schema();
    let (store, ends) = given_in(&s, Duration::from_secs(60)).await;
    let of_ends = |end: &Settlement| Held { id: end.id(), seq: end.seq(), fence: end.fence() };
    let renew = Renew { ttl: Duration::from_secs(60), held: ends.iter().map(of_ends).collect() };
    let (client, asked) = held_up(&s, &store, ends).await;
    let renewer = Arc::clone(&store);
    let renewing = tokio::spawn(async move { renewer.renew(renew).await });
    for _ in 0..300 {
        number(&client, "SELECT 1::bigint").await;
    }
    assert!(!renewing.is_finished(), "it waits for the ends");
    client.batch_execute("COMMIT").await.unwrap();
    let turn = asked.await.unwrap().unwrap();
    assert_eq!(turn.settled, vec![Settled::Done(StateName::Succeeded); MANY]);
    assert_eq!(renewing.await.unwrap().unwrap(), vec![Renewal::Lost; MANY]);
    let granted = turn.reservation.jobs.iter().map(held).collect();
    let renewed = store.renew(Renew { ttl: Duration::from_secs(60), held: granted }).await.unwrap();
    assert!(renewed.iter().all(|renewal| matches!(renewal, Renewal::Held(_))), "{renewed:?}");
    store.close().await.unwrap();
}

/// What ends free for others is granted by the same turn, however many they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_ends_let_go_is_granted_by_the_same_turn() {
    let s = schema();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    let mut jobs = new_jobs(1, 2 * MANY as u64);
    for (index, job) in jobs.iter_mut().enumerate() {
        let key = Key::new("ordering", &format!("key {}", index % MANY)).unwrap();
        let ordering = Some(OrderingKey { key, head: Head::default() });
        job.terms = Arc::new(Terms { ordering, ..Terms::default() });
    }
    store.enqueue(jobs).await.unwrap();
    let granted = store.reserve(ask(host(1), MANY)).await.unwrap().jobs;
    assert_eq!(granted.len(), MANY);
    let ends = granted.into_iter().map(|reserved| settle(reserved, Verdict::Succeeded(None))).collect();
    let turn = store.settle(ends, Some(ask(host(1), MANY))).await.unwrap();
    assert_eq!(turn.settled, vec![Settled::Done(StateName::Succeeded); MANY]);
    assert_eq!(turn.reservation.jobs.len(), MANY);
    store.close().await.unwrap();
}

/// Turns that are under way at once grant each job once, and each of them is told what it has settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_that_are_under_way_at_once_share_out_what_waits() {
    const JOBS: usize = 4_000;
    let s = schema();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    store.enqueue(new_jobs(1, JOBS as u64)).await.unwrap();
    let mut workers = JoinSet::new();
    for number in 1..=3 {
        let store = Arc::clone(&store);
        workers.spawn(async move {
            let (mut granted, mut had) =
                (store.reserve(ask(host(number), MANY)).await.unwrap().jobs, Vec::new());
            while !granted.is_empty() {
                had.extend(granted.iter().map(|reserved| reserved.job().id));
                let ends: Vec<_> =
                    granted.into_iter().map(|one| settle(one, Verdict::Succeeded(None))).collect();
                let expected = vec![Settled::Done(StateName::Succeeded); ends.len()];
                let turn = store.settle(ends, Some(ask(host(number), MANY))).await.unwrap();
                assert_eq!(turn.settled, expected);
                granted = turn.reservation.jobs;
            }
            had
        });
    }
    let had = workers.join_all().await.concat();
    assert_eq!(had.len(), JOBS);
    assert_eq!(had.into_iter().collect::<BTreeSet<_>>().len(), JOBS, "none is granted twice");
    store.close().await.unwrap();
}

/// Whoever closes the store while turns are under way hears what came of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_under_way_when_the_store_is_closed_is_answered() {
    let s = schema();
    let (store, ends) = given(&s).await;
    let (turn, closed) = tokio::join!(store.settle(ends, Some(ask(host(1), MANY))), store.close());
    closed.unwrap();
    let turn = turn.unwrap();
    assert_eq!(turn.settled, vec![Settled::Done(StateName::Succeeded); MANY]);
    assert_eq!(turn.reservation.jobs.len(), MANY);
}
