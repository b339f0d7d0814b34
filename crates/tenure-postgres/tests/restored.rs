//! T008: no fence is granted twice, in whichever way a database is restored and however often.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{Fence, Verdict};
use tenure_postgres::PostgresStore;
use tenure_store::{Jobs, ManualClock, Store};
use tokio_postgres::Client;

use given::jobs::{ask, new_jobs, settle};
use given::leases::{TTL, acquire, granted, refusal, release, wish};
use given::{host, number, options, user};

/// Keeps all rows and sequences, as a dump does.
const DUMP: &str =
    "CREATE SCHEMA dump; CREATE TABLE dump.sequences AS SELECT sequencename, last_value FROM pg_sequences
         WHERE schemaname = 'tenure';
     DO $$ DECLARE t record; BEGIN
         FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'tenure' LOOP
             EXECUTE format('CREATE TABLE dump.%1$I AS SELECT * FROM tenure.%1$I', t.tablename);
         END LOOP;
     END $$";
/// Puts them back where they were.
const RESTORE: &str = "DO $$ DECLARE t record; BEGIN
         FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'tenure' LOOP
             EXECUTE format('DELETE FROM tenure.%I', t.tablename);
             EXECUTE format('INSERT INTO tenure.%1$I OVERRIDING SYSTEM VALUE SELECT * FROM dump.%1$I', t.tablename);
         END LOOP;
         PERFORM setval(format('tenure.%I', sequencename)::regclass, coalesce(last_value, 1), last_value IS NOT NULL)
             FROM dump.sequences;
     END $$";
const MOMENT: Duration = Duration::from_millis(5);
const BAR: &str = "SELECT value FROM tenure.meta WHERE name = 'bar'";

async fn open(server: &Server, clock: &ManualClock) -> Arc<PostgresStore> {
    PostgresStore::open(&server.url(), options("tenure"), Some(Arc::new(clock.clone()))).await.unwrap()
}

/// A store with a job, and a lease that is free.
async fn prepare(server: &Server, clock: &ManualClock) {
    let store = open(server, clock).await;
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    grants(&store).await;
    store.close().await.unwrap();
}

/// Grants a job and a lease, and returns their fences.
async fn grants(store: &PostgresStore) -> [Fence; 2] {
    let job = store.reserve(ask(host(1), 1)).await.unwrap().jobs.pop().unwrap();
    let fence = job.fence();
    store.settle(vec![settle(job, Verdict::Released)], None).await.unwrap();
    let lease = granted(wish(store, acquire("x", 1)).await);
    wish(store, release("x", 1, lease)).await;
    [fence, lease]
}

/// Some grants, a moment later, of which a copy that was made before does not know.
async fn more_grants(server: &Server, clock: &ManualClock) -> [Fence; 2] {
    clock.advance(MOMENT);
    let store = open(server, clock).await;
    for _ in 0..5 {
        grants(&store).await;
    }
    let last = grants(&store).await;
    store.close().await.unwrap();
    last
}

fn are_above(fences: [Fence; 2], last: [Fence; 2]) -> bool {
    fences.iter().zip(last).all(|(fence, last)| *fence > last)
}

async fn bar(client: &Client) -> i64 {
    number(client, BAR).await
}

#[tokio::test]
async fn a_dump_that_is_restored_again_and_again_on_its_own_server_grants_no_fence_twice() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    prepare(&server, &clock).await;
    let client = user(&server.url()).await;
    client.batch_execute(DUMP).await.unwrap();
    let mut last = more_grants(&server, &clock).await;
    for round in 0..3 {
        client.batch_execute(RESTORE).await.unwrap();
        clock.advance(MOMENT);
        let store = open(&server, &clock).await;
        // Programs may hold what was granted after the dump.
        assert!(store.reserve(ask(host(1), 1)).await.unwrap().jobs.is_empty(), "round {round}");
        refusal(wish(&*store, acquire("x", 1)).await);
        clock.advance(TTL.max(ask(host(1), 1).ttl));
        let next = grants(&store).await;
        assert!(are_above(next, last), "round {round}: {next:?} after {last:?}");
        store.close().await.unwrap();
        last = next;
    }
}

#[tokio::test]
async fn a_database_that_is_copied_on_its_server_begins_an_epoch_of_its_own() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    prepare(&server, &clock).await;
    let url_of = |name: &str| format!("postgres://postgres@127.0.0.1:{}/{name}", server.port());
    let operator = user(&url_of("template1")).await;
    operator.batch_execute("CREATE DATABASE copied TEMPLATE postgres").await.unwrap();
    let last = more_grants(&server, &clock).await;
    clock.advance(MOMENT);
    let store = PostgresStore::open(&url_of("copied"), options("tenure"), Some(Arc::new(clock.clone())))
        .await
        .unwrap();
    refusal(wish(&*store, acquire("x", 1)).await);
    clock.advance(TTL.max(ask(host(1), 1).ttl));
    assert!(are_above(grants(&store).await, last));
    store.close().await.unwrap();
}

/// Whoever puts the files back takes the server along: it is the same, on the same timeline.
#[tokio::test]
async fn files_that_are_put_back_again_and_again_grant_no_fence_twice() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    prepare(&server, &clock).await;
    let (data, saved) = (server.directory().join("data"), server.directory().join("saved"));
    let put = |from: &std::path::Path, to: &std::path::Path| {
        let _ = std::fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    server.stop().unwrap();
    put(&data, &saved);
    server.start_again().unwrap();
    let mut last = more_grants(&server, &clock).await;
    for round in 0..2 {
        server.stop().unwrap();
        put(&saved, &data);
        server.start_again().unwrap();
        let next = more_grants(&server, &clock).await;
        assert!(are_above(next, last), "round {round}: {next:?} after {last:?}");
        last = next;
    }
    assert_eq!(bar(&user(&server.url()).await).await, 0, "nobody waits after a restart");
}

/// An epoch was the upper part of each fence once.
#[tokio::test]
async fn a_database_of_an_older_version_goes_on_above_all_that_it_has_granted() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let whole = tenure_postgres::migration(&server.url(), options("tenure")).await.unwrap().sql;
    let (older, _) = whole.split_once("\n-- Step 0013").unwrap();
    let client = user(&server.url()).await;
    let epoch = "UPDATE tenure.meta SET value = 3 WHERE name = 'epoch'";
    client.batch_execute(&format!("{older} {epoch}; COMMIT")).await.unwrap();
    let store = open(&server, &clock).await;
    assert_eq!(granted(wish(&*store, acquire("x", 1)).await).number(), (3 << 40) + 1);
    store.close().await.unwrap();
}
