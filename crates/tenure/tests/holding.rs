//! Holding leases: what a holder is told, and when.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use common::{leased, settle_down};
use tenure::{
    Chance, Clock, Error, Fault, Faults, FaultyStore, Fence, FenceGate, Holder, LeaseId, LeaseLost,
    LeaseRefusal, Loss, ManualClock, Tenure,
};

const TTL: Duration = Duration::from_secs(15);

/// How long this host believes in an answer about a lease of [`TTL`].
const BELIEF: Duration = Duration::from_millis(12_500);

fn hour() -> Duration {
    Duration::from_secs(3_600)
}

#[tokio::test]
async fn a_lease_that_is_held_stays_held_and_is_free_once_it_is_given_back() {
    let rig = leased();
    let held = rig.tenure.leases().hold("billing-close").ttl(TTL).await.unwrap();
    assert_eq!(held.fence(), Fence::from_number(1));
    let other = rig.another();
    for _ in 0..100 {
        rig.pass(Duration::from_secs(1)).await;
        assert!(held.is_held() && !held.is_doubtful());
        assert!(other.leases().try_hold("billing-close", TTL).await.unwrap().is_none());
    }
    held.release().await.unwrap();
    let next = other.leases().try_hold("billing-close", TTL).await.unwrap().unwrap();
    assert_eq!(next.fence(), Fence::from_number(2));
}

/// T004: nobody locks itself out by renewing twice.
#[tokio::test]
async fn a_renewal_whose_reply_was_lost_is_repeated() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.network.set(Faults { drop_reply: 1.0, ..Faults::none(1) });
    rig.pass(Duration::from_secs(6)).await;
    assert!(held.is_held() && held.is_doubtful());
    rig.network.heal();
    rig.pass(Duration::from_secs(2)).await;
    assert!(held.is_held() && !held.is_doubtful());
    rig.pass(TTL).await;
    assert_eq!((held.loss(), held.fence()), (None, Fence::from_number(1)));
}

/// T009: a holder is suspended past its lease and wakes up where it was.
#[tokio::test]
async fn a_holder_that_slept_through_its_lease_can_write_nothing_more() {
    let rig = leased();
    let (gate, mut shelf) = (FenceGate::default(), Vec::new());
    let late = rig.tenure.leases().hold("shelf").ttl(TTL).await.unwrap();
    gate.write(late.fence(), || shelf.push("late")).unwrap();

    // Nothing of the program runs while time passes.
    rig.clock.advance(TTL);
    let other = rig.another();
    let present = other.leases().try_hold("shelf", TTL).await.unwrap().unwrap();
    gate.write(present.fence(), || shelf.push("present")).unwrap();

    assert!(!late.is_held());
    let lost = late.guard().unwrap_err();
    assert!(matches!(lost.loss, Loss::Expired { .. }), "{lost}");
    // Even if it had looked just before it was suspended: the resource refuses it.
    assert!(gate.write(late.fence(), || shelf.push("late")).is_err());
    assert_eq!(shelf, ["late", "present"]);
    assert!(matches!(late.release().await, Err(Error::LeaseLost(_))));
    assert!(present.is_held());
    rig.pass(Duration::from_secs(5)).await;
    assert!(present.is_held(), "the release of the late one was nothing to it");
}

/// T010: what lies outside the range is said to, and is never "held".
#[tokio::test]
async fn names_and_times_outside_the_range_are_refused_by_field() {
    let rig = leased();
    let leases = rig.tenure.leases();
    for ttl in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(86_401), Duration::MAX] {
        let refused = leases.try_hold("x", ttl).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
        assert!(refused.to_string().contains("1 to 86400 seconds"), "{refused}");
    }
    for seconds in [f64::NAN, -1.0, f64::INFINITY, 9_223_372_036_854_775_808.0] {
        assert!(tenure::Ttl::of_seconds(seconds).is_err(), "{seconds}");
    }
    for name in ["", "a/../b", "a\nb", &"x".repeat(1_025)] {
        let refused = leases.hold(name).await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid(wrong) if wrong.field == "lease name"), "{refused}");
    }
    let refused = leases.hold("x").note("why", &"y".repeat(2_000)).try_now().await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    assert_eq!(rig.calls(), 0, "the store was not even asked");
}

