//! The server goes away and comes back: what was acknowledged is there, and nobody has to do anything.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands"
)]

use crate::common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{ask, jobs, open, succeeded};
use own_postgres::Server;
use tenure_core::{JobId, StateName};
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Fault, Hints, Jobs, Settled, Store, Views};
use tokio::sync::broadcast::error::RecvError;

/// Enqueues until it is told to stop; answers what was acknowledged.
async fn produce(store: Arc<PostgresStore>, stop: Arc<AtomicBool>, chance: u64) -> BTreeSet<JobId> {
    let mut acknowledged = BTreeSet::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let batch = jobs(5, chance << 16 | number);
        let ids: Vec<JobId> = batch.iter().map(|job| job.id).collect();
        match store.enqueue(batch).await {
            Ok(_) => acknowledged.extend(ids),
            Err(fault) => {
                assert!(fault.is_passing(), "{fault}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    acknowledged
}

/// Works until it is told to stop and finds nothing; answers what was settled, each with its fence.
async fn consume(store: Arc<PostgresStore>, stop: Arc<AtomicBool>, holder: u8) -> Vec<(JobId, u64)> {
    let mut done = Vec::new();
    loop {
        let reservation = match store.reserve(ask(holder, 50)).await {
            Ok(reservation) => reservation,
            Err(fault) => {
                assert!(fault.is_passing(), "{fault}");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        if reservation.jobs.is_empty() {
            if stop.load(Ordering::Relaxed) {
                return done;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        let settlements = succeeded(reservation.jobs);
        let owned: Vec<_> = settlements.iter().map(|one| (one.id(), one.fence().number())).collect();
        loop {
            match store.settle(settlements.clone(), None).await {
                Ok(turn) => {
                    for (owned, settled) in owned.into_iter().zip(turn.settled) {
                        match settled {
                            // The reply to a settlement that was written was lost.
                            Settled::Done(_) | Settled::Repeated => done.push(owned),
                            Settled::Fenced | Settled::Gone => {}
                        }
                    }
                    break;
                }
                Err(fault) => {
                    assert!(fault.is_passing(), "{fault}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

/// Nothing that was acknowledged is lost when the server is killed, and nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_under_load_loses_nothing_that_was_acknowledged() {
    let server = Server::start().unwrap();
    let store = open(&server).await;
    let (enough, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let producers: Vec<_> =
        (1..=3).map(|n| tokio::spawn(produce(Arc::clone(&store), Arc::clone(&enough), n))).collect();
    let consumers: Vec<_> =
        (1..=2).map(|n| tokio::spawn(consume(Arc::clone(&store), Arc::clone(&stop), n))).collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(350)).await;
        server.crash().unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.start_again().unwrap();
    }
    tokio::time::sleep(Duration::from_millis(350)).await;
    enough.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for producer in producers {
        acknowledged.extend(producer.await.unwrap());
    }
    stop.store(true, Ordering::Relaxed);
    let mut done = Vec::new();
    for consumer in consumers {
        done.extend(consumer.await.unwrap());
    }
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let ids: BTreeSet<JobId> = done.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), done.len(), "a job was done twice");
    for id in &acknowledged {
        let job = store.job(*id).await.unwrap().expect("what was acknowledged is there");
        let name = job.state.name(store.clock().now());
        // What was granted when the server died, and nobody heard of, lapses in its time.
        assert!(matches!(name, StateName::Succeeded | StateName::Running), "{id} is {name}");
        assert_eq!(ids.contains(id), name == StateName::Succeeded);
    }
    let counts = store.counts().await.unwrap();
    let succeeded: u64 =
        counts.iter().filter(|count| count.state == StateName::Succeeded).map(|count| count.jobs).sum();
    assert_eq!(succeeded, ids.len() as u64, "{counts:?}");
    store.close().await.unwrap();
}

#[tokio::test]
async fn one_program_hears_what_another_has_enqueued() {
    let server = Server::start_hasty().unwrap();
    let (here, there) = (open(&server).await, open(&server).await);
    let (mut due, mut others) = (there.due(), there.others());
    // It listens once it has heard itself; what it missed before that it is told then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    due.mark_unchanged();
    here.enqueue(jobs(1, 1)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), due.changed()).await.unwrap().unwrap();
    // To have missed some of what was said is to have heard.
    let heard = tokio::time::timeout(Duration::from_secs(60), others.recv()).await.unwrap();
    assert!(matches!(heard, Ok(_) | Err(RecvError::Lagged(_))), "{heard:?}");
    assert_eq!(there.reserve(ask(2, 5)).await.unwrap().jobs.len(), 1);
    here.close().await.unwrap();
    there.close().await.unwrap();
}

#[tokio::test]
async fn who_waits_too_long_for_a_lock_is_told_that_nothing_was_done() {
    let server = Server::start_hasty().unwrap();
    let mut options = Options::default();
    options.patience = Duration::from_secs(1);
    let store = PostgresStore::open(&server.url(), options, None).await.unwrap();
    store.enqueue(jobs(1, 1)).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let late = store.enqueue(jobs(1, 2));
    let late = tokio::time::timeout(Duration::from_secs(60), late).await.expect("an answer comes in time");
    assert!(matches!(late, Err(Fault::Unavailable(_))), "{late:?}");
    client.batch_execute("COMMIT").await.unwrap();
    store.enqueue(jobs(1, 3)).await.unwrap();
    assert_eq!(store.reserve(ask(1, 5)).await.unwrap().jobs.len(), 2);
    store.close().await.unwrap();
}
