//! What becomes of a running job by each verdict of its handler: one table a verdict, over attempts and
//! deliveries below and at their limits, with and without a wish to cancel.

use crate::common::{
    ATTEMPTS, DELIVERIES, KEEP_FAILED, KEEP_SUCCEEDED, NOW, at, policy, running, seconds, waiting,
};
use tenure_core::{
    AttemptEnd, Backoff, CancelRequest, Cause, Due, End, Failure, Job, Next, Output, Progress, Reserved,
    RetryPolicy, State, Terms, Timestamp, Transition, Verdict, Why,
};

use Asked::{No, Yes};
use At::{Below, Limit};

/// Where a count stands.
#[derive(Debug, Clone, Copy)]
enum At {
    Below,
    Limit,
}

/// Whether somebody asked for the job to be cancelled.
#[derive(Debug, Clone, Copy)]
enum Asked {
    No,
    Yes,
}

/// Attempts, deliveries, asked → state, attempts after, how the attempt ended, the cause on record.
type Row = (At, At, Asked, State, u32, AttemptEnd, Option<Cause>);

const REASON: &str = "the order was withdrawn";

fn waits(due: u64, why: Why) -> State {
    State::Waiting { due: at(due), why }
}

fn ends(end: End) -> State {
    State::Finished { at: at(NOW), end }
}

fn expiry(state: &State) -> Option<Timestamp> {
    match state {
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
        State::Finished { end: End::Succeeded, .. } => Some(at(NOW + KEEP_SUCCEEDED)),
        State::Finished { end: End::Failed | End::Cancelled, .. } => Some(at(NOW + KEEP_FAILED)),
    }
}

fn job_at(attempts: At, deliveries: At) -> Job {
    let count = |limit: u32, at: At| match at {
        Below => limit - 1,
        Limit => limit,
    };
    running(count(ATTEMPTS, attempts), count(DELIVERIES, deliveries), NOW + 30)
}

fn settled(job: Job, verdict: Verdict, asked: Asked) -> Transition {
    let wish = match asked {
        No => None,
        Yes => Some(REASON),
    };
    Reserved::granted(job).settle(verdict, &RetryPolicy::default(), 0.5).resolve(at(NOW), wish)
}

fn check(verdict: &Verdict, output: Option<&Output>, rows: &[Row; 8]) {
    for row in rows {
        let (attempts, deliveries, asked, state, attempt, ended, cause) = *row;
        let job = job_at(attempts, deliveries);
        let fence = job.fence;
        let was = settled(job, verdict.clone(), asked);
        assert_eq!(was.state, state, "{row:?}");
        assert_eq!(was.attempt, attempt, "{row:?}");
        assert_eq!(was.ended, Some(ended), "{row:?}");
        assert_eq!(was.failure.as_ref().map(|failure| failure.cause), cause, "{row:?}");
        assert_eq!(was.fence, fence, "only a grant or a taking moves the fence: {row:?}");
        assert_eq!(was.expires, expiry(&state), "{row:?}");
        assert_eq!(was.output.as_ref(), output, "{row:?}");
    }
}

fn error() -> Failure {
    Failure::new(Cause::Error, "no such address")
}

#[test]
fn a_job_that_succeeded_has_succeeded_whatever_its_limits_and_whoever_wished_otherwise() {
    let output = Output::new(b"7".to_vec(), Some("/stars/7".to_owned())).unwrap();
    #[rustfmt::skip]
    check(&Verdict::Succeeded(Some(output.clone())), Some(&output), &[
        // attempts, deliveries, asked, state, attempts after, the attempt's end, cause
        (Below, Below, No,  ends(End::Succeeded), 2, AttemptEnd::Succeeded, None),
        (Below, Below, Yes, ends(End::Succeeded), 2, AttemptEnd::Succeeded, None),
        (Below, Limit, No,  ends(End::Succeeded), 2, AttemptEnd::Succeeded, None),
        (Below, Limit, Yes, ends(End::Succeeded), 2, AttemptEnd::Succeeded, None),
        (Limit, Below, No,  ends(End::Succeeded), 3, AttemptEnd::Succeeded, None),
        (Limit, Below, Yes, ends(End::Succeeded), 3, AttemptEnd::Succeeded, None),
        (Limit, Limit, No,  ends(End::Succeeded), 3, AttemptEnd::Succeeded, None),
        (Limit, Limit, Yes, ends(End::Succeeded), 3, AttemptEnd::Succeeded, None),
    ]);
}

