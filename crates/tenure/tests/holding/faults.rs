//! Holding leases over a network that loses requests and replies.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{leased, settle_down};
use tenure::{Error, Fault, Faults, Fence, LeaseState, Loss};

const TTL: Duration = Duration::from_secs(15);

fn replies_lost() -> Faults {
    Faults { drop_reply: 1.0, ..Faults::none(1) }
}

/// T003: one grant in total.
#[tokio::test]
async fn an_acquisition_whose_reply_was_lost_is_had_with_one_grant() {
    let rig = leased();
    rig.network.set(replies_lost());
    let tenure = rig.tenure.clone();
    let asks = tokio::spawn(async move { tenure.leases().try_hold("x", TTL).await });
    settle_down().await;
    rig.network.heal();
    rig.pass(Duration::from_millis(200)).await;
    let held = asks.await.unwrap().unwrap().unwrap();
    assert_eq!(held.fence(), Fence::from_number(1));
    held.release().await.unwrap();
}

#[tokio::test]
async fn an_acquisition_of_which_nobody_ever_heard_is_given_back() {
    let rig = leased();
    rig.network.set(replies_lost());
    let tenure = rig.tenure.clone();
    let asks = tokio::spawn(async move { tenure.leases().try_hold("x", TTL).await });
    rig.pass(Duration::from_secs(2)).await;
    let unknown = asks.await.unwrap().unwrap_err();
    assert!(matches!(unknown, Error::Fault(Fault::Unknown(_))), "{unknown}");
    rig.network.heal();
    rig.pass(Duration::from_secs(2)).await;
    let info = rig.another().leases().info("x").await.unwrap().unwrap();
    assert_eq!((info.state, rig.tenure.leases().tally().held), (LeaseState::Free, 0));
}

/// T018: the reply is lost.
#[tokio::test]
async fn a_release_whose_reply_was_lost_is_repeated_and_reported_as_done() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.network.set(replies_lost());
    let releasing = tokio::spawn(held.release());
    settle_down().await;
    assert!(rig.another().leases().try_hold("x", TTL).await.unwrap().is_some(), "it is free");
    rig.pass(Duration::from_secs(1)).await;
    assert!(!releasing.is_finished());
    rig.network.heal();
    rig.pass(Duration::from_secs(2)).await;
    releasing.await.unwrap().unwrap();
}

/// T018: the request is lost, and a release that nobody awaits goes on all the same.
#[tokio::test]
async fn a_release_that_fails_in_transit_is_repeated_until_the_lease_is_free() {
    let rig = leased();
    for awaited in [true, false] {
        let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
        rig.network.set(Faults { drop_request: 0.5, fail: 0.5, ..Faults::none(7) });
        let releasing = tokio::spawn(async move {
            if awaited {
                return held.release().await;
            }
            drop(held);
            Ok(())
        });
        rig.pass(Duration::from_secs(2)).await;
        rig.network.heal();
        rig.pass(Duration::from_secs(3)).await;
        releasing.await.unwrap().unwrap();
        let info = rig.another().leases().info("x").await.unwrap().unwrap();
        assert_eq!(info.state, LeaseState::Free);
    }
}

/// T018: the store is away for longer than the period: the fault is reported, and the lease lapses.
#[tokio::test]
async fn a_release_that_never_gets_through_is_reported_when_the_lease_has_lapsed() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.network.down(true);
    let releasing = tokio::spawn(held.release());
    rig.pass(TTL).await;
    assert!(rig.another().leases().try_hold("x", TTL).await.unwrap().is_some(), "it has lapsed");
    rig.pass(TTL / 8).await;
    let away = releasing.await.unwrap().unwrap_err();
    assert!(matches!(away, Error::Fault(Fault::Unavailable(_))), "{away}");
}

/// T025: at every moment of a renewal.
#[tokio::test]
async fn a_release_beside_a_renewal_ends_free_and_stays_so() {
    for steps in 0..60 {
        let rig = leased();
        let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
        rig.network.set(Faults { delay: 1.0, longest_delay: Duration::from_secs(2), ..Faults::none(steps) });
        rig.pass(Duration::from_secs(5)).await;
        for _ in 0..steps {
            settle_down().await;
            rig.clock.advance(Duration::from_millis(50));
        }
        let releasing = tokio::spawn(held.release());
        rig.pass(Duration::from_secs(5)).await;
        releasing.await.unwrap().unwrap();
        for _ in 0..20 {
            let info = rig.another().leases().info("x").await.unwrap().unwrap();
            assert_eq!((info.state, info.lease.fence), (LeaseState::Free, Fence::from_number(1)), "{steps}");
            rig.pass(Duration::from_millis(500)).await;
        }
    }
}

/// An hour of a bad network, with an outage shorter than the belief here and there.
#[tokio::test]
async fn a_holder_keeps_its_lease_through_an_hour_of_faults() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let rival = rig.another();
    rig.network.set(Faults { longest_delay: Duration::from_secs(1), ..Faults::some(11) });
    for minute in 0..60 {
        rig.network.down(true);
        rig.pass(Duration::from_secs(4)).await;
        rig.network.down(false);
        rig.pass(Duration::from_secs(56)).await;
        assert_eq!(held.loss(), None, "minute {minute}");
        assert!(rival.leases().try_hold("x", TTL).await.unwrap().is_none());
    }
    assert!(rig.tenure.leases().tally().doubtful > 50);
}

/// §B.9: what was lost while the store had forgotten it is told as what it is.
#[tokio::test]
async fn a_holder_whose_lease_another_program_gave_back_is_told() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let act = tenure_core::LeaseAct::Release { id: held.id(), fence: held.fence() };
    let wish = tenure_store::LeaseWish { name: held.name().clone(), act };
    rig.store.lease(vec![wish]).await.unwrap();
    rig.pass(Duration::from_secs(6)).await;
    assert_eq!(held.loss(), Some(Loss::Released));
}

/// Nobody is left who could hear of it: not even a lease without end is tried to be given back for ever.
#[tokio::test]
async fn a_wait_that_was_dropped_while_the_store_is_away_leaves_nothing_behind() {
    let rig = leased();
    let (network, clock, tenure) = (Arc::downgrade(&rig.network), rig.clock.clone(), rig.tenure.clone());
    rig.network.set(replies_lost());
    let waits = tokio::spawn(async move { tenure.leases().hold("x").endless().await });
    rig.pass(Duration::from_secs(1)).await;
    rig.network.down(true);
    waits.abort();
    drop(waits.await);
    drop(rig);
    crate::common::pass(&clock, Duration::from_secs(120)).await;
    assert_eq!(network.strong_count(), 0, "whoever asked has ended");
}
