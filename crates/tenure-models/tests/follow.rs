//! Histories that the model of a job allows, and some that it does not.
#![allow(clippy::unwrap_used, reason = "a test may end at once")]

use tenure_core::{Due, Fence, Next, StateName, Why};
use tenure_models::job::{Cancelled, Event, Renewal, Settled, follow};

const RETRY: Next = Next::Wait { due: Due::Now, why: Why::Retry };

fn enqueued() -> Event {
    Event::Enqueued { attempts: 2, deliveries: 4 }
}

fn granted(fence: u64, attempt: u32, delivery: u32) -> Event {
    Event::Granted { fence: Fence::from_number(fence), attempt, delivery }
}

fn settled(fence: u64, next: Next, answer: Settled) -> Event {
    Event::Settled { fence: Fence::from_number(fence), next, answer }
}

fn renewed(fence: u64, answer: Renewal) -> Event {
    Event::Renewed { fence: Fence::from_number(fence), answer }
}

#[track_caller]
fn assert_allowed(events: &[Event]) {
    assert_eq!(follow(events), Ok(()));
}

#[track_caller]
fn assert_refused_at(at: usize, events: &[Event]) {
    let refused = follow(events).expect_err("the model allows it");
    assert_eq!(refused.at, at, "{refused}");
    // Without that event and what follows, nothing is wrong.
    assert_eq!(follow(&events[..at]), Ok(()));
}

#[test]
fn a_plain_life_is_allowed() {
    assert_allowed(&[
        enqueued(),
        Event::Seen(StateName::Queued),
        granted(1, 1, 1),
        renewed(1, Renewal::Held { cancel: false }),
        Event::Acted { fence: Fence::from_number(1), accepted: true },
        settled(1, RETRY, Settled::Done),
        settled(1, RETRY, Settled::Repeated),
        granted(2, 2, 2),
        settled(2, Next::Succeed, Settled::Done),
        Event::Seen(StateName::Succeeded),
        Event::Cancelled(Cancelled::TooLate),
    ]);
}

#[test]
fn a_takeover_whose_loser_is_refused_is_allowed() {
    let events = [
        enqueued(),
        granted(7, 1, 1),
        granted(9, 2, 2),
        renewed(7, Renewal::Lost),
        Event::Acted { fence: Fence::from_number(7), accepted: false },
        settled(7, Next::Succeed, Settled::Fenced),
        settled(9, Next::Succeed, Settled::Done),
    ];
    assert_allowed(&events);
    // The same when the history tells that the silence was noticed.
    let mut told = events.to_vec();
    told.insert(2, Event::Lapsed);
    assert_allowed(&told);
}

#[test]
fn a_settlement_after_the_lease_counts_until_somebody_notices() {
    assert_allowed(&[
        enqueued(),
        granted(1, 1, 1),
        renewed(1, Renewal::Lapsed),
        settled(1, Next::Succeed, Settled::Done),
    ]);
    assert_refused_at(
        3,
        &[enqueued(), granted(1, 1, 1), Event::Lapsed, settled(1, Next::Succeed, Settled::Done)],
    );
}

#[test]
fn what_is_given_back_spends_no_attempt_and_what_is_done_again_has_all() {
    assert_allowed(&[
        enqueued(),
        granted(1, 1, 1),
        settled(1, Next::Wait { due: Due::Now, why: Why::Released }, Settled::Done),
        granted(2, 1, 2),
        settled(2, Next::Wait { due: Due::Now, why: Why::Snoozed }, Settled::Done),
        granted(3, 1, 3),
        settled(3, Next::Fail, Settled::Done),
        Event::Redone { accepted: true },
        Event::Redone { accepted: false },
        granted(4, 1, 4),
    ]);
}

#[test]
fn a_job_that_is_to_stop_is_taken_or_ends_and_both_are_allowed() {
    let begun = [enqueued(), granted(1, 1, 1), Event::Cancelled(Cancelled::Asked)];
    let told = renewed(1, Renewal::Held { cancel: true });
    let stopped = settled(1, Next::Cancel, Settled::Done);
    assert_allowed(&[&begun[..], &[told, stopped, Event::Seen(StateName::Cancelled)]].concat());
    let taken = [Event::Lapsed, Event::Seen(StateName::Cancelled), settled(1, RETRY, Settled::Fenced)];
    assert_allowed(&[&begun[..], &taken].concat());
    // It would have failed, but a wish to stop comes before a limit.
    let tired = [
        enqueued(),
        granted(1, 1, 1),
        granted(3, 2, 2),
        Event::Cancelled(Cancelled::Asked),
        settled(3, Next::Fail, Settled::Done),
        Event::Seen(StateName::Cancelled),
    ];
    assert_allowed(&tired);
}

