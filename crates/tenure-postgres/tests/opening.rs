//! What opening a store promises.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::common;

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

#[tokio::test]
async fn the_schema_of_a_later_program_is_refused_and_stays_as_it_is() {
    let server = Server::start_hasty().unwrap();
    common::open(&server).await.close().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let later = "INSERT INTO tenure.migration (number, name, sql)
        SELECT max(number) + 1, 'of_tomorrow', 'SELECT' FROM tenure.migration";
    client.batch_execute(later).await.unwrap();
    let steps = "SELECT string_agg(number || sql, ',' ORDER BY number) FROM tenure.migration";
    let before: String = client.query_one(steps, &[]).await.unwrap().get(0);
    let refused = PostgresStore::open(&server.url(), Options::default(), None).await.unwrap_err();
    assert!(matches!(&refused, Fault::Broken(text) if text.contains("update this program")), "{refused}");
    assert_eq!(before, client.query_one(steps, &[]).await.unwrap().get::<_, String>(0));
    // Nor one whose step says something else than the one that is known here.
    let other = "DELETE FROM tenure.migration WHERE name = 'of_tomorrow';
        UPDATE tenure.migration SET sql = 'SELECT 1' WHERE number = 3";
    client.batch_execute(other).await.unwrap();
    let refused = PostgresStore::open(&server.url(), Options::default(), None).await.unwrap_err();
    assert!(matches!(&refused, Fault::Broken(text) if text.contains("0003_keys")), "{refused}");
}

/// Whoever has very many jobs may have a step that takes long, and others wait until he has done it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_the_schema_may_take_longer_than_any_call_and_so_may_waiting_for_it() {
    let server = Server::start_hasty().unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let slow =
        "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); END';
        CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION slow()";
    client.batch_execute(slow).await.unwrap();
    let opening = (0..2).map(|_| {
        let (url, mut options) = (server.url(), Options::default());
        options.patience = std::time::Duration::from_secs(1);
        tokio::spawn(async move { PostgresStore::open(&url, options, None).await })
    });
    for store in opening.collect::<Vec<_>>() {
        store.await.unwrap().unwrap().close().await.unwrap();
    }
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
    assert!(first < second);
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
    assert!(second < third && third < fourth);
    let epoch = "SELECT value FROM tenure.meta WHERE name = 'floor'";
    let floor: i64 = client.query_one(epoch, &[]).await.unwrap().get(0);
    assert!(second.number() < floor as u64 && (floor as u64) < third.number());
}
