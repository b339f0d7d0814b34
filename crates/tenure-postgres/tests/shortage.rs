//! Programs that get fewer connections than they have tasks: all of them make progress, and nothing is refused.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, in real time")]

use std::time::Duration;

use own_postgres::Server;
use tenure_core::StateName;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Enqueued, Jobs, Store, Views};
use tokio::time::timeout;

use crate::common::{ask, jobs, succeeded};

const LONG: Duration = Duration::from_secs(60);

/// Enqueues, claims and completes jobs in several programs at once.
async fn work(connections: u32, programs: u8) {
    let room = format!("max_connections={connections}");
    let server = Server::start_with(&["superuser_reserved_connections=0", &room]).unwrap();
    let mut working = tokio::task::JoinSet::new();
    for program in 1..=programs {
        let url = server.url();
        working.spawn(async move {
            let store = PostgresStore::open(&url, Options::default(), None).await.unwrap();
            for round in 0..5 {
                let stored = store.enqueue(jobs(3, u64::from(program) * 1_000 + round * 10)).await.unwrap();
                assert!(matches!(stored, Enqueued::Stored(_)));
                let reserved = store.reserve(ask(program, 10)).await.unwrap().jobs;
                let settled = store.settle(succeeded(reserved), None).await.unwrap();
                drop(settled);
                store.counts().await.unwrap();
            }
            store
        });
    }
    let mut stores = timeout(LONG, working.join_all()).await.expect("all make progress");
    let last = stores.pop().unwrap();
    for store in stores {
        timeout(LONG, store.close()).await.expect("it ends").unwrap();
    }
    let ended: u64 = last
        .counts()
        .await
        .unwrap()
        .iter()
        .filter(|count| count.state == StateName::Succeeded)
        .map(|count| count.jobs)
        .sum();
    assert!(ended > 0, "jobs were handed out");
    timeout(LONG, last.close()).await.expect("it ends").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_program_works_with_a_single_connection() {
    work(1, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_programs_share_six_connections() {
    work(6, 3).await;
}
