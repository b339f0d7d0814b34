//! Jobs on the server's own clock.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands"
)]

use crate::common;

use common::{ask, jobs, open, succeeded};
use own_postgres::Server;
use tenure_core::{Kind, StateName};
use tenure_store::{Enqueued, Jobs, Settled, Store, Views};

#[tokio::test]
async fn jobs_come_and_go_by_the_servers_clock() {
    let server = Server::start_hasty().unwrap();
    let store = open(&server).await;
    let batch = jobs(1200, 1);
    assert!(
        matches!(store.enqueue(batch.clone()).await.unwrap(), Enqueued::Stored(all) if all.len() == 1200)
    );
    let mut done = 0;
    let mut turn = store.settle(vec![], Some(ask(1, 500))).await.unwrap();
    while !turn.reservation.jobs.is_empty() {
        done += turn.reservation.jobs.len();
        turn = store.settle(succeeded(turn.reservation.jobs), Some(ask(1, 500))).await.unwrap();
        assert!(turn.settled.iter().all(|settled| *settled == Settled::Done(StateName::Succeeded)));
    }
    assert_eq!(done, 1200);
    let counts = store.counts().await.unwrap();
    assert!(
        matches!(counts.as_slice(), [one] if one.state == StateName::Succeeded && one.jobs == 1200),
        "{counts:?}"
    );
    let job = store.job(batch[7].id).await.unwrap().unwrap();
    assert!(job.created <= job.started.unwrap() && store.clock().now() >= job.started.unwrap());
    store.close().await.unwrap();
}

/// Not a measurement: what a plan that reads whole tables would cost would be seen here.
#[tokio::test]
#[ignore = "for whoever looks at speed"]
async fn a_hundred_thousand_jobs() {
    let server = Server::start().unwrap();
    let store = open(&server).await;
    let start = std::time::Instant::now();
    for batch in 0..100 {
        store.enqueue(jobs(1000, batch + 1)).await.unwrap();
    }
    println!("enqueued in {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let mut turn = store.settle(vec![], Some(ask(1, 500))).await.unwrap();
    let (mut done, mut longest) = (0, std::time::Duration::ZERO);
    while !turn.reservation.jobs.is_empty() {
        done += turn.reservation.jobs.len();
        let one = std::time::Instant::now();
        turn = store.settle(succeeded(turn.reservation.jobs), Some(ask(1, 500))).await.unwrap();
        longest = longest.max(one.elapsed());
    }
    println!("{done} done in {:?}, the longest turn {longest:?}", start.elapsed());
    store.close().await.unwrap();
}

/// Nor is this: a dump that goes on for long shall not make each claim dearer than the one before.
#[tokio::test]
#[ignore = "for whoever looks at speed"]
async fn a_hundred_thousand_jobs_behind_an_old_snapshot() {
    for kinds in [1, 2, 40] {
        behind_an_old_snapshot(kinds).await;
    }
}

async fn behind_an_old_snapshot(kinds: usize) {
    let jobs = |count, batch| {
        let mut jobs = jobs(count, batch);
        for (number, job) in jobs.iter_mut().enumerate() {
            job.kind = Kind::new(&format!("kind_{}", number % kinds)).unwrap();
        }
        jobs
    };
    let server = Server::start().unwrap();
    let store = open(&server).await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    store.enqueue(jobs(1000, 1)).await.unwrap();
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tenure.job")
        .await
        .unwrap();
    let mut took = Vec::new();
    let mut turn = store.settle(vec![], Some(ask(1, 500))).await.unwrap();
    let mut done = 0;
    for batch in 0..200 {
        store.enqueue(jobs(500, batch + 2)).await.unwrap();
        let one = std::time::Instant::now();
        done += turn.reservation.jobs.len();
        turn = store.settle(succeeded(turn.reservation.jobs), Some(ask(1, 500))).await.unwrap();
        took.push(one.elapsed());
    }
    for third in took.chunks(67) {
        let mut third = third.to_vec();
        third.sort_unstable();
        println!("{kinds} kinds: median {:?}, longest {:?}", third[third.len() / 2], third[third.len() - 1]);
    }
    println!("{done} done");
    client.batch_execute("COMMIT").await.unwrap();
    store.close().await.unwrap();
}
