//! A server whose commits wait for a replica: what is granted is granted on both, or nobody says that it is.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

mod given;

use std::sync::Arc;

use own_postgres::Server;
use tenure_core::{Epoch, Fence, LeaseOutcome};
use tenure_postgres::PostgresStore;
use tenure_store::{Fault, Leases, ManualClock, Store};

use given::leases::{acquire, granted, release, renew, wish};
use given::{number, options, user};

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
