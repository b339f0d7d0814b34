//! What holders and others do, one after the other.

use std::time::Duration;

use tenure_core::{Epoch, Late, LeaseOutcome, LeaseRefusal, LeaseState, Ttl};

use crate::lease::given::*;

/// T002
#[test]
fn acquiring_again_with_the_same_id_takes_the_new_span_from_now_and_keeps_the_fence() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.pass(seconds(10));
    for ttl in [Ttl::For(seconds(300)), Ttl::For(seconds(1)), Ttl::Endless] {
        let until = ttl.until(row.now);
        assert_eq!(row.wish(&acquire_for(A, ttl)), LeaseOutcome::Granted { fence, until });
        assert_eq!(row.lease.as_ref().and_then(|lease| Some(lease.held.as_ref()?.ttl)), Some(ttl));
        assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until });
    }
    let since = row.lease.and_then(|lease| Some(lease.held?.since));
    assert_eq!(since, Some(at(NOW)), "it is one ownership");
}

/// T003
#[test]
fn an_acquisition_whose_reply_was_lost_is_asked_for_again_and_granted_once() {
    let mut row = Row::new();
    let lost_reply = row.hold(A);
    row.pass(seconds(3));
    assert_eq!(row.hold(A), lost_reply);
    assert_eq!(lost_reply.number(), 1);
    // If it lapsed before it was asked for again it is another ownership, and says so.
    row.pass(TTL);
    assert_eq!(row.hold(A).number(), lost_reply.number() + 1);
}

/// T004
#[test]
fn a_renewal_whose_reply_was_lost_is_repeated() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.pass(seconds(20));
    for _ in 0..3 {
        let until = Some(row.now.after(TTL));
        assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until });
        row.pass(seconds(1));
    }
}

/// T005
#[test]
fn what_lapsed_untouched_is_renewed_late_and_what_another_had_is_not() {
    let mut row = Row::new();
    let fence = row.hold(A);
    let lapsed = row.now.after(TTL);
    row.pass(seconds(3_600));
    let until = Some(row.now.after(TTL));
    let late = renew(A, fence, Late::Counts);
    assert_eq!(row.wish(&late), LeaseOutcome::RenewedLate { until, lapsed });
    assert_eq!(row.state(), LeaseState::Held);

    row.pass(seconds(3_600));
    let other = row.hold(B);
    row.wish(&release(B, other));
    assert_eq!(row.state(), LeaseState::Free);
    assert_eq!(row.refusal(&late), LeaseRefusal::Lost { fence: other });
}

/// T005: that somebody noticed the lapse takes nothing from its holder.
#[test]
fn a_lapse_that_is_on_record_is_renewed_late_as_one_that_is_not() {
    let mut row = Row::new();
    let fence = row.hold(A);
    let lapsed = row.now.after(TTL);
    row.pass(seconds(3_600));
    let (noticed, note) = row.lease.as_ref().and_then(|lease| lease.noticed(row.now)).expect("it lapsed");
    assert_eq!((note.at, noticed.noticed(row.now)), (lapsed, None));
    row.lease = Some(noticed);
    assert_eq!(row.refusal(&renew(A, fence, Late::Refused)), LeaseRefusal::Lapsed { at: lapsed });
    let until = Some(row.now.after(TTL));
    assert_eq!(row.wish(&renew(A, fence, Late::Counts)), LeaseOutcome::RenewedLate { until, lapsed });
}

/// T006
#[test]
fn nobody_renews_or_gives_back_what_lapsed_under_another_id() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.pass(TTL);
    for act in [renew(B, fence, Late::Counts), release(B, fence), change(B, fence, C)] {
        assert_eq!(row.refusal(&act), LeaseRefusal::WrongId);
    }
    assert_eq!(row.state(), LeaseState::Lapsed);
}

/// T007
#[test]
fn a_stale_release_is_refused_and_the_successor_is_unaffected() {
    let mut row = Row::new();
    let slow = row.hold(A);
    row.pass(TTL);
    let quick = row.hold(B);
    assert_eq!(row.refusal(&release(A, slow)), LeaseRefusal::Lost { fence: quick });
    assert_eq!(row.state(), LeaseState::Held);
    // The same id may have come back: its older ownership is over all the same.
    row.wish(&release(B, quick));
    let again = row.hold(A);
    for act in [release(A, slow), renew(A, slow, Late::Counts), change(A, slow, C)] {
        assert_eq!(row.refusal(&act), LeaseRefusal::Lost { fence: again });
    }
}

