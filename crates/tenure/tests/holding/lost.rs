//! Losing a lease: on time, told, and taken again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{leased, settle_down};
use tenure::{Clock, Error, Fault, Faults, LeaseId, LeaseLost, Loss};

const TTL: Duration = Duration::from_secs(15);

/// How long this host believes in an answer about a lease of [`TTL`].
const BELIEF: Duration = Duration::from_millis(12_500);

/// T013: the work hears of it and ends, the process and its other work live.
#[tokio::test]
async fn work_whose_lease_is_taken_away_is_told_and_everything_else_goes_on() {
    let rig = leased();
    let (told, untouched) = (Arc::new(AtomicBool::new(false)), rig.tenure.leases().hold("y").await.unwrap());
    let (tenure, tells) = (rig.tenure.clone(), Arc::clone(&told));
    let work = tokio::spawn(async move {
        let held = tenure.leases().hold("x").ttl(TTL).await?;
        let ended = held.run(async |pass| {
            pass.lost().await;
            tells.store(true, Ordering::SeqCst);
        });
        Ok::<_, Error>(ended.await)
    });
    settle_down().await;
    rig.tenure.leases().break_it("x", Some(Duration::ZERO), "somebody has to").await.unwrap();
    let taken = rig.another().leases().try_hold("x", TTL).await.unwrap().unwrap();
    rig.pass(Duration::from_secs(6)).await;
    assert!(told.load(Ordering::SeqCst));
    let lost = work.await.unwrap().unwrap().unwrap_err();
    assert_eq!(lost.loss, Loss::TakenAway { fence: taken.fence() });
    assert!(untouched.is_held() && taken.is_held());
    let last = rig.tenure.leases().last("x", 2).await.unwrap();
    assert_eq!(last.iter().map(|holding| holding.end).collect::<Vec<_>>(), [None, Some(tenure::What::Broke)]);
}

/// T013: work that does not listen is dropped when its grace is over.
#[tokio::test]
async fn work_that_does_not_end_by_itself_is_dropped_after_the_grace() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let rig = leased();
    let dropped = Arc::new(AtomicBool::new(false));
    let (tenure, guard) = (rig.tenure.clone(), Dropped(Arc::clone(&dropped)));
    let work = tokio::spawn(async move {
        let held = tenure.leases().hold("x").ttl(TTL).grace(Duration::from_secs(3)).await?;
        Ok::<_, Error>(
            held.run(async |_| {
                let _guard = guard;
                std::future::pending::<()>().await
            })
            .await,
        )
    });
    settle_down().await;
    rig.network.down(true);
    rig.pass(BELIEF + Duration::from_millis(2_900)).await;
    assert!(!dropped.load(Ordering::SeqCst));
    rig.pass(Duration::from_millis(200)).await;
    assert!(dropped.load(Ordering::SeqCst));
    assert!(matches!(work.await.unwrap().unwrap(), Err(LeaseLost { loss: Loss::Expired { .. }, .. })));
}

/// T014: while everything that renews hangs.
#[tokio::test]
async fn a_holder_stops_believing_on_time_while_the_keeper_hangs() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let pass = held.pass();
    // No task gets to run in between.
    rig.clock.advance(BELIEF - Duration::from_micros(1));
    assert!(held.is_held() && pass.is_held() && pass.guard().is_ok());
    rig.clock.advance(Duration::from_micros(1));
    assert!(!held.is_held() && !pass.is_held());
    assert!(matches!(pass.guard().unwrap_err().loss, Loss::Expired { .. }));
    // The keeper comes to itself and renews, which the store grants: too late.
    rig.pass(Duration::from_secs(1)).await;
    assert!(!held.is_held());
    assert!(matches!(held.lost().await, Loss::Expired { .. }));
}

/// T014: after whatever renews has died.
#[test]
fn a_holder_stops_believing_on_time_after_the_keeper_has_died() {
    let rig = leased();
    let start = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let runtime = start();
    let held = runtime.block_on(async { rig.tenure.leases().hold("x").ttl(TTL).await.unwrap() });
    drop(runtime);
    assert!(held.is_held());
    let clock = rig.clock.clone();
    start().block_on(async {
        let (lost, _) = tokio::join!(held.lost(), async {
            settle_down().await;
            clock.advance(BELIEF);
        });
        assert!(matches!(lost, Loss::Expired { .. }));
        assert!(!held.is_held());
        // Another keeper takes its place.
        clock.advance(TTL);
        assert!(rig.tenure.leases().try_hold("x", TTL).await.unwrap().is_some());
    });
}

/// T014: a store that never answers.
#[tokio::test]
async fn a_holder_is_told_at_its_deadline_while_its_requests_hang() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.network.set(Faults { delay: 1.0, longest_delay: Duration::from_secs(360_000), ..Faults::none(3) });
    rig.pass(BELIEF - Duration::from_millis(100)).await;
    assert!(held.is_held() && held.is_doubtful());
    let lost = held.lost();
    let mut lost = std::pin::pin!(lost);
    assert!(now(lost.as_mut()).is_none());
    rig.pass(Duration::from_millis(100)).await;
    assert!(matches!(now(lost.as_mut()), Some(Loss::Expired { .. })));
}

/// What a future has to say right now.
fn now<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

