//! A pooler that gives its servers to others after each transaction keeps nobody from working, and nobody has to say that
//! it is there.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::common;
use crate::given;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::{ask, jobs, succeeded};
use given::leases::{acquire, granted, name, refusal, release, renew, wish};
use given::timers::{records, timer};
use given::{number, options, user};
use own_postgres::{Pooler, Server};
use tenure_core::{LeaseOutcome, limits};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Clock, Hearing, Hints, Jobs, Leases, ManualClock, Settled, Store, SystemClock, Timers, Views,
};
use tokio_postgres::SimpleQueryMessage;

/// Strangers that use the same servers in between, so that nobody has one for himself.
fn strangers(pooler: &Pooler) -> Vec<tokio::task::JoinHandle<()>> {
    let stranger = |url: String| async move {
        let client = user(&url).await;
        while client.simple_query("BEGIN; SELECT pg_sleep(0.001); COMMIT").await.is_ok() {
            SystemClock.sleep(Duration::from_millis(1)).await;
        }
    };
    (0..3).map(|_| tokio::spawn(stranger(pooler.url()))).collect()
}

async fn open(pooler: &Pooler, schema: &str) -> Arc<PostgresStore> {
    PostgresStore::open(&pooler.url(), options(schema), None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jobs_leases_and_timers_work_behind_a_pooler_that_shares_its_servers() {
    let server = Server::start_hasty().unwrap();
    let pooler = server.pooler(&["default_pool_size=4"]).unwrap();
    let strangers = strangers(&pooler);
    let (one, two) = (open(&pooler, "behind").await, open(&pooler, "behind").await);
    assert!(one.about().place.ends_with("behind a pooler"), "{}", one.about().place);

    one.enqueue(jobs(200, 1)).await.unwrap();
    two.enqueue(jobs(200, 2)).await.unwrap();
    let mut done = BTreeSet::new();
    let (mut by_one, mut by_two) = (0, 0);
    while done.len() < 400 {
        let (a, b) = tokio::join!(one.reserve(ask(1, 30)), two.reserve(ask(2, 30)));
        let (a, b) = (a.unwrap().jobs, b.unwrap().jobs);
        assert!(!a.is_empty() || !b.is_empty(), "{} of 400 were handed out", done.len());
        (by_one, by_two) = (by_one + a.len(), by_two + b.len());
        for job in a.iter().chain(&b) {
            assert!(done.insert(job.job().id), "a job was handed out twice");
        }
        let (a, b) = tokio::join!(one.settle(succeeded(a), None), two.settle(succeeded(b), None));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(
            a.settled.iter().chain(&b.settled).all(|settled| matches!(settled, Settled::Done(_))),
            "{a:?} {b:?}"
        );
    }
    assert!(by_one > 0 && by_two > 0);

    let fence = granted(wish(&*one, acquire("billing", 1)).await);
    refusal(wish(&*two, acquire("billing", 2)).await);
    let renewed = wish(&*one, renew("billing", 1, fence)).await;
    assert!(matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
    wish(&*one, release("billing", 1, fence)).await;
    assert!(granted(wish(&*two, acquire("billing", 2)).await) > fence);
    assert!(one.lease_info(&name("billing")).await.unwrap().is_some());

    // By a clock that is moved, with another schema.
    let clock = ManualClock::new();
    let timed =
        PostgresStore::open(&pooler.url(), options("timed"), Some(Arc::new(clock.clone()))).await.unwrap();
    timed.set_timers(vec![timer("pulse", "every 10s")], None).await.unwrap();
    for _ in 0..3 {
        clock.advance(Duration::from_secs(10));
        timed.fire(limits::FIRE_TIMERS).await.unwrap();
    }
    assert_eq!(records(&*timed).await.len(), 3);
    let counts = timed.counts().await.unwrap();
    assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), 3);

    for store in [&one, &two, &timed] {
        store.close().await.unwrap();
    }
    strangers.iter().for_each(tokio::task::JoinHandle::abort);
    // Nothing of what these programs said stays with a server that others are given.
    let left = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'tenure%'";
    let stranger = user(&pooler.url()).await;
    let shown = stranger.simple_query("SHOW search_path").await.unwrap();
    let path = shown.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0).map(str::to_owned)
    });
    assert_eq!(path.as_deref(), Some("\"$user\", public"));
    let direct = user(&server.url()).await;
    assert_eq!(number(&direct, left).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_hints_are_heard_everybody_looks_once_a_second_and_is_told_so() {
    let server = Server::start_hasty().unwrap();
    let pooler = server.pooler(&[]).unwrap();
    let store = open(&pooler, "tenure").await;
    let clock = SystemClock;
    let mut freed = store.freed();
    freed.mark_unchanged();
    let begun = clock.moment();
    for _ in 0..3 {
        freed.changed().await.unwrap();
    }
    let took = clock.moment().since(begun);
    assert!(took >= Duration::from_millis(1900), "{took:?}");

    // Nothing else is asked of the server meanwhile.
    let direct = user(&server.url()).await;
    let ended =
        "SELECT (xact_commit + xact_rollback)::bigint FROM pg_stat_database WHERE datname = 'postgres'";
    let count = async || {
        // What a server has done it tells when it has nothing to do for a second.
        clock.sleep(Duration::from_millis(1500)).await;
        number(&direct, ended).await
    };
    let before = count().await;
    let begun = clock.moment();
    clock.sleep(Duration::from_secs(2)).await;
    let transactions = count().await - before;
    let took = clock.moment().since(begun).as_secs_f64();
    assert!(
        transactions as f64 <= 1.0 + took * 2.0,
        "{transactions} transactions in {took} seconds, of which some are the test's own"
    );

    let status = tenure_postgres::status(&pooler.url(), options("tenure")).await.unwrap();
    assert_eq!(status.hearing, Hearing::Looks);
    let status = tenure_postgres::status(&server.url(), options("tenure")).await.unwrap();
    assert_eq!(status.hearing, Hearing::Hints);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_before_and_behind_a_pooler_share_a_store() {
    let server = Server::start_hasty().unwrap();
    let pooler = server.pooler(&["default_pool_size=2"]).unwrap();
    let behind = open(&pooler, "tenure").await;
    let before = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
    assert!(!before.about().place.contains("pooler"), "{}", before.about().place);
    let mut due = before.due();
    // What one behind a pooler does is heard by others.
    behind.enqueue(jobs(10, 1)).await.unwrap();
    let is_heard = tokio::select! {
        biased;
        changed = due.changed() => changed.is_ok(),
        () = SystemClock.sleep(Duration::from_secs(60)) => false,
    };
    assert!(is_heard, "what was told while it began to listen is heard");
    let reserved = before.reserve(ask(1, 10)).await.unwrap().jobs;
    assert_eq!(reserved.len(), 10);
    before.settle(succeeded(reserved), None).await.unwrap();
    for store in [&behind, &before] {
        store.close().await.unwrap();
    }
}