/// T008
#[test]
fn the_fence_grows_over_lapse_release_break_forgetting_restart_and_restore() {
    let mut row = Row::new();
    let mut last = row.hold(A);
    let ends: [fn(&mut Row); 8] = [
        |row| row.pass(TTL),
        |row| {
            let fence = row.lease.as_ref().expect("it is held").fence;
            row.wish(&release(A, fence));
        },
        |row| drop(row.wish(&break_within(Some(0)))),
        |row| {
            row.wish(&break_within(Some(5)));
            row.pass(seconds(5));
        },
        |row| drop(row.wish(&leave(A))),
        |row| {
            row.pass(TTL);
            assert_eq!(row.wish(&forget()), LeaseOutcome::Forgotten);
            assert!(row.lease.as_ref().is_some_and(|lease| lease.forgotten));
        },
        // A restored file has forgotten grants: its epoch is raised.
        |row| {
            row.pass(TTL);
            row.epoch = row.epoch.next(row.now, 0);
        },
        // An epoch that goes back, as it never should, repeats no fence either.
        |row| {
            row.pass(TTL);
            row.epoch = Epoch::default();
        },
    ];
    for (round, end) in ends.iter().chain(&ends).enumerate() {
        end(&mut row);
        let next = row.hold(A);
        assert!(next > last, "round {round}: {next} after {last}");
        assert!(row.lease.as_ref().is_some_and(|lease| !lease.forgotten));
        last = next;
    }
}

/// T022: an operator breaks a lease. Its holder is told until when it may go on.
#[test]
fn a_holder_whose_lease_is_being_broken_is_told_until_when() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.pass(seconds(10));
    let free = row.now.after(seconds(5));
    assert_eq!(row.wish(&break_within(Some(5))), LeaseOutcome::Breaks { free });
    let breaking = LeaseRefusal::Breaking { until: free };
    for act in [
        renew(A, fence, Late::Refused),
        renew(A, fence, Late::Counts),
        change(A, fence, B),
        acquire(A),
        acquire(B),
        forget(),
    ] {
        assert_eq!(row.refusal(&act), breaking, "{act:?}");
    }
    row.pass(seconds(5));
    assert_eq!(row.refusal(&renew(A, fence, Late::Counts)), LeaseRefusal::Broken);
    assert!(row.hold(B) > fence);
}

/// T022: the break is only ever shortened, and cut to what is left.
#[test]
fn a_break_is_capped_and_shortened_and_never_lengthened() {
    let mut row = Row::new();
    row.hold(A);
    let end = row.now.after(TTL);
    row.pass(seconds(10));
    let now = row.now;
    #[rustfmt::skip]
    let rows = [
        // within,    free
        (Some(90),    end),
        (None,        end),
        (Some(15),    now.after(seconds(15))),
        (Some(16),    now.after(seconds(15))),
        (Some(90),    now.after(seconds(15))),
        (None,        now.after(seconds(15))),
        (Some(14),    now.after(seconds(14))),
        (Some(0),     now),
        (Some(9),     now),
        (None,        now),
    ];
    for (within, free) in rows {
        assert_eq!(row.wish(&break_within(within)), LeaseOutcome::Breaks { free }, "within {within:?}");
    }
    // Broken now, it can be had now: not when an earlier, longer break would have ended.
    assert_eq!(row.lease.as_ref().and_then(|lease| lease.free_since(now)), Some(now));
    row.hold(B);
}

#[test]
fn a_lease_that_lapsed_and_was_then_broken_cannot_be_renewed_late() {
    let mut row = Row::new();
    let fence = row.hold(A);
    let lapsed = row.now.after(TTL);
    row.pass(TTL + seconds(9));
    assert_eq!(row.wish(&break_within(None)), LeaseOutcome::Breaks { free: row.now });
    assert_eq!(row.refusal(&renew(A, fence, Late::Counts)), LeaseRefusal::Broken);
    assert_eq!(row.lease.as_ref().and_then(|lease| lease.free_since(row.now)), Some(lapsed));
}

#[test]
fn a_changed_id_keeps_the_time_and_the_fence_and_may_be_changed_again_without_harm() {
    let mut row = Row::new();
    let fence = row.hold(A);
    let until = row.until();
    row.pass(seconds(10));
    for _ in 0..2 {
        assert_eq!(row.wish(&change(A, fence, B)), LeaseOutcome::Changed { until });
    }
    assert_eq!(row.refusal(&renew(A, fence, Late::Counts)), LeaseRefusal::WrongId);
    let later = Some(row.now.after(TTL));
    assert_eq!(row.wish(&renew(B, fence, Late::Counts)), LeaseOutcome::Renewed { until: later });
}

