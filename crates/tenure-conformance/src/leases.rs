//! What holding a name promises. Every cell of its table is a test of the domain; here are those that a
//! store can break by what it keeps, forgets or mixes up.

use tenure_core::{Epoch, Fence, Lease, LeaseOutcome, LeaseRefusal, LeaseState, Ownership, Phase, Ttl};

use super::given::{Given, TTL, minutes, seconds};
use super::wishes::{
    Mine, acquire, acquire_for, break_within, by, change_to, forget, granted, id, name, release, renew,
    renew_late,
};
use super::{Test, test};
use tenure_store::LeaseInfo;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_free_name_is_granted_and_shown),
        test(nobody_else_gets_what_is_held),
        test(acquiring_again_takes_the_new_span_and_keeps_the_fence),
        test(a_lease_without_end_stays_until_it_is_given_back),
        test(a_renewal_counts_from_now_for_the_span_it_was_taken_for),
        test(a_renewal_may_be_repeated),
        test(a_short_span_ends_and_does_not_shorten_later_ones),
        test(at_the_very_instant_of_its_end_a_lease_has_ended),
        test(a_late_renewal_is_refused_or_counts_as_asked),
        test(a_late_renewal_is_refused_once_another_had_it),
        test(a_wrong_id_changes_nothing),
        test(a_stale_release_leaves_the_successor_alone),
        test(a_release_may_be_repeated),
        test(the_fence_grows_over_everything_that_ends_an_ownership),
        test(a_changed_id_keeps_time_and_fence_and_the_old_one_is_done_with),
    ]
}

async fn a_free_name_is_granted_and_shown(given: Given) {
    assert_eq!(given.info("month-end").await, None);
    let mine = given.hold("month-end", 1).await;
    assert!(mine.fence > Fence::NONE);
    let held = Ownership {
        id: id(1),
        by: by(1),
        since: given.now(),
        ttl: Ttl::For(TTL),
        phase: Phase::Held { until: Some(given.soon(TTL)) },
    };
    let lease = Lease {
        name: name("month-end"),
        fence: mine.fence,
        held: Some(held),
        freed: given.now(),
        forgotten: false,
    };
    let expected = LeaseInfo { lease, state: LeaseState::Held, waiting: 0 };
    assert_eq!(given.info("month-end").await, Some(expected));
}

async fn nobody_else_gets_what_is_held(given: Given) {
    let mine = given.hold("x", 1).await;
    let (since, until) = (given.now(), Some(given.soon(TTL)));
    let before = given.lease("x").await;
    given.pass(seconds(1));
    let held = LeaseRefusal::Held { by: by(1), fence: mine.fence, since, until, waiting: 0 };
    assert_eq!(given.refusal("x", acquire(2)).await, held);
    assert_eq!(given.lease("x").await, before);
}

/// T002
async fn acquiring_again_takes_the_new_span_and_keeps_the_fence(given: Given) {
    let mine = given.hold("x", 1).await;
    let since = given.now();
    given.pass(seconds(10));
    for span in [minutes(5), seconds(1)] {
        let (fence, until) = (mine.fence, Some(given.soon(span)));
        let outcome = given.wish("x", acquire_for(1, Ttl::For(span))).await;
        assert_eq!(outcome, LeaseOutcome::Granted { fence, until });
        let held = given.lease("x").await.lease.held.unwrap();
        assert_eq!((held.ttl, held.phase, held.since), (Ttl::For(span), Phase::Held { until }, since));
    }
    // T003: one grant in all, however often it is asked for.
    assert_eq!(given.notes("x").await.len(), 1);
}

async fn a_lease_without_end_stays_until_it_is_given_back(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::Endless).await;
    given.pass(minutes(60 * 24 * 365));
    assert_eq!(given.stands("x").await, LeaseState::Held);
    let held = given.refusal("x", acquire(2)).await;
    assert!(matches!(held, LeaseRefusal::Held { until: None, .. }), "{held:?}");
    assert_eq!(given.wish("x", renew(mine)).await, LeaseOutcome::Renewed { until: None });
    given.give_back("x", mine).await;
    given.hold("x", 2).await;
}

