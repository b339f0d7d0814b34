//! What time alone makes of a running job: its holder fell silent, or did not stop when asked.

use crate::common::{ATTEMPTS, DELIVERIES, DUE, KEEP_FAILED, NOW, at, host, policy, running, waiting};
use tenure_core::{
    AttemptEnd, CancelRequest, Cause, End, Epoch, Job, Output, Reserved, State, Transition, Verdict, Why,
    lapse, redo,
};

/// What is expected of a running job.
#[derive(Debug, Clone, Copy)]
enum Comes {
    /// Its holder keeps it.
    Nothing,
    /// It is lost: it waits again, or has failed where a limit is met.
    Lost,
    /// It is cancelled, and its holder had fallen silent before the grace was over.
    CancelledSilent,
    /// It is cancelled, and its holder went on past the grace.
    CancelledDeaf,
}

const REASON: &str = "the order was withdrawn";

fn asked_until(deadline: u64) -> CancelRequest {
    CancelRequest { at: at(600), deadline: at(deadline), reason: REASON.to_owned() }
}

fn lapsed(job: &Job) -> Option<Transition> {
    lapse(job, Epoch::default(), at(NOW))
}

fn check(job: &Job, limit_met: bool, comes: Comes, told: &str) {
    let (state, ended, cause) = match comes {
        Comes::Nothing => {
            assert_eq!(lapsed(job), None, "{told}");
            return;
        }
        Comes::Lost if limit_met => (ends(End::Failed), AttemptEnd::Lost, Cause::Lost),
        Comes::Lost => (State::Waiting { due: at(DUE), why: Why::Lost }, AttemptEnd::Lost, Cause::Lost),
        Comes::CancelledSilent => (ends(End::Cancelled), AttemptEnd::Lost, Cause::Cancelled),
        Comes::CancelledDeaf => (ends(End::Cancelled), AttemptEnd::Cancelled, Cause::Deaf),
    };
    let was = lapsed(job).unwrap_or_else(|| panic!("{told}: nothing came"));
    assert_eq!(was.state, state, "{told}");
    assert_eq!(was.ended, Some(ended), "{told}");
    assert_eq!(was.failure.map(|failure| failure.cause), Some(cause), "{told}");
    assert_eq!(was.attempt, job.attempt, "what was lost has counted: {told}");
    assert_eq!(was.fence, job.fence.next(Epoch::default()), "each taking moves the fence: {told}");
    assert_eq!(was.output, None, "{told}");
    assert_eq!(was.expires, state.is_finished().then(|| at(NOW + KEEP_FAILED)), "{told}");
}

fn ends(end: End) -> State {
    State::Finished { at: at(NOW), end }
}

/// T147: the end is bounded, whether the holder is silent or deaf.
#[test]
fn a_job_is_taken_from_a_holder_that_fell_silent_or_did_not_stop_within_the_grace() {
    let (before, now, after) = (NOW - 100, NOW, NOW + 100);
    #[rustfmt::skip]
    let rows = [
        // the lease ends, the grace ends, what comes
        (before, None,               Comes::Lost),
        (before, Some(before - 1),   Comes::CancelledDeaf),
        (before, Some(before),       Comes::CancelledSilent),
        (before, Some(now),          Comes::CancelledSilent),
        (before, Some(after),        Comes::CancelledSilent),
        (now,    None,               Comes::Lost),
        (now,    Some(before),       Comes::CancelledDeaf),
        (now,    Some(now),          Comes::CancelledSilent),
        (now,    Some(after),        Comes::CancelledSilent),
        (after,  None,               Comes::Nothing),
        (after,  Some(before),       Comes::CancelledDeaf),
        (after,  Some(now),          Comes::CancelledDeaf),
        (after,  Some(after),        Comes::Nothing),
        (after,  Some(after + 100),  Comes::Nothing),
    ];
    for (until, deadline, comes) in rows {
        for (attempt, delivery) in
            [(2, 2), (ATTEMPTS, 3), (2, DELIVERIES), (ATTEMPTS, DELIVERIES), (ATTEMPTS + 1, DELIVERIES + 1)]
        {
            let job = Job { cancel: deadline.map(asked_until), ..running(attempt, delivery, until) };
            let limit_met = attempt >= ATTEMPTS || delivery >= DELIVERIES;
            let told = format!("until {until}, {deadline:?}, attempt {attempt}, delivery {delivery}");
            check(&job, limit_met, comes, &told);
        }
    }
}

