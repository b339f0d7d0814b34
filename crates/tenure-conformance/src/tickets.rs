//! What waiting for a lease promises: whoever came first has it first, and nobody waits for the dead.

use std::time::Duration;

use tenure_core::{LeaseOutcome, LeaseRefusal, LeaseState, Ttl, limits};

use super::given::{Given, TTL, minutes, seconds};
use super::wishes::{Mine, acquire, break_within, by, forget, granted, id, leave, queue_up, release, wish};
use super::{Test, test};

/// How long each place in line keeps back the next.
const START: Duration = Duration::from_millis(250);
const LONG: Duration = minutes(10);

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(the_first_in_line_gets_what_becomes_free),
        test(each_place_in_line_waits_one_head_start_longer),
        test(nobody_is_kept_back_for_longer_than_two_seconds),
        test(who_has_no_place_comes_after_all_who_have),
        test(asking_again_keeps_the_place),
        test(a_place_lasts_as_long_as_was_asked_for),
        test(a_place_that_is_asked_for_again_lasts_for_two_thirds_of_that),
        test(who_leaves_makes_place_for_the_next),
        test(a_grant_gives_up_the_place),
        test(the_head_start_counts_from_when_it_became_free),
        test(who_waits_is_counted),
        test(each_name_has_a_line_of_its_own),
        test(a_line_outlasts_its_lease),
        test(who_did_not_ask_for_a_place_has_none),
        test(a_line_is_bounded_and_who_finds_it_full_has_no_place),
    ]
}

/// Lets these stand in line, in this order.
async fn line_up(given: &Given, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        given.refusal("x", queue_up(number, LONG)).await;
    }
}

async fn held_by_one(given: &Given, waiting: std::ops::RangeInclusive<u64>) -> Mine {
    let mine = given.hold("x", 1).await;
    line_up(given, waiting).await;
    mine
}

async fn the_first_in_line_gets_what_becomes_free(given: Given) {
    let mine = held_by_one(&given, 2..=4).await;
    given.give_back("x", mine).await;
    let awaited = |ahead| LeaseRefusal::Awaited { ahead, again: given.soon(START * ahead) };
    assert_eq!(given.refusal("x", queue_up(4, LONG)).await, awaited(2));
    assert_eq!(given.refusal("x", queue_up(3, LONG)).await, awaited(1));
    assert!(granted(&given.wish("x", queue_up(2, LONG)).await).is_some());
    assert!(matches!(given.refusal("x", queue_up(3, LONG)).await, LeaseRefusal::Held { .. }));
}

