//! What is enqueued is heard of, in a user's transaction when that has committed, whatever happens on the way.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands, and a server takes real time"
)]

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{jobs, open};
use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Enqueued, Hints, Jobs, Store, TxnRequest};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls, Transaction};

const LONG: Duration = Duration::from_secs(60);

async fn user(server: &Server) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Stores a job in a transaction.
async fn put(store: &Arc<PostgresStore>, tx: &Transaction<'_>, chance: u64) {
    let (joint, jobs) = (store.extras().joint.unwrap(), jobs(1, chance));
    let jobs = joint.prepare(TxnRequest::Enqueue { jobs, given: Vec::new() }).await.unwrap();
    let call = joint.statement(&jobs).unwrap();
    let answer: String = tx.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap().get(0);
    assert!(matches!(joint.answered(&jobs, &answer).unwrap(), Enqueued::Stored(_)));
}

/// One that hears hints. What was said before has been heard.
async fn listener(server: &Server) -> (Arc<PostgresStore>, tokio::sync::watch::Receiver<u64>) {
    let other = open(server).await;
    let mut due = other.due();
    while timeout(Duration::from_millis(500), due.changed()).await.is_ok() {}
    (other, due)
}

/// Closes a store. Returns `true` if it was so quick that it did not give up telling others, which it does after a second.
async fn close(store: &PostgresStore) -> bool {
    let began = Instant::now();
    timeout(LONG, store.close()).await.expect("it comes to its end").unwrap();
    began.elapsed() < Duration::from_secs(1)
}

/// Until the program has looked what became of a transaction: by this process of the server.
async fn looker(operator: &Client) -> i32 {
    let sql =
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_xact_status%' AND pid <> pg_backend_pid()";
    let found = async {
        loop {
            if let Some(row) = operator.query_opt(sql, &[]).await.unwrap() {
                return row.get(0);
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, found).await.expect("it looks")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_right_after_the_commit_has_told_others() {
    let server = Server::start_hasty().unwrap();
    let (_other, mut due) = listener(&server).await;
    let mut client = user(&server).await;
    for chance in 1..=5 {
        let store = open(&server).await;
        while timeout(Duration::from_millis(500), due.changed()).await.is_ok() {}
        let tx = client.transaction().await.unwrap();
        put(&store, &tx, chance).await;
        tx.commit().await.unwrap();
        if close(&store).await {
            timeout(LONG, due.changed()).await.expect("it is heard of").unwrap();
        }
    }
}

/// The first is heard of before the second is enqueued, so they are not told together. The second often comes so soon after
/// the first that the program ends before it has told of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_right_after_it_has_enqueued_has_told_others_of_all() {
    let server = Server::start_hasty().unwrap();
    let (_other, mut due) = listener(&server).await;
    for chance in 1..=5 {
        let store = open(&server).await;
        while timeout(Duration::from_millis(500), due.changed()).await.is_ok() {}
        store.enqueue(jobs(1, 2 * chance)).await.unwrap();
        timeout(LONG, due.changed()).await.expect("the first is heard of").unwrap();
        store.enqueue(jobs(1, 2 * chance + 1)).await.unwrap();
        if close(&store).await {
            timeout(LONG, due.changed()).await.expect("the second is heard of").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_in_the_same_program_hears_of_it_and_nobody_hears_of_what_was_there_before() {
    let server = Server::start_hasty().unwrap();
    let store = open(&server).await;
    let (mut client, operator) = (user(&server).await, user(&server).await);
    let mut others = store.others();
    while timeout(Duration::from_millis(500), others.recv()).await.is_ok() {}
    let tx = client.transaction().await.unwrap();
    put(&store, &tx, 1).await;
    tx.commit().await.unwrap();
    let heard = timeout(LONG, others.recv()).await.expect("it is heard of");
    assert!(matches!(heard, Ok(()) | Err(RecvError::Lagged(_))), "{heard:?}");
    while timeout(Duration::from_millis(500), others.recv()).await.is_ok() {}
    // The same job again: nothing is new.
    let before = looker(&operator).await;
    let looked = "SELECT max(query_start)::text FROM pg_stat_activity WHERE pid = $1";
    let last: String = operator.query_one(looked, &[&before]).await.unwrap().get(0);
    let tx = client.transaction().await.unwrap();
    put(&store, &tx, 1).await;
    tx.commit().await.unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        operator.query_one(looked, &[&before]).await.unwrap().get::<_, String>(0),
        last,
        "nobody looks"
    );
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_behind_a_pooler_tells_those_that_are_not() {
    let server = Server::start_hasty().unwrap();
    let pooler = server.pooler(&[]).unwrap();
    let store = PostgresStore::open(&pooler.url(), Options::default(), None).await.unwrap();
    let (_other, mut due) = listener(&server).await;
    let mut client = user(&server).await;
    let tx = client.transaction().await.unwrap();
    put(&store, &tx, 1).await;
    while timeout(Duration::from_millis(500), due.changed()).await.is_ok() {}
    tx.commit().await.unwrap();
    timeout(LONG, due.changed()).await.expect("it is heard of").unwrap();
    store.close().await.unwrap();
}
