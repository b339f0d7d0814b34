//! What holding a name promises. Every cell of its table is a test of the domain; here are those that a
//! store can break by what it keeps, forgets or mixes up.

use tenure_core::{
    Fence, Holder, HostId, Lease, LeaseAct, LeaseOutcome, LeaseRefusal, LeaseState, Ownership, Phase, Ttl,
};

use super::given::{Given, TTL, host, minutes, seconds};
use super::wishes::{
    FORGET, Mine, acquire, acquire_for, break_within, by, change_to, granted, id, leave, name, refused,
    release, renew, renew_late, wish,
};
use super::{Test, test};
use crate::LeaseInfo;

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
        test(a_break_gives_the_holder_what_is_left_or_less),
        test(a_break_is_only_ever_shortened),
        test(what_is_being_broken_can_only_be_given_back),
        test(a_broken_lease_is_not_renewed_and_can_be_had),
        test(whoever_leaves_what_was_granted_unheard_gives_it_back),
        test(a_forgotten_name_is_not_seen_and_not_lost),
        test(what_is_held_is_not_forgotten),
        test(acts_on_a_name_that_nobody_held_leave_nothing_behind),
        test(what_a_holder_says_of_itself_is_kept_exactly),
        test(names_that_look_alike_are_different_leases),
        test(a_call_takes_many_wishes_each_by_itself),
        test(a_call_takes_more_wishes_than_a_statement_has_places),
        test(wishes_about_one_name_are_taken_in_their_order),
        test(a_call_without_wishes_answers_nothing),
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
    given.wish("x", FORGET).await;
    assert_eq!(given.refusal("x", renew_late(mine)).await, lost);
}

/// T006
async fn a_wrong_id_changes_nothing(given: Given) {
    let mine = given.hold("x", 1).await;
    let stranger = Mine { id: id(2), ..mine };
    let future = Mine { fence: mine.fence.next(mine.fence.epoch()), ..mine };
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
                assert_eq!(given.wish("x", FORGET).await, LeaseOutcome::Forgotten);
            }
            _ => {
                given.pass(TTL);
                assert_eq!(given.wish("x", FORGET).await, LeaseOutcome::Forgotten);
                given.tend().await;
            }
        }
        let next = given.hold("x", number).await;
        assert!(next.fence > last.fence, "{next:?} after {last:?}");
        last = next;
    }
    // The fences of another name are its own.
    assert_eq!(given.hold("y", 1).await.fence.counter(), 1);
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
    for act in [acquire(1), acquire(2), renew(mine), renew_late(mine), change_to(mine, 3), FORGET] {
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
        assert_eq!(given.wish("x", FORGET).await, LeaseOutcome::Forgotten);
        assert_eq!(given.info("x").await, None);
    }
    assert_eq!(given.refusal("x", renew(mine)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.refusal("x", break_within(None)).await, LeaseRefusal::NotHeld);
    let next = given.hold("x", 2).await;
    assert!(next.fence > mine.fence);
    assert_eq!(given.stands("x").await, LeaseState::Held);
    // One that lapsed or was broken can be forgotten as well, and is then done with.
    given.pass(TTL);
    assert_eq!(given.wish("x", FORGET).await, LeaseOutcome::Forgotten);
    assert_eq!(given.refusal("x", renew_late(next)).await, LeaseRefusal::NotHeld);
    assert_eq!(given.wish("never-held", FORGET).await, LeaseOutcome::Forgotten);
    assert_eq!(given.info("never-held").await, None);
}

async fn what_is_held_is_not_forgotten(given: Given) {
    let mine = given.hold_for("x", 1, Ttl::Endless).await;
    let (since, fence) = (given.now(), mine.fence);
    given.pass(seconds(1));
    let held = LeaseRefusal::Held { by: by(1), fence, since, until: None, waiting: 0 };
    assert_eq!(given.refusal("x", FORGET).await, held);
    assert_eq!(given.stands("x").await, LeaseState::Held);
}

async fn acts_on_a_name_that_nobody_held_leave_nothing_behind(given: Given) {
    let nobody = Mine { id: id(1), fence: Fence::NONE };
    let somebody = Mine { id: id(1), fence: Fence::from_number(7) };
    for mine in [nobody, somebody] {
        for act in [renew(mine), renew_late(mine), release(mine), change_to(mine, 2), break_within(None)] {
            assert_eq!(given.refusal("x", act).await, LeaseRefusal::NotHeld);
        }
    }
    given.wish("x", leave(1)).await;
    given.wish("x", FORGET).await;
    assert_eq!(given.info("x").await, None);
    assert_eq!(given.all_notes().await, []);
    assert_eq!(super::wishes::leases(&*given.store, "", 10).await, []);
    assert_eq!(given.hold("x", 1).await.fence.counter(), 1);
}

