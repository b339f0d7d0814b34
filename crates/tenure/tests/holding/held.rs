//! Holding leases: what a holder is told, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Plain, leased, settle_down};
use tenure::{
    Chance, Clock, Error, Failed, Fault, Faults, FaultyStore, Fence, FenceGate, Holder, LeaseRefusal, Loss,
    ManualClock, Run, Tenure, Worker,
};

const TTL: Duration = Duration::from_secs(15);

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
    let refused = other.leases().hold("x").try_now().await.unwrap_err();
    assert!(refused.to_string().starts_with("lease x: held by web-3 since"), "{refused}");
    let Error::LeaseRefused { refusal, .. } = refused else { panic!("{refused}") };
    assert!(
        matches!(*refusal, LeaseRefusal::Held { by: Holder { ref who, .. }, .. } if who == "web-3"),
        "{refusal}"
    );
    rig.pass(Duration::from_secs(60)).await;
    let over = waiting.await.unwrap().unwrap_err();
    let told = over.to_string();
    assert!(
        told.contains("web-3") && told.contains("within 60.0 s") && told.contains(&since.to_string()),
        "{told}"
    );
    assert!(matches!(over, Error::WaitOver { .. }));
}

/// §B.9: the holder's belief goes by a clock that does not step, and the store lets it outlast the step.
#[tokio::test]
async fn a_step_of_the_stores_clock_gives_a_lease_to_nobody_else_who_is_believed() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let other = rig.another();
    rig.clock.step_to(rig.clock.now().after(hour()));
    for _ in 0..300 {
        assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none());
        assert!(held.is_held());
        rig.pass(Duration::from_millis(100)).await;
    }
    assert_eq!(rig.tenure.leases().tally().lost, 0);
}

/// By real time and with a thread of its own: nothing that the program does to its runtime costs a lease.
#[test]
fn a_runtime_that_is_blocked_loses_no_lease() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tenure = crate::common::in_real_time();
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

/// In a lab, too: time that a handler naps through is time in which its lease is renewed.
#[tokio::test]
async fn a_handler_that_naps_under_a_lease_keeps_it_in_a_lab() {
    let mut lab = tenure::testing::Lab::new(|tenure| {
        Worker::new(tenure, ()).queue("default", 1).job(|run: Run<()>, job: Plain| async move {
            let held = run.tenure().leases().hold("x").ttl(TTL).await?;
            run.sleep(hour()).await?;
            held.guard().map_err(|lost| Failed::for_good(lost.to_string()))?;
            held.release().await?;
            Ok(job.number)
        })
    });
    lab.tenure().enqueue(Plain { number: 7 }).await.unwrap();
    let ran = lab.drain().await.unwrap();
    assert_eq!((ran.len(), ran[0].failure.as_ref()), (1, None));
    assert_eq!(lab.tenure().leases().last("x", 1).await.unwrap()[0].end, Some(tenure::What::Released));
}
