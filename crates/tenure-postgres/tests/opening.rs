//! What opening a store promises.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

mod common;

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Fault, Jobs, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn programs_that_start_at_once_make_one_schema() {
    let server = Server::start_hasty().unwrap();
    let url = server.url();
    let opening = (0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { PostgresStore::open(&url, Options::default(), None).await.unwrap() })
    });
    for store in opening.collect::<Vec<_>>() {
        store.await.unwrap().close().await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let server = Server::start_hasty().unwrap();
    let refused = |url: String, options: Options| async move {
        PostgresStore::open(&url, options, None).await.unwrap_err()
    };
    let mut odd = Options::default();
    odd.schema = "a\"b".to_owned();
    assert!(matches!(refused(server.url(), odd).await, Fault::Broken(_)));
    let nowhere = "postgres://postgres@127.0.0.1:1/postgres".to_owned();
    assert!(matches!(refused(nowhere, Options::default()).await, Fault::Unavailable(_)));
    let missing = server.url().replace("/postgres", "/nobody");
    assert!(matches!(refused(missing, Options::default()).await, Fault::Broken(_)));
}

/// T008: a server that may have forgotten grants never grants their numbers again.
#[tokio::test]
async fn another_server_begins_a_new_epoch() {
    let server = Server::start_hasty().unwrap();
    let fence_of_next = async |chance: u64| {
        let store = common::open(&server).await;
        store.enqueue(common::jobs(1, chance)).await.unwrap();
        let fence = store.reserve(common::ask(1, 1)).await.unwrap().jobs.remove(0).fence();
        store.close().await.unwrap();
        fence
    };
    let (first, second) = (fence_of_next(1).await, fence_of_next(2).await);
    assert!(first < second && second.epoch() == first.epoch());
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    // As if the database had been on the server before this one.
    let before = "UPDATE tenure.meta SET value = value - 1 WHERE name = 'timeline'";
    client.batch_execute(before).await.unwrap();
    let store = common::open(&server).await;
    store.enqueue(common::jobs(1, 5)).await.unwrap();
    assert_eq!(store.reserve(common::ask(1, 1)).await.unwrap().jobs, [], "somebody may have it unheard of");
    store.close().await.unwrap();
    // As if the time of the longest lease had passed.
    client.batch_execute("UPDATE tenure.meta SET value = 0 WHERE name = 'bar'").await.unwrap();
    let (third, fourth) = (fence_of_next(3).await, fence_of_next(4).await);
    assert_eq!(third.epoch(), second.epoch().next());
    assert!(third < fourth && fourth.epoch() == third.epoch());
}