async fn a_renewal_counts_from_now_for_the_span_it_was_taken_for(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::For(minutes(2))).await;
    given.pass(minutes(1));
    let until = Some(given.soon(minutes(2)));
    assert_eq!(given.wish("x", renew(mine)).await, LeaseOutcome::Renewed { until });
    given.pass(minutes(2) - seconds(1));
    assert_eq!(given.stands("x").await, LeaseState::Held);
    assert_eq!(given.lease("x").await.lease.fence, mine.fence);
}

/// T004
async fn a_renewal_may_be_repeated(given: Given) {
    let mine = given.hold("x", 1).await;
    given.pass(seconds(10));
    let once = given.wish("x", renew(mine)).await;
    let after_once = given.lease("x").await;
    assert_eq!(given.wish("x", renew(mine)).await, once);
    assert_eq!(given.lease("x").await, after_once);
}

/// T023, T024
async fn a_short_span_ends_and_does_not_shorten_later_ones(given: Given) {
    let blink = std::time::Duration::from_millis(1);
    let mine = given.hold_for("x", 1, Ttl::For(blink)).await;
    assert_eq!(given.stands("x").await, LeaseState::Held);
    let again = given.wish("x", acquire_for(1, Ttl::For(TTL))).await;
    assert_eq!(granted(&again), Some(mine.fence));
    given.pass(seconds(1));
    let until = Some(given.soon(TTL));
    assert_eq!(given.wish("x", renew(mine)).await, LeaseOutcome::Renewed { until });
    given.hold_for("y", 1, Ttl::For(blink)).await;
    given.pass(blink);
    assert_eq!(given.stands("y").await, LeaseState::Lapsed);
}

/// T001
async fn at_the_very_instant_of_its_end_a_lease_has_ended(given: Given) {
    let mine = given.hold("x", 1).await;
    given.wish("y", acquire(1)).await;
    given.wish("y", break_within(seconds(5))).await;
    let tick = std::time::Duration::from_micros(1);
    given.pass(seconds(5) - tick);
    assert_eq!(given.stands("y").await, LeaseState::Breaking);
    given.refusal("y", acquire(2)).await;
    given.pass(tick);
    assert_eq!(given.stands("y").await, LeaseState::Broken);
    given.hold("y", 2).await;
    given.pass(seconds(25) - tick);
    assert_eq!(given.stands("x").await, LeaseState::Held);
    given.refusal("x", acquire(2)).await;
    given.pass(tick);
    assert_eq!(given.stands("x").await, LeaseState::Lapsed);
    let lapsed = LeaseRefusal::Lapsed { at: given.now() };
    assert_eq!(given.refusal("x", renew(mine)).await, lapsed);
    given.hold("x", 2).await;
}

/// T005, the first half.
async fn a_late_renewal_is_refused_or_counts_as_asked(given: Given) {
    let mine = given.hold("x", 1).await;
    let lapsed = given.soon(TTL);
    given.pass(TTL + minutes(10));
    let before = given.lease("x").await;
    assert_eq!(given.refusal("x", renew(mine)).await, LeaseRefusal::Lapsed { at: lapsed });
    assert_eq!(given.lease("x").await, before);
    let until = Some(given.soon(TTL));
    let late = LeaseOutcome::RenewedLate { until, lapsed };
    assert_eq!(given.wish("x", renew_late(mine)).await, late);
    assert_eq!(given.wish("x", renew(mine)).await, LeaseOutcome::Renewed { until });
    assert_eq!(given.lease("x").await.lease.fence, mine.fence);
}

/// T005, the second half.
async fn a_late_renewal_is_refused_once_another_had_it(given: Given) {
    let mine = given.hold("x", 1).await;
    given.pass(TTL);
    let other = given.hold("x", 2).await;
    let lost = LeaseRefusal::Lost { fence: other.fence };
    assert_eq!(given.refusal("x", renew_late(mine)).await, lost);
    given.give_back("x", other).await;
    assert_eq!(given.refusal("x", renew_late(mine)).await, lost, "it is free, and lost all the same");
    given.wish("x", forget()).await;
    assert_eq!(given.refusal("x", renew_late(mine)).await, lost);
}

