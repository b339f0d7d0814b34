//! Effects on leases of a step of the store's clock: it takes none from its holder, and keeps none from others for
//! longer than its span.

use tenure_core::{LeaseOutcome, LeaseRefusal, LeaseState, What};

use super::given::{Given, TTL, minutes, seconds};
use super::wishes::{acquire, break_within, granted, release, renew};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_clock_that_steps_ahead_takes_no_lease_from_its_holder),
        test(a_holder_renews_and_gives_back_after_a_step_as_before_it),
        test(after_a_step_a_lease_that_nobody_renews_lapses_when_its_time_is_over),
        test(after_a_step_back_a_dead_holder_keeps_a_lease_for_one_span_at_most),
        test(after_a_step_back_a_lapse_is_on_record_when_it_happens),
        test(after_a_step_back_a_holder_that_lives_keeps_its_lease),
    ]
}

/// The end that is written lies an hour ahead of the clock by then.
async fn after_a_step_back_a_dead_holder_keeps_a_lease_for_one_span_at_most(given: Given) {
    let (mine, broken) = (given.hold("x", 1).await, given.hold("broken", 1).await);
    given.wish("broken", break_within(TTL / 2)).await;
    given.clock.step_to(given.now().before(minutes(60)));
    let end = given.now().after(TTL);
    for passed in [seconds(0), TTL - seconds(1)] {
        given.pass(passed);
        let refusal = given.refusal("x", acquire(2)).await;
        let LeaseRefusal::Held { until: Some(until), .. } = refusal else { panic!("{refusal}") };
        assert_eq!(until, end, "a second look does not move it");
        assert_eq!(given.refusal("broken", acquire(2)).await, LeaseRefusal::Breaking { until: end });
    }
    given.pass(seconds(1));
    for (name, before) in [("x", mine), ("broken", broken)] {
        let fence = granted(&given.wish(name, acquire(2)).await).expect("its time is over");
        assert!(fence > before.fence);
        assert_eq!(given.refusal(name, renew(before)).await, LeaseRefusal::Lost { fence });
    }
}

async fn after_a_step_back_a_lapse_is_on_record_when_it_happens(given: Given) {
    given.hold("x", 1).await;
    given.clock.step_to(given.now().before(minutes(60)));
    given.refusal("x", acquire(2)).await;
    given.pass(TTL);
    given.tend().await;
    let lapsed: Vec<_> =
        given.notes("x").await.into_iter().filter(|note| note.what == What::Lapsed).collect();
    assert_eq!(lapsed.iter().map(|note| note.at).collect::<Vec<_>>(), [given.now()]);
}

async fn after_a_step_back_a_holder_that_lives_keeps_its_lease(given: Given) {
    let mine = given.hold("x", 1).await;
    given.clock.step_to(given.now().before(minutes(60)));
    given.refusal("x", acquire(2)).await;
    given.pass(TTL / 3);
    let until = Some(given.soon(TTL));
    assert_eq!(given.wish("x", renew(mine)).await, LeaseOutcome::Renewed { until });
    given.pass(TTL - seconds(1));
    given.refusal("x", acquire(2)).await;
    given.give_back("x", mine).await;
}

/// By the holder's own clock its time is not over: somebody else would hold it beside the holder.
async fn a_clock_that_steps_ahead_takes_no_lease_from_its_holder(given: Given) {
    given.hold("x", 1).await;
    given.pass(TTL / 3);
    given.clock.step_to(given.now().after(minutes(60)));
    given.tend().await;
    let refusal = given.refusal("x", acquire(2)).await;
    let LeaseRefusal::Held { until: Some(until), .. } = refusal else { panic!("{refusal}") };
    assert_eq!(until.since(given.now()), TTL - TTL / 3, "it is told when to look again");
    assert!(given.notes("x").await.iter().all(|note| note.what != What::Lapsed), "nobody notices a lapse");
}

async fn a_holder_renews_and_gives_back_after_a_step_as_before_it(given: Given) {
    let (kept, back) = (given.hold("kept", 1).await, given.hold("back", 1).await);
    given.hold("broken", 1).await;
    given.clock.step_to(given.now().after(minutes(60)));
    let until = Some(given.soon(TTL));
    assert_eq!(given.wish("kept", renew(kept)).await, LeaseOutcome::Renewed { until });
    assert_eq!(given.stands("kept").await, LeaseState::Held);
    given.give_back("back", back).await;
    let broken = given.wish("broken", break_within(None)).await;
    assert_eq!(broken, LeaseOutcome::Breaks { free: given.soon(TTL) });
    // It was renewed by the new time, so it ends by that.
    given.pass(TTL);
    assert!(granted(&given.wish("kept", acquire(2)).await).is_some());
}

async fn after_a_step_a_lease_that_nobody_renews_lapses_when_its_time_is_over(given: Given) {
    let mine = given.hold("x", 1).await;
    given.clock.step_to(given.now().after(minutes(60)));
    given.refusal("x", acquire(2)).await;
    given.pass(TTL - seconds(1));
    given.refusal("x", acquire(2)).await;
    given.pass(seconds(1));
    let fence = granted(&given.wish("x", acquire(2)).await).expect("its time is over");
    assert_eq!(given.refusal("x", release(mine)).await, LeaseRefusal::Lost { fence });
}