#[test]
fn time_alone_changes_nothing_about_a_job_that_nobody_holds() {
    assert_eq!(lapsed(&waiting()), None);
    for end in [End::Succeeded, End::Failed, End::Cancelled] {
        let state = State::Finished { at: at(1), end };
        assert_eq!(lapsed(&Job { state, ..waiting() }), None, "{end:?}");
    }
}

#[test]
fn a_lost_job_returns_to_its_place_in_line_however_often_it_is_lost() {
    let mut job = waiting();
    for _ in 1..ATTEMPTS {
        job = job.granted(host(), Epoch::default(), at(NOW - 50), at(NOW - 20));
        let taken = lapsed(&job).expect("its lease is over");
        job = job.after(taken);
        assert_eq!(job.state, State::Waiting { due: at(DUE), why: Why::Lost });
    }
}

#[test]
fn a_failure_by_silence_names_the_host_and_when_its_lease_ended() {
    let failure = lapsed(&running(1, 1, 900)).and_then(|taken| taken.failure).expect("it is lost");
    assert_eq!(
        failure.to_string(),
        format!("lost: host {} stopped responding; its lease ended at {}", host(), at(900))
    );
}

#[test]
fn every_way_of_taking_a_job_tells_the_reason_of_its_cancelling() {
    for (until, deadline) in [(900, 950), (2_000, 950)] {
        let job = Job { cancel: Some(asked_until(deadline)), ..running(1, 1, until) };
        let failure = lapsed(&job).and_then(|taken| taken.failure).expect("it is taken");
        assert_eq!(failure.message, REASON);
    }
}

/// T095, T138: the fence that a late holder still names is older than the one it is compared with.
#[test]
fn a_late_holder_is_fenced_off_by_the_taking_itself_before_anybody_else_is_granted_the_job() {
    let job = running(1, 1, 900);
    let late = Reserved::granted(job.clone()).settle(Verdict::Succeeded(None), &policy(), 0.5);
    let taken = job.clone().after(lapsed(&job).expect("its lease is over"));
    assert!(taken.fence > late.fence());
    let again = taken.clone().granted(host(), Epoch::default(), at(NOW), at(NOW + 30));
    assert!(again.fence > taken.fence);
}

#[test]
fn a_taking_after_a_restore_starts_the_fences_of_its_epoch() {
    let taken = lapse(&running(1, 1, 900), Epoch::new(3000), at(NOW)).expect("its lease is over");
    assert_eq!(taken.fence.number(), 3001);
}

/// T136: manual retry.
#[test]
fn a_finished_job_that_is_asked_for_again_is_due_at_once_with_all_its_attempts() {
    for end in [End::Succeeded, End::Failed, End::Cancelled] {
        let mut job = running(ATTEMPTS, 3, 900);
        job.state = State::Finished { at: at(950), end };
        job.expires = Some(at(5_000));
        job.output = Some(Output::default());
        let again = job.clone().after(redo(&job, at(NOW)).expect("it has finished"));
        assert_eq!(again.state, State::Waiting { due: at(NOW), why: Why::Asked });
        assert_eq!((again.attempt, again.delivery, again.fence), (0, 3, job.fence));
        assert_eq!((again.expires, again.output), (None, None));
    }
}

#[test]
fn only_a_finished_job_can_be_done_again() {
    assert_eq!(redo(&waiting(), at(NOW)), None);
    assert_eq!(redo(&running(1, 1, 900), at(NOW)), None);
}