#[test]
fn a_waiting_job_may_be_blocked_put_off_or_cancelled_twice() {
    let events = [
        enqueued(),
        Event::Seen(StateName::Blocked),
        Event::Rescheduled,
        Event::Seen(StateName::Scheduled),
        Event::Cancelled(Cancelled::Ended),
        Event::Cancelled(Cancelled::Already),
    ];
    assert_allowed(&events);
    assert_refused_at(5, &[&events[..5], &[Event::Rescheduled]].concat());
    // Its holder may have fallen silent; one that goes on to settle has not.
    let held = [granted(1, 1, 1), Event::Rescheduled, settled(1, Next::Succeed, Settled::Done)];
    assert_refused_at(3, &[&[enqueued()][..], &held].concat());
}

#[test]
fn a_write_under_an_old_fence_that_was_accepted_is_refused() {
    let begun = [enqueued(), granted(1, 1, 1), granted(3, 2, 2)];
    let stale = [
        settled(1, Next::Succeed, Settled::Done),
        renewed(1, Renewal::Held { cancel: false }),
        Event::Acted { fence: Fence::from_number(1), accepted: true },
    ];
    for event in stale {
        assert_refused_at(3, &[&begun[..], &[event]].concat());
    }
}

#[test]
fn a_fence_that_does_not_grow_or_was_never_granted_is_refused() {
    assert_refused_at(2, &[enqueued(), granted(5, 1, 1), granted(5, 2, 2)]);
    assert_refused_at(2, &[enqueued(), granted(5, 1, 1), granted(4, 2, 2)]);
    assert_refused_at(1, &[enqueued(), settled(5, Next::Succeed, Settled::Done)]);
}

#[test]
fn a_grant_of_a_job_that_has_ended_is_refused() {
    let ended = [enqueued(), granted(1, 1, 1), settled(1, Next::Succeed, Settled::Done)];
    assert_refused_at(3, &[&ended[..], &[granted(2, 2, 2)]].concat());
    assert_refused_at(3, &[&ended[..], &[Event::Seen(StateName::Queued)]].concat());
    let cancelled = [enqueued(), Event::Cancelled(Cancelled::Ended), granted(1, 1, 1)];
    assert_refused_at(2, &cancelled);
}

#[test]
fn more_attempts_than_allowed_and_attempts_that_are_not_counted_are_refused() {
    let twice = [enqueued(), granted(1, 1, 1), granted(3, 2, 2)];
    assert_refused_at(3, &[&twice[..], &[granted(5, 3, 3)]].concat());
    assert_refused_at(2, &[enqueued(), granted(1, 1, 1), granted(3, 1, 2)]);
    assert_refused_at(2, &[enqueued(), granted(1, 1, 1), granted(3, 2, 1)]);
}

#[test]
fn a_false_answer_to_a_settlement_is_refused() {
    let lost = [enqueued(), granted(1, 1, 1), Event::Lapsed];
    assert_refused_at(3, &[&lost[..], &[settled(1, RETRY, Settled::Repeated)]].concat());
    let ended = [enqueued(), granted(1, 1, 1), settled(1, Next::Succeed, Settled::Done)];
    assert_refused_at(3, &[&ended[..], &[settled(1, Next::Succeed, Settled::Done)]].concat());
    assert_refused_at(3, &[&ended[..], &[settled(1, Next::Succeed, Settled::Fenced)]].concat());
}

#[test]
fn a_job_that_is_to_stop_and_waits_again_is_refused() {
    let told = [enqueued(), granted(1, 1, 1), Event::Cancelled(Cancelled::Asked)];
    let again = [settled(1, RETRY, Settled::Done), Event::Seen(StateName::Queued)];
    assert_refused_at(4, &[&told[..], &again].concat());
}

#[test]
fn a_history_begins_once_with_the_enqueueing() {
    assert_eq!(follow(&[granted(1, 1, 1)]).unwrap_err().at, 0);
    assert_refused_at(1, &[enqueued(), enqueued()]);
    assert_eq!(follow(&[]), Ok(()));
}