/// T006
async fn a_wrong_id_changes_nothing(given: Given) {
    let mine = given.hold("x", 1).await;
    let stranger = Mine { id: id(2), ..mine };
    let future = Mine { fence: mine.fence.next(Epoch::default()), ..mine };
    for _ in 0..2 {
        let before = given.lease("x").await;
        for wrong in [stranger, future] {
            for act in [renew(wrong), renew_late(wrong), release(wrong), change_to(wrong, 3)] {
                assert_eq!(given.refusal("x", act).await, LeaseRefusal::WrongId);
            }
        }
        assert_eq!(given.lease("x").await, before);
        given.pass(TTL);
    }
    let until = Some(given.soon(TTL));
    let late = given.wish("x", renew_late(mine)).await;
    assert!(matches!(late, LeaseOutcome::RenewedLate { until: u, .. } if u == until), "{late:?}");
}

/// T007
async fn a_stale_release_leaves_the_successor_alone(given: Given) {
    let slow = given.hold("x", 1).await;
    given.pass(TTL);
    let quick = given.hold("x", 2).await;
    let before = given.lease("x").await;
    let lost = LeaseRefusal::Lost { fence: quick.fence };
    for act in [release(slow), renew(slow), renew_late(slow), change_to(slow, 3), change_to(slow, 2)] {
        assert_eq!(given.refusal("x", act).await, lost);
    }
    assert_eq!(given.lease("x").await, before);
    // The same id under an older fence is an older ownership.
    given.give_back("x", quick).await;
    given.hold("x", 1).await;
    assert!(matches!(given.refusal("x", release(slow)).await, LeaseRefusal::Lost { .. }));
    assert_eq!(given.stands("x").await, LeaseState::Held);
}

async fn a_release_may_be_repeated(given: Given) {
    let mine = given.hold("x", 1).await;
    given.pass(seconds(3));
    given.give_back("x", mine).await;
    let free = given.lease("x").await;
    assert_eq!((free.state, free.lease.held.clone()), (LeaseState::Free, None));
    assert_eq!((free.lease.freed, free.lease.fence), (given.now(), mine.fence));
    given.pass(seconds(3));
    assert_eq!(given.refusal("x", release(mine)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.lease("x").await, free);
    let other = given.hold("x", 2).await;
    assert_eq!(given.refusal("x", release(mine)).await, LeaseRefusal::Lost { fence: other.fence });
}

/// T008, as far as a store that runs goes.
async fn the_fence_grows_over_everything_that_ends_an_ownership(given: Given) {
    let mut last = given.hold("x", 1).await;
    for number in 2..20 {
        match number % 6 {
            0 => given.give_back("x", last).await,
            1 => given.pass(TTL),
            2 => drop(given.wish("x", break_within(seconds(0))).await),
            3 => {
                given.wish("x", break_within(seconds(5))).await;
                given.pass(seconds(5));
            }
            4 => {
                given.give_back("x", last).await;
                assert_eq!(given.wish("x", forget()).await, LeaseOutcome::Forgotten);
            }
            _ => {
                given.pass(TTL);
                assert_eq!(given.wish("x", forget()).await, LeaseOutcome::Forgotten);
                given.tend().await;
            }
        }
        let next = given.hold("x", number).await;
        assert!(next.fence > last.fence, "{next:?} after {last:?}");
        last = next;
    }
    // The fences of another name are its own.
    assert_eq!(given.hold("y", 1).await.fence.number(), 1);
}

async fn a_changed_id_keeps_time_and_fence_and_the_old_one_is_done_with(given: Given) {
    let mine = given.hold("x", 1).await;
    let until = Some(given.soon(TTL));
    given.pass(seconds(10));
    for _ in 0..2 {
        assert_eq!(given.wish("x", change_to(mine, 2)).await, LeaseOutcome::Changed { until });
    }
    let renamed = Mine { id: id(2), ..mine };
    assert_eq!(given.refusal("x", renew(mine)).await, LeaseRefusal::WrongId);
    assert_eq!(given.refusal("x", release(mine)).await, LeaseRefusal::WrongId);
    let held = given.lease("x").await.lease.held.unwrap();
    assert_eq!((held.id, held.phase, held.by), (id(2), Phase::Held { until }, by(1)));
    given.give_back("x", renamed).await;
}