async fn what_a_holder_says_of_itself_is_kept_exactly(given: Given) {
    let meta = |rows: &[(&str, &str)]| rows.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let odd = [("", ""), ("note", "a\n\"b\"\\ \u{1}"), ("Note", " "), ("øæ", "🦀\u{202e}"), ("0", "1e400")];
    let holders = [
        Holder::default(),
        Holder { host: Some(host(7)), who: String::new(), meta: meta(&[]) },
        Holder { host: None, who: "web-3 (pid 4711) 'x' %s ø🦀".to_owned(), meta: meta(&odd) },
        Holder { host: Some(HostId::from_bytes([255; 16])), who: "x".repeat(256), meta: meta(&odd[1..]) },
    ];
    for (number, by) in holders.into_iter().enumerate() {
        let name = format!("x-{number}");
        by.check().unwrap();
        let act = LeaseAct::Acquire { id: id(1), by: by.clone(), ttl: Ttl::For(TTL), wait: None };
        assert!(granted(&given.wish(&name, act).await).is_some());
        assert_eq!(given.lease(&name).await.lease.held.unwrap().by, by);
        assert_eq!(given.notes(&name).await[0].by, by);
        let LeaseRefusal::Held { by: told, .. } = given.refusal(&name, acquire(2)).await else {
            panic!("it is held");
        };
        assert_eq!(told, by);
    }
}

/// T113, T020
async fn names_that_look_alike_are_different_leases(given: Given) {
    let long = "x".repeat(1023);
    let names = [
        "month-end",
        "Month-End",
        "month-end ",
        " month-end",
        "month_end",
        "month%end",
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{c9}",
        "🦀",
        "🦀\u{fe0f}",
        "\u{202e}dne",
        "a/b",
        "a//b",
        "a/b/",
        "/",
        "0",
        "00",
        "0.0",
        "null",
        "'; drop table leases; --",
        &format!("{long}a"),
        &format!("{long}b"),
    ];
    for (number, text) in names.iter().enumerate() {
        let mine = given.hold(text, number as u64).await;
        assert_eq!(mine.fence.counter(), 1, "{text:?} is nobody else's");
    }
    for (number, text) in names.iter().enumerate() {
        let info = given.lease(text).await;
        assert_eq!((info.lease.name.as_str(), info.lease.held.unwrap().id), (*text, id(number as u64)));
        assert_eq!(given.notes(text).await.len(), 1);
    }
}

async fn a_call_takes_many_wishes_each_by_itself(given: Given) {
    let mine = given.hold("held", 1).await;
    let since = given.now();
    let wishes = vec![
        wish("one", acquire(2)),
        wish("held", acquire(2)),
        wish("two", release(mine)),
        wish("held", renew(mine)),
        wish("three", acquire(2)),
    ];
    let outcomes = given.wishes(wishes).await;
    let until = Some(given.soon(TTL));
    let held = LeaseRefusal::Held { by: by(1), fence: mine.fence, since, until, waiting: 0 };
    assert!(granted(&outcomes[0]).is_some() && granted(&outcomes[4]).is_some(), "{outcomes:?}");
    assert_eq!(outcomes[1], refused(held));
    assert_eq!(outcomes[2], refused(LeaseRefusal::NotHeld));
    assert_eq!(outcomes[3], LeaseOutcome::Renewed { until });
}

async fn a_call_takes_more_wishes_than_a_statement_has_places(given: Given) {
    let text = |number: u64| format!("lease-{number:05}");
    let many = 0..5_000_u64;
    let outcomes = given.wishes(many.clone().map(|n| wish(&text(n), acquire(n))).collect()).await;
    let fences: Vec<Fence> = outcomes.iter().filter_map(granted).collect();
    assert_eq!(fences.len(), 5_000);
    given.pass(seconds(10));
    let mine = |n: u64| Mine { id: id(n), fence: fences[n as usize] };
    let until = Some(given.soon(TTL));
    let outcomes = given.wishes(many.clone().map(|n| wish(&text(n), renew(mine(n)))).collect()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == LeaseOutcome::Renewed { until }));
    let outcomes = given.wishes(many.map(|n| wish(&text(n), release(mine(n)))).collect()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == LeaseOutcome::Released));
}

async fn wishes_about_one_name_are_taken_in_their_order(given: Given) {
    let first = given.hold("x", 1).await;
    let wishes = vec![
        wish("x", acquire(2)),
        wish("x", release(first)),
        wish("x", acquire(2)),
        wish("x", acquire(3)),
        wish("x", break_within(seconds(0))),
        wish("x", acquire(3)),
        wish("x", renew(first)),
    ];
    let outcomes = given.wishes(wishes).await;
    assert!(matches!(outcomes[0], LeaseOutcome::Refused(LeaseRefusal::Held { .. })), "{outcomes:?}");
    assert_eq!(outcomes[1], LeaseOutcome::Released);
    let second = granted(&outcomes[2]).unwrap();
    assert!(second > first.fence);
    let LeaseOutcome::Refused(LeaseRefusal::Held { fence, .. }) = outcomes[3] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(fence, second);
    assert_eq!(outcomes[4], LeaseOutcome::Breaks { free: given.now() });
    let third = granted(&outcomes[5]).unwrap();
    assert!(third > second);
    assert_eq!(outcomes[6], refused(LeaseRefusal::Lost { fence: third }));
    assert_eq!(given.lease("x").await.lease.fence, third);
}

async fn a_call_without_wishes_answers_nothing(given: Given) {
    assert_eq!(given.wishes(vec![]).await, []);
}
