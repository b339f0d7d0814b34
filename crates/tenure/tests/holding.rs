//! Holding leases: what a holder is told, and what nobody else gets meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use std::time::Duration;

use common::{pass, settle_down};
use tenure::{Clock, Fence, LeaseRefusal, LeaseState, Loss, Tenure};

const TTL: Duration = Duration::from_secs(15);

/// A handle on a store in memory whose time is moved by hand, and its store, which can misbehave.
fn rig() -> common::Leased {
    common::leased()
}

#[tokio::test]
async fn a_lease_that_is_held_stays_held_and_is_free_once_it_is_given_back() {
    let rig = rig();
    let held = rig.tenure.leases().hold("billing-close").ttl(TTL).await.unwrap();
    assert_eq!(held.fence(), Fence::from_number(1));
    let other = rig.another();
    for _ in 0..100 {
        pass(&rig.clock, Duration::from_secs(1)).await;
        assert!(held.is_held() && !held.is_doubtful());
        assert!(other.leases().try_hold("billing-close", TTL).await.unwrap().is_none());
    }
    held.release().await.unwrap();
    let next = other.leases().try_hold("billing-close", TTL).await.unwrap().unwrap();
    assert_eq!(next.fence(), Fence::from_number(2));
    let _ = (LeaseState::Held, Loss::Broken, None::<LeaseRefusal>, None::<Tenure>, rig.clock.now());
    settle_down().await;
}
