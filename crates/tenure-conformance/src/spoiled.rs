//! What becomes of a job when one that it waits for ends badly.

use tenure_core::{Cause, IfFailed, JobId, NewJob, OnConflict, Reason, StateName, Terms, Window};

use super::after::put_after;
use super::given::{Given, TTL, failed};
use super::keyed::after;
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_is_cancelled_when_one_that_it_waits_for_ends_badly),
        test(a_job_runs_though_one_that_it_waits_for_ends_badly_if_it_said_so),
        test(a_job_enqueued_after_one_that_ended_badly_is_cancelled_by_the_next_turn),
        test(what_succeeded_and_was_removed_has_succeeded),
        test(what_was_removed_before_it_succeeded_is_bad),
        test(the_first_accepted_of_several_that_ended_badly_is_named),
        test(cancelling_goes_on_to_those_that_wait_for_the_cancelled_one_a_step_a_turn),
        test(a_job_that_fails_for_good_by_lapsing_is_noticed),
        test(who_is_replaced_takes_those_along_that_wait_for_it),
        test(a_job_that_will_be_cancelled_is_explained_by_the_one_that_spoils_it),
    ]
}

/// What may become of a job for which another waits, except that it succeeds, and how that is told.
async fn end_badly(given: &Given, how: &str, id: JobId) {
    match how {
        "failed" => _ = given.settle(given.take("post").await, failed()).await,
        "was cancelled" => _ = given.cancel(id).await,
        "was deleted" => _ = given.change(id, Change::Delete).await,
        other => panic!("{other}"),
    }
}

async fn a_job_is_cancelled_when_one_that_it_waits_for_ends_badly(given: Given) {
    for how in ["failed", "was cancelled", "was deleted"] {
        let other = given.enqueue("post", 1).await[0];
        let job = put_after(&given, &[other], IfFailed::Cancel).await;
        end_badly(&given, how, other).await;
        assert_eq!(given.state(job).await, StateName::Blocked, "nobody has looked");
        assert_eq!(given.grab(&["mail"]).await, []);
        let job = given.job(job).await;
        assert_eq!(job.state.name(given.now()), StateName::Cancelled, "{how}");
        let failure = job.failure.expect("it says why");
        let words = format!("job {other}, which it depends on, {how}");
        assert_eq!((failure.cause, failure.message, job.attempt), (Cause::Cancelled, words, 0));
    }
}

async fn a_job_runs_though_one_that_it_waits_for_ends_badly_if_it_said_so(given: Given) {
    for how in ["failed", "was cancelled", "was deleted"] {
        let others = given.enqueue("post", 2).await;
        let job = put_after(&given, &others, IfFailed::Run).await;
        end_badly(&given, how, others[0]).await;
        assert_eq!(given.grab(&["mail"]).await, [], "it waits for all of them");
        given.succeed(given.take("post").await).await;
        assert_eq!(given.drain(&["mail"]).await, [[job]]);
    }
}

async fn a_job_enqueued_after_one_that_ended_badly_is_cancelled_by_the_next_turn(given: Given) {
    given.fail(given.running().await).await;
    let bad = given.all().await[0].id;
    let job = put_after(&given, &[bad], IfFailed::Cancel).await;
    assert_eq!(given.state(job).await, StateName::Blocked);
    assert_eq!(given.tend().await.due, 1);
    assert_eq!(given.state(job).await, StateName::Cancelled);
    let (again, next) = (put_after(&given, &[bad], IfFailed::Cancel).await, given.enqueue("mail", 1).await);
    given.change(bad, Change::Redo).await;
    assert_eq!(given.drain(&["mail"]).await, [vec![bad, next[0]], vec![again]], "it was done again in time");
}