/// T011.
#[tokio::test]
async fn a_store_that_is_away_is_a_fault_and_not_another_holder() {
    let rig = leased();
    rig.network.down(true);
    let away = rig.tenure.leases().try_hold("x", TTL).await.unwrap_err();
    assert!(matches!(away, Error::Fault(Fault::Unavailable(_))), "{away}");
    let tenure = rig.tenure.clone();
    let waiting = tokio::spawn(async move { tenure.leases().hold("x").within(Duration::from_secs(3)).await });
    rig.pass(Duration::from_secs(4)).await;
    let away = waiting.await.unwrap().unwrap_err();
    assert!(matches!(away, Error::Fault(Fault::Unavailable(_))), "{away}");

    rig.network.down(false);
    assert!(rig.tenure.leases().try_hold("x", TTL).await.unwrap().is_some());
}

/// T012: the tries that follow one that fails come soon enough, and when all fail the work is told before the
/// lease is anybody else's.
#[tokio::test]
async fn one_failed_renewal_loses_nothing_and_all_of_them_are_told_in_time() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.network.down(true);
    let mut at = Duration::ZERO;
    while rig.network.tally().turned_away == 0 {
        rig.pass(Duration::from_millis(100)).await;
        at += Duration::from_millis(100);
    }
    assert!(at <= TTL / 2, "{at:?}");
    rig.network.down(false);
    rig.pass(TTL * 2).await;
    assert!(held.is_held());

    rig.network.down(true);
    let other = rig.another();
    while held.is_held() {
        assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none(), "two believe in it");
        rig.pass(Duration::from_millis(100)).await;
    }
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none(), "it lapses only later");
    assert!(rig.tenure.leases().tally().doubtful >= 2);
}

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
    rig.tenure.leases().break_it("x", Some(Duration::ZERO), "somebody has to").await.unwrap().unwrap();
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
    rig.network.set(Faults { delay: 1.0, longest_delay: hour() * 100, ..Faults::none(3) });
    rig.pass(BELIEF - Duration::from_millis(100)).await;
    assert!(held.is_held() && held.is_doubtful());
    let lost = held.lost();
    let mut lost = std::pin::pin!(lost);
    assert!(futures_poll(lost.as_mut()).is_none());
    rig.pass(Duration::from_millis(100)).await;
    assert!(matches!(futures_poll(lost.as_mut()), Some(Loss::Expired { .. })));
}

/// What a future has to say right now.
fn futures_poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
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
        let again = hold().await.unwrap();
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
    common::pass(&clock, TTL * 2).await;
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

/// T020: what keeps two namespaces apart is part of the name, or the store.
#[tokio::test]
async fn the_same_word_under_two_prefixes_or_in_two_stores_is_two_leases() {
    let (one, two) = (leased(), leased());
    let in_one = one.tenure.leases().try_hold("north/close", TTL).await.unwrap();
    let in_other = one.tenure.leases().try_hold("south/close", TTL).await.unwrap();
    let in_two = two.tenure.leases().try_hold("north/close", TTL).await.unwrap();
    let upper = one.tenure.leases().try_hold("North/close", TTL).await.unwrap();
    assert!([in_one, in_other, in_two, upper].iter().all(Option::is_some));
}

/// T021: only the store's clock and clocks that never step decide.
#[tokio::test]
async fn a_host_whose_time_of_day_steps_by_an_hour_neither_loses_nor_takes_anything() {
    let rig = leased();
    let mine = OwnTime { day: ManualClock::new(), time: rig.clock.clone() };
    let network =
        FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)).with_clock(Arc::new(mine.clone()));
    let stepping = Tenure::on(Arc::new(network), Chance::seeded(3)).leases_on_runtime();
    let held = stepping.leases().hold("mine").ttl(TTL).await.unwrap();
    let theirs = rig.tenure.leases().hold("theirs").ttl(TTL).await.unwrap();
    let waiting = tokio::spawn(async move { stepping.leases().hold("theirs").await });
    let start = mine.day.now();
    for offset in [start.after(hour()), start.before(hour()), start] {
        mine.day.step_to(offset);
        rig.pass(TTL * 3).await;
        assert!(held.is_held() && theirs.is_held() && !waiting.is_finished());
        assert!(rig.another().leases().try_hold("mine", TTL).await.unwrap().is_none());
    }
    theirs.release().await.unwrap();
    settle_down().await;
    assert!(waiting.is_finished());
}

/// A clock whose time of day is moved by itself, and whose moments are another's.
#[derive(Debug, Clone)]
struct OwnTime {
    day: ManualClock,
    time: ManualClock,
}

impl Clock for OwnTime {
    fn now(&self) -> tenure::Timestamp {
        self.day.now()
    }

    fn moment(&self) -> tenure_store::Moment {
        self.time.moment()
    }

    fn sleep(&self, span: Duration) -> tenure_store::Sleep {
        self.time.sleep(span)
    }
}

