//! What opening a store promises.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Fault, Store};

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