/// T023
#[test]
fn a_span_of_milliseconds_ends_after_milliseconds() {
    for millis in [1, 500, 999] {
        let mut row = Row::new();
        let span = Duration::from_millis(millis);
        row.wish(&acquire_for(A, Ttl::For(span)));
        assert_eq!((row.state(), row.until()), (LeaseState::Held, Some(row.now.after(span))));
        row.pass(span);
        assert_eq!(row.state(), LeaseState::Lapsed);
    }
}

/// T024
#[test]
fn a_short_span_does_not_shorten_the_renewals_after_a_longer_one() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.wish(&acquire_for(A, Ttl::For(seconds(1))));
    let short = Some(row.now.after(seconds(1)));
    assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until: short });
    row.hold(A);
    let long = Some(row.now.after(TTL));
    assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until: long });
}

/// T025: whichever comes first.
#[test]
fn a_release_and_a_renewal_end_free_in_either_order() {
    let mut row = Row::new();
    let fence = row.hold(A);
    let (renew, release) = (renew(A, fence, Late::Counts), release(A, fence));
    row.wish(&renew);
    assert_eq!(row.wish(&release), LeaseOutcome::Released);
    assert_eq!(row.refusal(&renew), LeaseRefusal::NotHeld);
    assert_eq!(row.refusal(&release), LeaseRefusal::NotHeld);
    assert_eq!(row.state(), LeaseState::Free);
}

/// The other side of T003: the reply was lost and nobody asks again.
#[test]
fn whoever_leaves_gives_back_what_it_never_heard_was_granted() {
    let mut row = Row::new();
    row.wish(&acquire_for(A, Ttl::Endless));
    assert_eq!(row.wish(&leave(B)), LeaseOutcome::Left);
    assert_eq!(row.state(), LeaseState::Held, "what another has is not given back");
    for _ in 0..2 {
        assert_eq!(row.wish(&leave(A)), LeaseOutcome::Left);
        assert_eq!(row.state(), LeaseState::Free);
    }
}

/// T021, as far as a lease goes: a clock that is put back keeps nobody from what is free.
#[test]
fn a_clock_that_is_put_back_neither_ends_nor_bars_a_lease() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.now = row.now.before(seconds(900));
    assert_eq!(row.state(), LeaseState::Held);
    let until = Some(row.now.after(TTL));
    assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until });
    row.pass(seconds(900));
    row.hold(B);
    row.now = row.now.before(seconds(90));
    row.wish(&leave(B));
    row.now = row.now.before(seconds(90));
    row.hold(C);
}

/// T021: the holder may be dead, and by the new clock the end that was written lies an hour ahead.
#[test]
fn after_a_clock_was_set_back_a_lease_ends_one_span_after_the_first_request() {
    for breaks in [None, Some(20)] {
        let mut row = Row::new();
        let fence = row.hold(A);
        if breaks.is_some() {
            row.wish(&break_within(breaks));
        }
        row.now = row.now.before(seconds(900));
        let end = row.now.after(TTL);
        // A second request does not move the end.
        for passed in [seconds(0), TTL - seconds(1)] {
            row.pass(passed);
            let outcome = row.wish(&acquire(B));
            let is_refused = match breaks {
                None => {
                    matches!(&outcome, LeaseOutcome::Refused(LeaseRefusal::Held { until, .. }) if *until == Some(end))
                }
                Some(_) => outcome == LeaseOutcome::Refused(LeaseRefusal::Breaking { until: end }),
            };
            assert!(is_refused && row.until() == Some(end), "{outcome:?}");
        }
        row.pass(seconds(1));
        assert!(row.hold(B) > fence);
    }
}

/// A holder counts its own time from the sending of its last request, which was before the cut.
#[test]
fn a_holder_that_lives_renews_after_the_clock_was_set_back_and_loses_nothing() {
    let mut row = Row::new();
    let fence = row.hold(A);
    row.pass(seconds(10));
    row.now = row.now.before(seconds(900));
    row.wish(&acquire(B));
    // A third of its time later it renews.
    row.pass(TTL / 3);
    let until = Some(row.now.after(TTL));
    assert_eq!(row.wish(&renew(A, fence, Late::Refused)), LeaseOutcome::Renewed { until });
    // Less than its span was set back: the end is not moved ahead.
    row.now = row.now.before(seconds(5));
    row.wish(&acquire(B));
    assert_eq!(row.until(), Some(row.now.after(TTL)));
    row.pass(seconds(5));
    assert_eq!(row.wish(&change(A, fence, C)), LeaseOutcome::Changed { until: row.until() });
}

#[test]
fn a_lease_without_end_has_none_by_any_clock() {
    let mut row = Row::new();
    row.wish(&acquire_for(A, Ttl::Endless));
    row.now = row.now.before(seconds(900));
    row.refusal(&acquire(B));
    assert_eq!((row.state(), row.until()), (LeaseState::Held, None));
}
