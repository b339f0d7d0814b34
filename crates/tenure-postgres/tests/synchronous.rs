//! A server whose commits wait for a replica: what is granted is granted on both, or nobody says that it is.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

mod given;

use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{Epoch, Fence, LeaseOutcome};
use tenure_postgres::PostgresStore;
use tenure_store::{Accepted, Enqueued, Fault, Hints, Jobs, Leases, ManualClock, Store};
use tokio_postgres::Client;

use given::jobs::{ask, new_jobs};
use given::leases::{acquire, granted, release, renew, wish};
use given::{host, number, options, user};

/// A server that waits for its replica.
fn pair() -> (Server, Server) {
    let primary = Server::start_hasty().unwrap();
    let replica = primary.replica(&["synchronous_standby_names="]).unwrap();
    primary.set("synchronous_standby_names=*").unwrap();
    (primary, replica)
}

/// The commit has happened there, and perhaps nowhere else: whoever says that it was granted may be wrong, and whoever
/// says that it was not, too.
#[tokio::test]
async fn a_commit_that_stops_waiting_for_the_replica_is_unknown() {
    let (primary, replica) = pair();
    let clock = ManualClock::new();
    let store = PostgresStore::open(&primary.url(), options("tenure"), Some(Arc::new(clock))).await.unwrap();
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    assert_eq!(wish(&*store, release("ledger", 1, fence)).await, LeaseOutcome::Released);
    replica.stop().unwrap();
    let operator = user(&primary.url()).await;
    let asked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.lease(vec![acquire("ledger", 2)]).await }
    });
    let waits = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while number(&operator, waits).await == 0 {}
    let fault = asked.await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    // It may be repeated, and tells then how it went.
    replica.start_again().unwrap();
    let again = loop {
        match store.lease(vec![acquire("ledger", 2)]).await {
            Ok(outcomes) => break granted(outcomes.into_iter().next().unwrap()),
            Err(fault) => assert!(fault.is_passing(), "{fault}"),
        }
    };
    assert!(again > fence);
}

/// Nothing is lost, and still no fence can be granted twice.
#[tokio::test]
async fn what_was_granted_before_the_promotion_of_a_synchronous_replica_is_known_after_it() {
    let (primary, replica) = pair();
    let both = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    let url = format!("postgres://postgres@{both}/postgres");
    let clock = ManualClock::new();
    let store = PostgresStore::open(&url, options("tenure"), Some(Arc::new(clock.clone()))).await.unwrap();
    let mut fences: Vec<Fence> = Vec::new();
    for number in 1..=20 {
        let fence = granted(wish(&*store, acquire("ledger", number)).await);
        fences.push(fence);
        if number < 20 {
            wish(&*store, release("ledger", number, fence)).await;
        }
    }
    primary.crash().unwrap();
    replica.promote().unwrap();
    let last = *fences.last().unwrap();
    let renewed = loop {
        match store.lease(vec![renew("ledger", 20, last)]).await {
            Ok(outcomes) => break outcomes.into_iter().next().unwrap(),
            Err(fault) => assert!(fault.is_passing(), "{fault}"),
        }
    };
    assert!(matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
    clock.advance(given::leases::TTL);
    let next = granted(wish(&*store, acquire("ledger", 21)).await);
    assert!(next > last && next.epoch() == Epoch::new(1));
    store.close().await.unwrap();
}

/// So many commits wait for a replica.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
/// A program that tells others something along with what it writes does so once in so long at most.
const APART: Duration = Duration::from_millis(50);

/// A server with two programs that know a lane, on which commits wait from now on. The first program may tell hints.
async fn held_up() -> (Server, Arc<PostgresStore>, Arc<PostgresStore>, Client) {
    let server = Server::start_hasty().unwrap();
    let one = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
    let other = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
    one.enqueue(new_jobs(1, 1)).await.unwrap();
    other.reserve(ask(host(1), 1)).await.unwrap();
    tokio::time::sleep(APART).await;
    server.set("synchronous_standby_names=nobody").unwrap();
    let operator = user(&server.url()).await;
    (server, one, other, operator)
}

async fn until(operator: &Client, sql: &str, expected: i64) {
    for _ in 0..100_000 {
        if number(operator, sql).await == expected {
            return;
        }
    }
    panic!("{sql} is never {expected}");
}

/// A disk that is slow is waited for once from enqueueing to the handler, and not once for each.
#[tokio::test]
async fn others_hear_of_a_job_before_it_lasts_and_nobody_is_told_that_it_is_there_or_his() {
    let (server, one, other, operator) = held_up().await;
    let mut due = other.due();
    due.borrow_and_update();
    let job = new_jobs(2, 1);
    let accepted = Accepted::New(job[0].id);
    let ask_for = |store: &Arc<PostgresStore>| {
        let (store, job) = (Arc::clone(store), job.clone());
        tokio::spawn(async move { store.enqueue(job).await })
    };
    let asked = ask_for(&one);
    due.changed().await.unwrap();
    until(&operator, "SELECT count(*) FROM tenure.ready", 1).await;
    until(&operator, WAITING, 1).await;
    let again = ask_for(&other);
    until(&operator, WAITING, 2).await;
    let granting = tokio::spawn({
        let other = Arc::clone(&other);
        async move { other.reserve(ask(host(1), 1)).await }
    });
    until(&operator, WAITING, 3).await;
    assert!(!asked.is_finished() && !again.is_finished() && !granting.is_finished());
    server.set("synchronous_standby_names=").unwrap();
    assert_eq!(asked.await.unwrap(), Ok(Enqueued::Stored(vec![accepted])));
    assert_eq!(again.await.unwrap(), Ok(Enqueued::Stored(vec![Accepted::Repeated(job[0].id)])));
    assert_eq!(granting.await.unwrap().unwrap().jobs.len(), 1);
}

/// They are there, and perhaps on no other disk: whoever says that they are accepted may be wrong.
#[tokio::test]
async fn jobs_of_which_it_is_not_heard_that_they_last_are_not_accepted_and_not_lost_either() {
    let (server, one, other, operator) = held_up().await;
    let job = new_jobs(2, 1);
    let asked = tokio::spawn({
        let (one, job) = (Arc::clone(&one), job.clone());
        async move { one.enqueue(job).await }
    });
    until(&operator, "SELECT count(*) FROM tenure.ready", 1).await;
    let ends = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    until(&operator, ends, 1).await;
    let fault = asked.await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    server.set("synchronous_standby_names=").unwrap();
    let again = one.enqueue(job.clone()).await;
    assert_eq!(again, Ok(Enqueued::Stored(vec![Accepted::Repeated(job[0].id)])));
    assert_eq!(other.reserve(ask(host(1), 2)).await.unwrap().jobs.len(), 1);
}