/// T015: the old renewal is gone when the name is taken again.
#[tokio::test]
async fn a_name_that_was_lost_and_taken_again_is_renewed_once() {
    let rig = leased();
    let lost = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    for _ in 0..5 {
        rig.clock.advance(TTL);
        settle_down().await;
        let again = rig.tenure.leases().try_hold("x", TTL).await.unwrap().unwrap();
        drop(again);
        settle_down().await;
    }
    let held = rig.tenure.leases().try_hold("x", TTL).await.unwrap().unwrap();
    let (calls, renewals) = (rig.calls(), rig.tenure.leases().tally().renewals);
    rig.pass(TTL * 20).await;
    let (calls, renewals) = (rig.calls() - calls, rig.tenure.leases().tally().renewals - renewals);
    assert!(held.is_held() && !lost.is_held());
    assert!((54..=60).contains(&renewals) && calls == renewals, "{renewals} renewals with {calls} calls");
}

/// T016.
#[tokio::test]
async fn a_name_that_was_lost_and_taken_again_is_held_renewed_and_given_back() {
    let rig = leased();
    for id in [None, Some(LeaseId::new([4, 2]))] {
        let hold = || id.into_iter().fold(rig.tenure.leases().hold("x").ttl(TTL), |hold, id| hold.id(id));
        let first = hold().await.unwrap();
        let fence = first.fence();
        rig.clock.advance(TTL);
        settle_down().await;
        drop(first);
        // Whoever was too late lets others who wait go first.
        let (again, ()) = tokio::join!(hold().into_future(), rig.pass(Duration::from_secs(1)));
        let again = again.unwrap();
        assert!(again.fence() > fence);
        rig.pass(TTL * 3).await;
        assert!(again.is_held());
        let info = rig.tenure.leases().info("x").await.unwrap().unwrap();
        assert_eq!(info.lease.held.unwrap().id, again.id());
        again.release().await.unwrap();
        let other = rig.another();
        other.leases().try_hold("x", TTL).await.unwrap().unwrap().release().await.unwrap();
    }
}

/// T019: after the last handle and the last holder have gone nothing is held, and nothing renews.
#[tokio::test]
async fn with_the_last_handle_and_holder_all_is_given_back_and_renewed_no_more() {
    let rig = leased();
    let (network, clock, other) = (Arc::downgrade(&rig.network), rig.clock.clone(), rig.another());
    let mut held = Vec::new();
    for number in 0..10 {
        held.push(rig.tenure.leases().hold(&format!("lease-{number}")).ttl(TTL).await.unwrap());
    }
    let pass = held[0].pass();
    drop(rig);
    crate::common::pass(&clock, TTL * 2).await;
    assert!(held.iter().all(|held| held.is_held()), "they are held by whoever holds them");
    drop(held);
    settle_down().await;
    for number in 1..10 {
        assert!(other.leases().try_hold(&format!("lease-{number}"), TTL).await.unwrap().is_some());
    }
    assert!(other.leases().try_hold("lease-0", TTL).await.unwrap().is_none(), "work under it goes on");
    drop(pass);
    settle_down().await;
    assert!(other.leases().try_hold("lease-0", TTL).await.unwrap().is_some());
    assert_eq!(network.strong_count(), 0, "whoever renewed has ended");
}

/// T019: closing the handle ends everything, whoever still has something in hand.
#[tokio::test]
async fn closing_the_handle_tells_every_holder_gives_back_and_renews_no_more() {
    let rig = leased();
    let kept = rig.tenure.leases().hold("kept").ttl(TTL).await.unwrap();
    let worked = rig.tenure.leases().hold("worked").ttl(TTL).await.unwrap();
    let work = tokio::spawn(worked.run(async |pass| {
        pass.lost().await;
    }));
    let waiting = tokio::spawn({
        let tenure = rig.tenure.clone();
        async move { tenure.leases().hold("kept").await }
    });
    settle_down().await;
    let closing = tokio::spawn(rig.tenure.clone().close());
    settle_down().await;
    assert_eq!(kept.loss(), Some(Loss::Closed));
    assert_eq!(work.await.unwrap().unwrap_err().loss, Loss::Closed);
    assert!(matches!(waiting.await.unwrap(), Err(Error::Fault(Fault::Closed))));
    let info = rig.another().leases().info("worked").await.unwrap().unwrap();
    assert_eq!(info.lease.held, None, "its work has ended");
    rig.pass(Duration::from_secs(2)).await;
    closing.await.unwrap().unwrap();
    let calls = rig.calls();
    rig.pass(TTL * 3).await;
    assert_eq!(rig.calls(), calls);
    assert!(matches!(kept.release().await, Err(Error::LeaseLost(_))));
}

/// T022, as the holder sees it: it is told at once, and others have it when it was said.
#[tokio::test]
async fn a_holder_hears_at_once_that_its_lease_is_being_broken() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.pass(Duration::from_secs(3)).await;
    let other = rig.another();
    let free = other.leases().break_it("x", Some(Duration::from_secs(60)), "moving out").await.unwrap();
    assert_eq!(free.since(rig.clock.now()), Duration::from_secs(12), "what was left is less");
    rig.pass(Duration::from_secs(6)).await;
    assert_eq!(held.loss(), Some(Loss::Broken));
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none(), "its work may still be ending");
    drop(held);
    settle_down().await;
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_some());
}
