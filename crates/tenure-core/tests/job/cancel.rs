//! What a wish to cancel comes to, by the state that it meets.

use std::time::Duration;

use crate::common::{KEEP_FAILED, NOW, at, running, seconds, waiting};
use tenure_core::{Cancel, CancelRequest, Cause, End, Failure, Job, State, Timestamp, Why, limits};

fn wish() -> CancelRequest {
    CancelRequest::new(at(NOW), seconds(10), "the order was withdrawn")
}

/// T147: a waiting job ends at once, whether it is due or not, and under the fence that it has.
#[test]
fn a_waiting_job_is_cancelled_at_once_and_says_why() {
    for due in [NOW - 1, NOW, NOW + 1] {
        for why in [Why::Enqueued, Why::Retry, Why::Snoozed, Why::Released, Why::Lost, Why::Asked] {
            let job = Job { state: State::Waiting { due: at(due), why }, attempt: 2, ..waiting() };
            let Cancel::Ends(ends) = Cancel::decide(&job, wish()) else { panic!("{why:?} at {due}") };
            assert_eq!(ends.state, State::Finished { at: at(NOW), end: End::Cancelled });
            assert_eq!(ends.failure, Some(Failure::new(Cause::Cancelled, "the order was withdrawn")));
            assert_eq!((ends.ended, ends.attempt, ends.fence), (None, 2, job.fence));
            assert_eq!(ends.expires, Some(at(NOW + KEEP_FAILED)));
        }
    }
}

/// T147: signal, then bounded.
#[test]
fn a_running_job_has_its_holder_asked_once_and_the_first_wish_stands() {
    let mut job = running(1, 1, NOW + 30);
    assert_eq!(Cancel::decide(&job, wish()), Cancel::Asks(wish()));
    job.cancel = Some(wish());
    let later = CancelRequest::new(at(NOW + 5), seconds(0), "again");
    assert_eq!(Cancel::decide(&job, later), Cancel::AlreadyAsked);
}

/// T147: done is a conflict.
#[test]
fn a_finished_job_stays_as_it_ended() {
    for end in [End::Succeeded, End::Failed, End::Cancelled] {
        let job = Job { state: State::Finished { at: at(1), end }, ..waiting() };
        assert_eq!(Cancel::decide(&job, wish()), Cancel::AlreadyEnded(end));
    }
}

#[test]
fn the_grace_ends_at_a_deadline_and_no_grace_is_endless() {
    let deadline = |grace| CancelRequest::new(at(NOW), grace, "").deadline;
    assert_eq!(deadline(Duration::ZERO), at(NOW));
    assert_eq!(deadline(seconds(10)), at(NOW + 10));
    assert_eq!(deadline(Duration::MAX), at(NOW).after(limits::LONGEST));
    assert_eq!(CancelRequest::new(Timestamp::LAST, seconds(10), "").deadline, Timestamp::LAST);
}