/// The first may have died: the second need not wait for the end of its place.
async fn each_place_in_line_waits_one_head_start_longer(given: Given) {
    let mine = held_by_one(&given, 2..=4).await;
    given.give_back("x", mine).await;
    let tick = Duration::from_micros(1);
    given.pass(START - tick);
    assert!(matches!(given.refusal("x", queue_up(3, LONG)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    given.pass(tick);
    assert!(matches!(given.refusal("x", queue_up(4, LONG)).await, LeaseRefusal::Awaited { ahead: 2, .. }));
    assert!(granted(&given.wish("x", queue_up(3, LONG)).await).is_some());
}

async fn nobody_is_kept_back_for_longer_than_two_seconds(given: Given) {
    let mine = held_by_one(&given, 2..=40).await;
    given.give_back("x", mine).await;
    let again = given.soon(seconds(2));
    assert_eq!(given.refusal("x", queue_up(40, LONG)).await, LeaseRefusal::Awaited { ahead: 38, again });
    assert_eq!(given.refusal("x", acquire(41)).await, LeaseRefusal::Awaited { ahead: 39, again });
    given.pass(seconds(2));
    assert!(granted(&given.wish("x", acquire(41)).await).is_some());
}

/// So whoever gives it back and wants it again does not overtake those who wait.
async fn who_has_no_place_comes_after_all_who_have(given: Given) {
    let mine = held_by_one(&given, 2..=3).await;
    given.give_back("x", mine).await;
    let again = given.soon(START * 2);
    for newcomer in [1, 9] {
        let awaited = LeaseRefusal::Awaited { ahead: 2, again };
        assert_eq!(given.refusal("x", acquire(newcomer)).await, awaited);
    }
    assert_eq!(given.stands("x").await, LeaseState::Free);
    given.pass(START * 2);
    assert!(granted(&given.wish("x", acquire(9)).await).is_some());
}

async fn asking_again_keeps_the_place(given: Given) {
    let mine = held_by_one(&given, 2..=3).await;
    for number in [3, 2, 3, 3, 2] {
        given.pass(seconds(1));
        given.refusal("x", queue_up(number, LONG)).await;
    }
    given.give_back("x", mine).await;
    assert!(matches!(given.refusal("x", queue_up(3, LONG)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    assert!(granted(&given.wish("x", queue_up(2, LONG)).await).is_some());
}

async fn a_place_lasts_as_long_as_was_asked_for(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::Endless).await;
    given.refusal("x", queue_up(2, seconds(10))).await;
    given.refusal("x", queue_up(3, LONG)).await;
    given.pass(seconds(9));
    given.refusal("x", queue_up(2, seconds(10))).await;
    given.pass(seconds(9));
    assert_eq!(given.lease("x").await.waiting, 2, "its time began again");
    given.pass(seconds(1));
    assert_eq!(given.lease("x").await.waiting, 1, "at the very instant of its end it has ended");
    given.give_back("x", mine).await;
    assert!(matches!(given.refusal("x", queue_up(2, LONG)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    assert!(granted(&given.wish("x", queue_up(3, LONG)).await).is_some());
}

/// Whoever waits asks often; a store need not write that down each time.
async fn a_place_that_is_asked_for_again_lasts_for_two_thirds_of_that(given: Given) {
    given.hold_for("x", 1, Ttl::Endless).await;
    for _ in 0..30 {
        given.refusal("x", queue_up(2, seconds(9))).await;
        given.pass(seconds(1));
    }
    given.pass(seconds(4));
    assert_eq!(given.lease("x").await.waiting, 1);
    given.pass(seconds(4));
    assert_eq!(given.lease("x").await.waiting, 0, "and not for longer than all of it");
    given.refusal("x", queue_up(2, LONG)).await;
    given.refusal("x", queue_up(2, seconds(9))).await;
    given.pass(seconds(9));
    assert_eq!(given.lease("x").await.waiting, 0, "it asked for less");
}

async fn who_leaves_makes_place_for_the_next(given: Given) {
    let mine = held_by_one(&given, 2..=4).await;
    for _ in 0..2 {
        assert_eq!(given.wish("x", leave(2)).await, LeaseOutcome::Left);
    }
    assert_eq!(given.lease("x").await.waiting, 2);
    given.give_back("x", mine).await;
    assert!(matches!(given.refusal("x", queue_up(4, LONG)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    assert!(matches!(given.refusal("x", acquire(2)).await, LeaseRefusal::Awaited { ahead: 2, .. }));
    assert!(granted(&given.wish("x", queue_up(3, LONG)).await).is_some());
}

async fn a_grant_gives_up_the_place(given: Given) {
    let mine = held_by_one(&given, 2..=3).await;
    given.give_back("x", mine).await;
    // It asks no more for a place, and gets the lease all the same.
    let fence = granted(&given.wish("x", acquire(2)).await).unwrap();
    assert_eq!(given.lease("x").await.waiting, 1);
    given.give_back("x", Mine { id: id(2), fence }).await;
    assert!(matches!(given.refusal("x", acquire(2)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    assert!(granted(&given.wish("x", queue_up(3, LONG)).await).is_some());
    assert_eq!(given.lease("x").await.waiting, 0);
}

/// Not from when somebody looks, nor from when that is written down.
async fn the_head_start_counts_from_when_it_became_free(given: Given) {
    held_by_one(&given, 2..=3).await;
    let again = given.soon(TTL + START * 2);
    given.pass(TTL + START);
    assert_eq!(given.refusal("x", acquire(9)).await, LeaseRefusal::Awaited { ahead: 2, again });
    given.tend().await;
    assert_eq!(given.refusal("x", acquire(9)).await, LeaseRefusal::Awaited { ahead: 2, again });
    let fence = granted(&given.wish("x", queue_up(3, LONG)).await).expect("it is the turn of the second");

    given.wish("x", break_within(seconds(20))).await;
    given.wish("x", break_within(seconds(0))).await;
    let again = given.soon(START);
    given.pass(START / 2);
    for act in [break_within(seconds(0)), release(Mine { id: id(3), fence }), forget()] {
        assert_eq!(given.refusal("x", acquire(9)).await, LeaseRefusal::Awaited { ahead: 1, again });
        given.wish("x", act).await;
    }
    given.pass(START / 2);
    assert!(granted(&given.wish("x", acquire(9)).await).is_some());
}

async fn who_waits_is_counted(given: Given) {
    let mine = given.hold("x", 1).await;
    let (since, until) = (given.now(), Some(given.soon(TTL)));
    for number in 2..=5 {
        let waiting = number as u32 - 2;
        let held = LeaseRefusal::Held { by: by(1), fence: mine.fence, since, until, waiting };
        assert_eq!(given.refusal("x", queue_up(number, LONG)).await, held);
        assert_eq!(given.refusal("x", queue_up(number, LONG)).await, held, "others are counted");
        assert_eq!(given.lease("x").await.waiting, waiting + 1);
    }
    let LeaseRefusal::Held { waiting, .. } = given.refusal("x", acquire(9)).await else {
        panic!("it is held");
    };
    assert_eq!(waiting, 4);
    let LeaseRefusal::Held { waiting, .. } = given.refusal("x", forget()).await else { panic!("it is held") };
    assert_eq!(waiting, 4);
}

async fn each_name_has_a_line_of_its_own(given: Given) {
    held_by_one(&given, 2..=5).await;
    let other = given.hold("y", 1).await;
    given.refusal("y", queue_up(5, LONG)).await;
    assert_eq!((given.lease("x").await.waiting, given.lease("y").await.waiting), (4, 1));
    given.give_back("y", other).await;
    assert!(granted(&given.wish("y", queue_up(5, LONG)).await).is_some());
    assert_eq!(given.lease("x").await.waiting, 4, "its place before the other name stays");
}

/// Whoever waits goes on waiting while others have it and give it back.
async fn a_line_outlasts_its_lease(given: Given) {
    let mine = held_by_one(&given, 2..=4).await;
    given.give_back("x", mine).await;
    for number in 2..=4 {
        let fence = granted(&given.wish("x", queue_up(number, LONG)).await).unwrap();
        given.wish("x", release(Mine { id: id(number), fence })).await;
    }
    let mine = held_by_one(&given, 2..=2).await;
    given.give_back("x", mine).await;
    given.wish("x", forget()).await;
    assert!(matches!(given.refusal("x", acquire(9)).await, LeaseRefusal::Awaited { ahead: 1, .. }));
    assert!(granted(&given.wish("x", queue_up(2, LONG)).await).is_some());
}

async fn who_did_not_ask_for_a_place_has_none(given: Given) {
    let mine = given.hold("x", 1).await;
    given.refusal("x", acquire(2)).await;
    assert_eq!(given.lease("x").await.waiting, 0);
    given.give_back("x", mine).await;
    given.hold("x", 3).await;
}

async fn a_line_is_bounded_and_who_finds_it_full_has_no_place(given: Given) {
    let most = limits::LEASE_WAITERS as u64;
    let mine = given.hold("x", 0).await;
    given.wishes((1..=most + 1).map(|number| wish("x", queue_up(number, LONG))).collect()).await;
    assert_eq!(given.lease("x").await.waiting, limits::LEASE_WAITERS as u32);
    given.wish("x", leave(7)).await;
    given.refusal("x", queue_up(most + 1, LONG)).await;
    assert_eq!(given.lease("x").await.waiting, limits::LEASE_WAITERS as u32, "there is room again");
    given.give_back("x", mine).await;
    assert!(granted(&given.wish("x", queue_up(1, LONG)).await).is_some());
}
