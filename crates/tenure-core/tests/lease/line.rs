//! Waiting: places in line, whose turn it is, and what is kept of them.

use std::time::Duration;

use tenure_core::{
    Epoch, Lease, LeaseAct, LeaseOutcome, LeaseRefusal, Line, Phase, Stepped, Ticket, Ttl, step,
};

use crate::lease::given::*;

const START: Duration = Duration::from_millis(250);

fn wished(lease: &Lease, act: &LeaseAct, ahead: u32, after: Duration) -> Stepped {
    let line = Line { ahead, waiting: ahead + 2 };
    step(&name(), Some(lease), act, line, Epoch::default(), at(NOW).after(after))
}

/// A lease that became free at the instant of the tables, in every way in which one may.
fn freed_now() -> Vec<Lease> {
    let broken = stepped(Some(&endless()), &break_within(None), at(NOW)).lease.expect("it is broken");
    let shortened = stepped(Some(&breaking_until(NOW + 60)), &break_within(Some(0)), at(NOW));
    let released = Lease { freed: at(NOW), ..released() };
    let noticed = held_until(NOW).noticed(at(NOW + 9)).expect("it lapsed").0;
    let shortened = shortened.lease.expect("it is broken");
    vec![released, broken, shortened, breaking_until(NOW), held_until(NOW), noticed]
}

#[test]
fn each_place_in_line_is_kept_back_one_head_start_longer_up_to_eight() {
    let tick = Duration::from_micros(1);
    for lease in freed_now() {
        for (ahead, starts) in [(0, 0), (1, 1), (2, 2), (7, 7), (8, 8), (9, 8), (u32::MAX - 2, 8)] {
            let again = at(NOW).after(START * starts);
            if starts > 0 {
                let awaited = LeaseRefusal::Awaited { ahead, again };
                for after in [Duration::ZERO, START * starts - tick] {
                    let stepped = wished(&lease, &acquire(B), ahead, after);
                    assert_eq!(stepped.outcome, LeaseOutcome::Refused(awaited.clone()), "{lease:?}");
                    assert_eq!((stepped.lease, stepped.notes), (None, vec![]));
                }
            }
            let stepped = wished(&lease, &acquire(B), ahead, START * starts);
            assert!(matches!(stepped.outcome, LeaseOutcome::Granted { .. }), "{ahead} ahead: {lease:?}");
        }
    }
}

#[test]
fn a_place_is_kept_while_refused_and_given_up_with_the_grant() {
    let held = held_until(NOW + 20);
    let free = released();
    let kept = |span| Ticket::Kept(at(NOW).after(span));
    #[rustfmt::skip]
    let rows = [
        // lease, wish,                     ahead, what becomes of the place
        (&held,   queue_up(B, seconds(60)), 0,     kept(seconds(60))),
        (&held,   acquire(B),               0,     Ticket::AsIs),
        (&free,   queue_up(B, seconds(60)), 0,     Ticket::GivenUp),
        (&free,   acquire(B),               0,     Ticket::GivenUp),
        (&held,   queue_up(A, seconds(60)), 0,     Ticket::GivenUp),
        (&held,   leave(B),                 0,     Ticket::GivenUp),
        (&held,   leave(A),                 0,     Ticket::GivenUp),
        (&held,   release(A, FENCE),        0,     Ticket::AsIs),
        (&held,   break_within(None),       0,     Ticket::AsIs),
    ];
    for (lease, act, ahead, expected) in rows {
        assert_eq!(wished(lease, &act, ahead, Duration::ZERO).ticket, expected, "{act:?}");
    }
    let just_freed = Lease { freed: at(NOW), ..released() };
    let awaited = wished(&just_freed, &queue_up(B, seconds(60)), 1, Duration::ZERO);
    assert_eq!(awaited.ticket, kept(seconds(60)), "it keeps its place behind the first");
}

#[test]
fn whoever_is_refused_is_told_how_many_others_wait() {
    for act in [acquire(B), forget()] {
        let LeaseOutcome::Refused(LeaseRefusal::Held { waiting, .. }) =
            wished(&held_until(NOW + 20), &act, 3, Duration::ZERO).outcome
        else {
            panic!("it is held");
        };
        assert_eq!(waiting, 5);
    }
}

/// T021: a lease that became free by a clock that was put back since is not barred until that instant.
#[test]
fn a_clock_that_was_put_back_keeps_nobody_waiting_for_longer_than_the_line() {
    let free = Lease { freed: at(NOW + 3_600), ..released() };
    let first = wished(&free, &acquire(B), 0, Duration::ZERO);
    assert!(matches!(first.outcome, LeaseOutcome::Granted { .. }), "{first:?}");
    let again = at(NOW).after(START * 2);
    let third = wished(&free, &acquire(B), 2, Duration::ZERO);
    assert_eq!(third.outcome, LeaseOutcome::Refused(LeaseRefusal::Awaited { ahead: 2, again }));
    // Those before it are dead, and their places are kept by the same clock.
    for free in [free, of_a(Phase::Lapsed { at: at(NOW + 3_600) })] {
        let third = wished(&free, &acquire(B), 2, Duration::ZERO);
        let lease = third.lease.expect("it is free since now");
        let later = wished(&lease, &acquire(B), 2, START * 2);
        assert!(matches!(later.outcome, LeaseOutcome::Granted { .. }), "{later:?}");
    }
}

/// Who waits was told until when; whatever makes that sooner is worth a look.
#[test]
fn what_frees_a_lease_sooner_is_told_from_what_does_not() {
    let held = held_until(NOW + 20);
    let short = acquire_for(A, Ttl::For(seconds(1)));
    #[rustfmt::skip]
    let rows = [
        (&held,                       release(A, FENCE),        true),
        (&held,                       leave(A),                 true),
        (&held,                       break_within(Some(0)),    true),
        (&held,                       break_within(Some(5)),    true),
        (&held,                       break_within(None),       false),
        (&held,                       break_within(Some(60)),   false),
        (&held,                       short,                    true),
        (&held,                       acquire(A),               false),
        (&held,                       acquire(B),               false),
        (&held,                       leave(B),                 false),
        (&endless(),                  break_within(Some(60)),   true),
        (&endless(),                  acquire(A),               true),
        (&endless(),                  release(A, FENCE),        true),
        (&breaking_until(NOW + 20),   break_within(Some(5)),    true),
        (&breaking_until(NOW + 20),   break_within(Some(25)),   false),
        (&breaking_until(NOW + 20),   release(A, FENCE),        true),
        (&held_until(NOW),            release(A, FENCE),        false),
        (&held_until(NOW),            forget(),                 false),
        (&released(),                 acquire(B),               false),
    ];
    for (lease, act, expected) in rows {
        let stepped = stepped(Some(lease), &act, at(NOW));
        assert_eq!(stepped.frees(Some(lease), at(NOW)), expected, "{act:?} where it is {lease:?}");
    }
    assert!(!stepped(None, &acquire(B), at(NOW)).frees(None, at(NOW)));
}
