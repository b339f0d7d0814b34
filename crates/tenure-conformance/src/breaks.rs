//! What breaking, leaving and forgetting a lease promise.

use tenure_core::{LeaseOutcome, LeaseRefusal, LeaseState, Ttl};

use super::given::{Given, TTL, seconds};
use super::wishes::{acquire, break_within, by, change_to, forget, leave, release, renew, renew_late};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_break_gives_the_holder_what_is_left_or_less),
        test(a_break_is_only_ever_shortened),
        test(what_is_being_broken_can_only_be_given_back),
        test(a_broken_lease_is_not_renewed_and_can_be_had),
        test(whoever_leaves_what_was_granted_unheard_gives_it_back),
        test(a_forgotten_name_is_not_seen_and_not_lost),
        test(what_is_held_is_not_forgotten),
    ]
}

/// T022
async fn a_break_gives_the_holder_what_is_left_or_less(given: Given) {
    let (limited, endless) = (Some(Ttl::For(TTL)), None);
    let rows = [
        // taken for, broken within, free after
        (limited, Some(seconds(10)), seconds(10)),
        (limited, Some(seconds(60)), seconds(29)),
        (limited, Some(seconds(0)), seconds(0)),
        (limited, None, seconds(29)),
        (endless, Some(seconds(60)), seconds(60)),
        (endless, None, seconds(0)),
    ];
    for (number, (ttl, within, left)) in rows.into_iter().enumerate() {
        let name = format!("x-{number}");
        let mine = given.hold_for(&name, 1, ttl.unwrap_or(Ttl::Endless)).await;
        given.pass(seconds(1));
        let free = given.soon(left);
        assert_eq!(given.wish(&name, break_within(within)).await, LeaseOutcome::Breaks { free });
        let (state, told) = match left.is_zero() {
            true => (LeaseState::Broken, LeaseRefusal::Broken),
            false => (LeaseState::Breaking, LeaseRefusal::Breaking { until: free }),
        };
        assert_eq!(given.stands(&name).await, state, "row {number}");
        assert_eq!(given.refusal(&name, renew(mine)).await, told, "row {number}");
        given.pass(left);
        assert_eq!(given.stands(&name).await, LeaseState::Broken, "row {number}");
        given.hold(&name, 2).await;
    }
}

async fn a_break_is_only_ever_shortened(given: Given) {
    given.hold("x", 1).await;
    let start = given.now();
    let rows =
        [(Some(20), 20), (Some(25), 20), (None, 20), (Some(7), 7), (Some(8), 7), (None, 7), (Some(0), 0)];
    for (within, left) in rows {
        let free = start.after(seconds(left));
        let outcome = given.wish("x", break_within(within.map(seconds))).await;
        assert_eq!(outcome, LeaseOutcome::Breaks { free }, "within {within:?}");
    }
    assert_eq!(given.stands("x").await, LeaseState::Broken);
    given.pass(seconds(3));
    let free = given.now();
    assert_eq!(given.wish("x", break_within(seconds(9))).await, LeaseOutcome::Breaks { free }, "again");
    given.hold("x", 2).await;
}

async fn what_is_being_broken_can_only_be_given_back(given: Given) {
    let mine = given.hold("x", 1).await;
    given.wish("x", break_within(seconds(20))).await;
    let breaking = LeaseRefusal::Breaking { until: given.soon(seconds(20)) };
    given.pass(seconds(5));
    for act in [acquire(1), acquire(2), renew(mine), renew_late(mine), change_to(mine, 3), forget()] {
        assert_eq!(given.refusal("x", act.clone()).await, breaking, "{act:?}");
    }
    given.give_back("x", mine).await;
    given.hold("x", 2).await;
}

async fn a_broken_lease_is_not_renewed_and_can_be_had(given: Given) {
    let mine = given.hold("x", 1).await;
    given.wish("x", break_within(seconds(0))).await;
    for act in [renew(mine), renew_late(mine), change_to(mine, 3)] {
        assert_eq!(given.refusal("x", act).await, LeaseRefusal::Broken);
    }
    assert_eq!(given.wish("x", release(mine)).await, LeaseOutcome::Released);
    // What had lapsed and was broken then is not renewed late.
    let lapsed = given.hold("y", 1).await;
    given.pass(TTL);
    let free = given.now();
    assert_eq!(given.wish("y", break_within(None)).await, LeaseOutcome::Breaks { free });
    assert_eq!(given.refusal("y", renew_late(lapsed)).await, LeaseRefusal::Broken);
    assert_eq!(given.refusal("z", break_within(None)).await, LeaseRefusal::NotHeld);
}

/// Somebody asked for it, stopped waiting for the answer, and never heard of the grant.
async fn whoever_leaves_what_was_granted_unheard_gives_it_back(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::Endless).await;
    assert_eq!(given.wish("x", leave(2)).await, LeaseOutcome::Left);
    assert_eq!(given.stands("x").await, LeaseState::Held, "it is not another's to give back");
    for _ in 0..2 {
        assert_eq!(given.wish("x", leave(1)).await, LeaseOutcome::Left);
        assert_eq!(given.stands("x").await, LeaseState::Free);
    }
    assert_eq!(given.refusal("x", renew(mine)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.wish("never-held", leave(1)).await, LeaseOutcome::Left);
}

async fn a_forgotten_name_is_not_seen_and_not_lost(given: Given) {
    let mine = given.hold("x", 1).await;
    given.give_back("x", mine).await;
    for _ in 0..2 {
        assert_eq!(given.wish("x", forget()).await, LeaseOutcome::Forgotten);
        assert_eq!(given.info("x").await, None);
    }
    assert_eq!(given.refusal("x", renew(mine)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.refusal("x", break_within(None)).await, LeaseRefusal::NotHeld);
    let next = given.hold("x", 2).await;
    assert!(next.fence > mine.fence);
    assert_eq!(given.stands("x").await, LeaseState::Held);
    // One that lapsed or was broken can be forgotten as well, and is then done with.
    given.pass(TTL);
    assert_eq!(given.wish("x", forget()).await, LeaseOutcome::Forgotten);
    assert_eq!(given.refusal("x", renew_late(next)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.wish("never-held", forget()).await, LeaseOutcome::Forgotten);
    assert_eq!(given.info("never-held").await, None);
}

async fn what_is_held_is_not_forgotten(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::Endless).await;
    let (since, fence) = (given.now(), mine.fence);
    given.pass(seconds(1));
    let held = LeaseRefusal::Held { by: by(1), fence, since, until: None, waiting: 0 };
    assert_eq!(given.refusal("x", forget()).await, held);
    assert_eq!(given.stands("x").await, LeaseState::Held);
}