async fn what_succeeded_and_was_removed_has_succeeded(given: Given) {
    let other = given.enqueue("post", 1).await[0];
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.succeed(given.take("post").await).await;
    assert_eq!(given.change(other, Change::Delete).await, ChangeOutcome::Done);
    assert!(!given.is_there(other).await);
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn what_was_removed_before_it_succeeded_is_bad(given: Given) {
    let other = given.enqueue("post", 1).await[0];
    let waiting = [
        put_after(&given, &[other], IfFailed::Cancel).await,
        put_after(&given, &[other], IfFailed::Run).await,
    ];
    given.cancel(other).await;
    assert_eq!(given.change(other, Change::Delete).await, ChangeOutcome::Done);
    given.tend().await;
    assert!(!given.is_there(other).await);
    assert_eq!(given.states(&waiting).await, [StateName::Cancelled, StateName::Queued]);
}

async fn the_first_accepted_of_several_that_ended_badly_is_named(given: Given) {
    let others = given.enqueue("post", 3).await;
    let job = put_after(&given, &[others[2], others[1], others[0]], IfFailed::Cancel).await;
    given.cancel(others[2]).await;
    given.cancel(others[1]).await;
    given.tend().await;
    let message = given.job(job).await.failure.expect("it says why").message;
    assert!(message.contains(&others[1].to_string()), "{message}");
}

async fn cancelling_goes_on_to_those_that_wait_for_the_cancelled_one_a_step_a_turn(given: Given) {
    let first = given.enqueue("post", 1).await[0];
    let mut chain = vec![first];
    for _ in 0..4 {
        chain.push(put_after(&given, &[*chain.last().unwrap()], IfFailed::Cancel).await);
    }
    let last = put_after(&given, &[chain[4]], IfFailed::Run).await;
    given.cancel(first).await;
    for step in 1..=4 {
        let tended = given.tend().await;
        assert_eq!((tended.due, tended.more), (1, true), "step {step}");
        let cancelled = given.count("mail", StateName::Cancelled).await;
        assert_eq!(cancelled, step);
    }
    assert_eq!(given.drain(&["mail"]).await, [[last]]);
}

async fn a_job_that_fails_for_good_by_lapsing_is_noticed(given: Given) {
    let other = given.put(given.with_attempts("post", 1)).await;
    let waiting = [
        put_after(&given, &[other], IfFailed::Cancel).await,
        put_after(&given, &[other], IfFailed::Run).await,
    ];
    given.take("post").await;
    given.pass(TTL);
    assert!(given.tend().await.more, "what the turn itself ended is for the next one");
    assert_eq!(given.states(&waiting).await, [StateName::Blocked; 2]);
    assert!(!given.tend().await.more);
    assert_eq!(given.states(&waiting).await, [StateName::Cancelled, StateName::Queued]);
}

async fn who_is_replaced_takes_those_along_that_wait_for_it(given: Given) {
    let first = given.put(given.only(1, Window::WhileUnfinished, OnConflict::Return)).await;
    let waiting = [
        put_after(&given, &[first], IfFailed::Cancel).await,
        put_after(&given, &[first], IfFailed::Run).await,
    ];
    let replacing = given.only(1, Window::WhileUnfinished, OnConflict::Replace);
    let id = replacing.id;
    assert_eq!(given.offer(replacing).await, Accepted::Replaced { id, old: first });
    given.tend().await;
    assert_eq!(given.states(&waiting).await, [StateName::Cancelled, StateName::Queued]);

    // One that waits is replaced like any other that has not begun.
    let chained = given.only(2, Window::WhileUnfinished, OnConflict::Replace);
    let terms = Terms { after: after(&[id], IfFailed::Cancel).after, ..chained.terms.as_ref().clone() };
    let chained = given.put(NewJob { terms: std::sync::Arc::new(terms), ..chained }).await;
    assert_eq!(given.state(chained).await, StateName::Blocked);
    let next = given.only(2, Window::WhileUnfinished, OnConflict::Replace);
    let id = next.id;
    assert_eq!(given.offer(next).await, Accepted::Replaced { id, old: chained });
    assert_eq!(given.states(&[chained, id]).await, [StateName::Cancelled, StateName::Queued]);
}

async fn a_job_that_will_be_cancelled_is_explained_by_the_one_that_spoils_it(given: Given) {
    given.serve(&["mail"]).await;
    let others = given.enqueue("post", 2).await;
    let job = put_after(&given, &others, IfFailed::Cancel).await;
    given.cancel(others[1]).await;
    assert_eq!(given.why(job).await, Reason::Spoiled { job: others[1] });
    given.change(others[0], Change::Delete).await;
    assert_eq!(given.why(job).await, Reason::Spoiled { job: others[0] });
    given.tend().await;
    assert!(matches!(given.why(job).await, Reason::Finished { .. }));
}