#[test]
fn a_job_that_failed_for_good_has_failed_at_any_attempt() {
    #[rustfmt::skip]
    check(&Verdict::Failed(error()), None, &[
        (Below, Below, No,  ends(End::Failed), 2, AttemptEnd::Failed, Some(Cause::Error)),
        (Below, Below, Yes, ends(End::Failed), 2, AttemptEnd::Failed, Some(Cause::Error)),
        (Below, Limit, No,  ends(End::Failed), 2, AttemptEnd::Failed, Some(Cause::Error)),
        (Below, Limit, Yes, ends(End::Failed), 2, AttemptEnd::Failed, Some(Cause::Error)),
        (Limit, Below, No,  ends(End::Failed), 3, AttemptEnd::Failed, Some(Cause::Error)),
        (Limit, Below, Yes, ends(End::Failed), 3, AttemptEnd::Failed, Some(Cause::Error)),
        (Limit, Limit, No,  ends(End::Failed), 3, AttemptEnd::Failed, Some(Cause::Error)),
        (Limit, Limit, Yes, ends(End::Failed), 3, AttemptEnd::Failed, Some(Cause::Error)),
    ]);
}

/// T136, T147: attempts are limited and end with the error; a wish to cancel ends a job that would wait.
#[test]
fn a_failed_attempt_is_tried_again_until_attempts_or_deliveries_are_spent_or_somebody_cancels() {
    let wait = || waits(NOW + 5, Why::Retry);
    #[rustfmt::skip]
    check(&Verdict::Retry { failure: error(), due: None }, None, &[
        (Below, Below, No,  wait(),               2, AttemptEnd::Retried,   Some(Cause::Error)),
        (Below, Below, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Below, Limit, No,  ends(End::Failed),    2, AttemptEnd::Failed,    Some(Cause::Error)),
        (Below, Limit, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Limit, Below, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Error)),
        (Limit, Below, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Limit, Limit, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Error)),
        (Limit, Limit, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Error)),
    ]);
}

#[test]
fn a_handler_that_names_its_next_attempt_is_bound_by_the_same_limits() {
    let wait = || waits(NOW + 60, Why::Retry);
    #[rustfmt::skip]
    check(&Verdict::Retry { failure: error(), due: Some(Due::In(seconds(60))) }, None, &[
        (Below, Below, No,  wait(),               2, AttemptEnd::Retried,   Some(Cause::Error)),
        (Below, Below, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Below, Limit, No,  ends(End::Failed),    2, AttemptEnd::Failed,    Some(Cause::Error)),
        (Below, Limit, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Limit, Below, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Error)),
        (Limit, Below, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Error)),
        (Limit, Limit, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Error)),
        (Limit, Limit, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Error)),
    ]);
}

#[test]
fn a_snoozed_job_spends_a_delivery_but_no_attempt() {
    let wait = || waits(NOW + 60, Why::Snoozed);
    #[rustfmt::skip]
    check(&Verdict::Snoozed(Due::In(seconds(60))), None, &[
        (Below, Below, No,  wait(),               1, AttemptEnd::Snoozed,   None),
        (Below, Below, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Below, Limit, No,  ends(End::Failed),    2, AttemptEnd::Failed,    Some(Cause::Deliveries)),
        (Below, Limit, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Below, No,  wait(),               2, AttemptEnd::Snoozed,   None),
        (Limit, Below, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Limit, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Deliveries)),
        (Limit, Limit, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
    ]);
}