/// T022, as the holder sees it: it is told at once, and others have it when it was said.
#[tokio::test]
async fn a_holder_hears_at_once_that_its_lease_is_being_broken() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    rig.pass(Duration::from_secs(3)).await;
    let other = rig.another();
    let free =
        other.leases().break_it("x", Some(Duration::from_secs(60)), "moving out").await.unwrap().unwrap();
    assert_eq!(free.since(rig.clock.now()), Duration::from_secs(12), "what was left is less");
    rig.pass(Duration::from_secs(6)).await;
    assert_eq!(held.loss(), Some(Loss::Broken));
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none(), "its work may still be ending");
    drop(held);
    settle_down().await;
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_some());
}

/// T039, T038: whatever happens to the work, the lease is given back when it has ended, and not before.
#[tokio::test]
async fn work_that_fails_panics_or_is_dropped_leaves_its_lease_free() {
    let rig = leased();
    let other = rig.another();
    let free = async || {
        settle_down().await;
        let taken = other.leases().try_hold("x", TTL).await.unwrap();
        taken.expect("it is free").release().await.unwrap();
    };
    let hold = || rig.tenure.leases().hold("x").ttl(TTL);

    let failed = hold().await.unwrap().run(async |_| Err::<(), _>("no such table")).await;
    assert_eq!(failed.unwrap(), Err("no such table"));
    free().await;

    let tenure = rig.tenure.clone();
    let panicked = tokio::spawn(async move {
        let held = tenure.leases().hold("x").await.unwrap();
        held.run(async |_| panic!("at once")).await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    free().await;

    let tenure = rig.tenure.clone();
    let dropped = tokio::spawn(async move {
        let held = tenure.leases().hold("x").await.unwrap();
        held.run(async |_| std::future::pending::<()>().await).await
    });
    settle_down().await;
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none());
    dropped.abort();
    free().await;
}

#[tokio::test]
async fn work_that_goes_on_beside_its_holder_keeps_the_lease_until_it_ends() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let pass = held.pass();
    let releasing = tokio::spawn(held.release());
    rig.pass(TTL * 2).await;
    assert!(!releasing.is_finished());
    assert_eq!(pass.loss(), Some(Loss::Released), "it is told to end");
    let other = rig.another();
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none());
    drop(pass);
    releasing.await.unwrap().unwrap();
    assert!(other.leases().try_hold("x", TTL).await.unwrap().is_some());
}

/// T036: standby is not a silent stall.
#[tokio::test]
async fn anybody_can_see_who_holds_a_lease_since_when_until_when_and_how_many_wait() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).who("web-3").note("build", "1.2").await.unwrap();
    let (since, other) = (rig.clock.now(), rig.another());
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.leases().hold("x").who("web-4").within(Duration::from_secs(60)).await }
    });
    rig.pass(Duration::from_secs(6)).await;
    let info = other.leases().info("x").await.unwrap().unwrap();
    let owner = info.lease.held.clone().unwrap();
    assert_eq!((owner.since, info.waiting), (since, 1));
    assert_eq!((owner.by.who.as_str(), owner.by.meta["build"].as_str()), ("web-3", "1.2"));
    assert_eq!((info.lease.until(), info.lease.fence), (held.until(), held.fence()));
    let refused = other.leases().hold("x").try_now().await.unwrap().unwrap_err();
    assert!(
        matches!(&refused, LeaseRefusal::Held { by: Holder { who, .. }, .. } if who == "web-3"),
        "{refused}"
    );
    rig.pass(Duration::from_secs(60)).await;
    let over = waiting.await.unwrap().unwrap_err();
    let told = over.to_string();
    assert!(
        told.contains("web-3") && told.contains("within 60 s") && told.contains(&since.to_string()),
        "{told}"
    );
    assert!(matches!(over, Error::WaitOver { .. }));
}

/// By real time and with a thread of its own: nothing that the program does to its runtime costs a lease.
#[test]
fn a_runtime_that_is_blocked_loses_no_lease() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tenure = common::in_real_time();
    let renewed = AtomicU32::new(0);
    runtime.block_on(async {
        let held = tenure.leases().try_hold("x", Duration::from_secs(1)).await.unwrap().unwrap();
        // This blocks the only thread of the runtime for longer than the lease.
        while tenure.leases().tally().renewals < 4 {
            renewed.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
        }
        assert!(held.is_held());
        held.release().await.unwrap();
        assert!(tenure.leases().try_hold("x", Duration::from_secs(1)).await.unwrap().is_some());
    });
}