/// T145: what a stopping worker gives back returns to its place in line with its attempts.
#[test]
fn a_job_that_is_given_back_returns_to_its_place_in_line_and_spends_no_attempt() {
    let wait = || waits(crate::common::DUE, Why::Released);
    #[rustfmt::skip]
    check(&Verdict::Released, None, &[
        (Below, Below, No,  wait(),               1, AttemptEnd::Released,  None),
        (Below, Below, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Below, Limit, No,  ends(End::Failed),    2, AttemptEnd::Failed,    Some(Cause::Deliveries)),
        (Below, Limit, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Below, No,  wait(),               2, AttemptEnd::Released,  None),
        (Limit, Below, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Limit, No,  ends(End::Failed),    3, AttemptEnd::Failed,    Some(Cause::Deliveries)),
        (Limit, Limit, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
    ]);
}

#[test]
fn a_job_that_stopped_because_it_was_cancelled_is_cancelled_whatever_its_limits() {
    #[rustfmt::skip]
    check(&Verdict::Cancelled(Failure::new(Cause::Cancelled, REASON)), None, &[
        (Below, Below, No,  ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Below, Below, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Below, Limit, No,  ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Below, Limit, Yes, ends(End::Cancelled), 2, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Below, No,  ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Below, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Limit, No,  ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
        (Limit, Limit, Yes, ends(End::Cancelled), 3, AttemptEnd::Cancelled, Some(Cause::Cancelled)),
    ]);
}

#[test]
fn the_next_attempt_is_due_when_the_handler_says_by_the_clock_of_the_store() {
    let cases = [
        (Due::Now, NOW),
        (Due::In(seconds(60)), NOW + 60),
        (Due::At(at(5_000)), 5_000),
        (Due::At(at(50)), 50),
    ];
    for (due, expected) in cases {
        let verdict = Verdict::Retry { failure: error(), due: Some(due) };
        let was = settled(job_at(Below, Below), verdict, No);
        assert_eq!(was.state, waits(expected, Why::Retry), "{due:?}");
        let was = settled(job_at(Below, Below), Verdict::Snoozed(due), No);
        assert_eq!(was.state, waits(expected, Why::Snoozed), "{due:?}");
    }
}

#[test]
fn the_policy_of_the_handler_counts_only_for_a_job_that_has_none() {
    let once = RetryPolicy { max_attempts: 1, ..policy() };
    let next = |terms: Terms| {
        let job = Job { terms: terms.into(), ..running(1, 1, NOW + 30) };
        Reserved::granted(job).settle(Verdict::Retry { failure: error(), due: None }, &once, 0.5).next()
    };
    assert_eq!(next(Terms::default()), Next::Fail);
    assert_eq!(next(crate::common::terms()), Next::Wait { due: Due::In(seconds(5)), why: Why::Retry });
}

#[test]
fn a_limit_that_was_lowered_meanwhile_ends_the_job_with_its_next_failure() {
    let job = running(ATTEMPTS + 5, 1, NOW + 30);
    let was = settled(job, Verdict::Retry { failure: error(), due: None }, No);
    assert_eq!((was.state, was.attempt), (ends(End::Failed), ATTEMPTS + 5));
}

/// T097.
#[test]
fn the_wait_before_a_retry_is_spread_by_chance_and_survives_a_chance_that_is_no_number() {
    let backoff = Backoff::Exponential { first: seconds(10), ceiling: seconds(60) };
    let terms = Terms { retry: Some(RetryPolicy { backoff, ..policy() }), ..Terms::default() };
    for (chance, wait) in [(0.0, 8), (0.5, 10), (1.0, 12), (-5.0, 8), (7.0, 12), (f64::NAN, 60)] {
        let job = Job { terms: terms.clone().into(), ..running(1, 1, NOW + 30) };
        let verdict = Verdict::Retry { failure: error(), due: None };
        let next = Reserved::granted(job).settle(verdict, &policy(), chance).next();
        assert_eq!(next, Next::Wait { due: Due::In(seconds(wait)), why: Why::Retry }, "{chance}");
    }
}

#[test]
fn a_job_that_succeeds_in_the_end_keeps_its_last_failure_on_record() {
    let failed = running(1, 1, NOW + 30);
    let verdict = Verdict::Retry { failure: error(), due: None };
    let failed = failed.clone().after(settled(failed, verdict, No));
    let again = failed.granted(crate::common::host(), Default::default(), at(NOW), at(NOW + 30));
    let done = again.clone().after(settled(again, Verdict::Succeeded(None), No));
    assert_eq!(done.failure, Some(error()));
    assert_eq!((done.attempt, done.delivery), (2, 2));
}

#[test]
fn a_new_attempt_begins_without_the_progress_of_the_last() {
    let mut job = waiting();
    job.progress = Progress::new(0.9, "almost").ok();
    assert_eq!(job.granted(crate::common::host(), Default::default(), at(NOW), at(NOW + 30)).progress, None);
}

#[test]
fn a_wish_to_cancel_is_over_once_the_job_has_left_its_holder() {
    let mut job = running(1, 1, NOW + 30);
    job.cancel = Some(CancelRequest::new(at(NOW), seconds(10), REASON));
    let done = job.clone().after(settled(job, Verdict::Succeeded(None), Yes));
    assert_eq!(done.cancel, None);
}

#[test]
fn a_cancelled_job_tells_why_somebody_cancelled_it() {
    let was = settled(job_at(Below, Limit), Verdict::Released, Yes);
    assert_eq!(was.failure.map(|failure| failure.message), Some(REASON.to_owned()));
}

#[test]
fn counts_stop_at_their_last_number() {
    let job = Job { attempt: u32::MAX, delivery: u32::MAX, ..waiting() };
    let job = job.granted(crate::common::host(), Default::default(), at(NOW), at(NOW + 30));
    assert_eq!((job.attempt, job.delivery), (u32::MAX, u32::MAX));
}
