//! What waiting for other jobs promises.

use std::time::Duration;

use tenure_core::{
    Due, IfFailed, JobId, Keep, NewJob, OnConflict, Reason, Retention, StateName, Terms, Verdict, Window,
    limits,
};

use super::given::{Given, TTL, cancel_within, failed, ids, minutes, priority, queue, retry, seconds, want};
use super::keyed::after;
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Refusal, Tended};

const BOTH: [IfFailed; 2] = [IfFailed::Cancel, IfFailed::Run];

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_runs_after_all_that_it_waits_for_have_ended),
        test(an_end_is_noticed_by_the_next_turn_whatever_that_asks_for),
        test(an_end_is_noticed_by_tending),
        test(a_job_that_ended_before_is_not_waited_for),
        test(jobs_of_one_batch_wait_for_earlier_ones),
        test(a_job_that_waits_for_nothing_that_is_there_is_refused_and_its_batch_with_it),
        test(a_job_waits_for_no_later_one_and_not_for_itself),
        test(ids_and_unique_keys_are_looked_at_before_what_a_job_waits_for),
        test(a_retry_is_no_end),
        test(one_that_is_done_again_before_anybody_noticed_is_waited_for_again),
        test(one_that_is_done_again_later_is_not),
        test(a_job_that_is_done_again_does_not_wait_again),
        test(a_new_job_with_the_id_of_a_deleted_one_is_another),
        test(a_job_waits_for_its_time_as_well),
        test(a_job_that_waits_can_be_changed_and_waits_on),
        test(a_job_that_waits_can_be_cancelled_and_deleted),
        test(a_long_chain_runs_in_order),
        test(many_that_wait_for_one_are_let_go_in_bounded_steps),
        test(one_job_waits_for_as_many_as_may_be_named),
        test(a_job_named_twice_is_waited_for_once),
        test(while_an_end_is_unnoticed_something_is_due),
        test(waiting_for_other_jobs_spends_no_attempt),
        test(waiting_for_other_jobs_is_explained_by_them),
    ]
}

pub(super) async fn put_after(given: &Given, jobs: &[JobId], if_failed: IfFailed) -> JobId {
    given.put(given.on_terms("mail", after(jobs, if_failed))).await
}

async fn a_job_runs_after_all_that_it_waits_for_have_ended(given: Given) {
    let others = given.enqueue("post", 2).await;
    let job = put_after(&given, &others, IfFailed::Cancel).await;
    assert_eq!(given.state(job).await, StateName::Blocked);
    for _ in 0..2 {
        assert_eq!(given.grab(&["mail"]).await, []);
        given.succeed(given.take("post").await).await;
    }
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn an_end_is_noticed_by_the_next_turn_whatever_that_asks_for(given: Given) {
    let other = given.enqueue("post", 1).await;
    let job = put_after(&given, &other, IfFailed::Cancel).await;
    given.succeed(given.take("post").await).await;
    assert_eq!(given.state(job).await, StateName::Blocked, "nobody has looked");
    given.reserve("fax", 1).await;
    assert_eq!(given.state(job).await, StateName::Queued);

    let other = given.enqueue("post", 1).await;
    let next = put_after(&given, &other, IfFailed::Cancel).await;
    let ended = super::given::decide(given.take("post").await, Verdict::Succeeded(None));
    let then = given.ask(vec![want("mail", 9)], 9);
    let turn = given.store.settle(vec![ended], Some(then)).await.unwrap();
    assert_eq!(ids(&turn.reservation.jobs), [job, next], "in the very round trip that settles");
}

async fn an_end_is_noticed_by_tending(given: Given) {
    let others = given.enqueue("post", 2).await;
    let job = put_after(&given, &others, IfFailed::Cancel).await;
    given.succeed(given.take("post").await).await;
    assert_eq!(given.tend().await, Tended::default(), "there is another to wait for");
    given.succeed(given.take("post").await).await;
    assert_eq!(given.tend().await, Tended { due: 1, ..Tended::default() });
    assert_eq!(given.state(job).await, StateName::Queued);
    assert_eq!(given.tend().await, Tended::default());
}

async fn a_job_that_ended_before_is_not_waited_for(given: Given) {
    let ended = given.succeeded().await;
    let job = put_after(&given, &[ended], IfFailed::Cancel).await;
    assert_eq!(given.state(job).await, StateName::Queued);
    given.fail(given.take("mail").await).await;
    let job = put_after(&given, &[ended, job], IfFailed::Run).await;
    assert_eq!(given.state(job).await, StateName::Queued);
}

async fn jobs_of_one_batch_wait_for_earlier_ones(given: Given) {
    let first = given.new_job("mail");
    let second = given.on_terms("mail", after(&[first.id], IfFailed::Cancel));
    let third = given.on_terms("mail", after(&[second.id, first.id], IfFailed::Cancel));
    let order = [first.id, second.id, third.id].map(|id| [id]);
    given.enqueue_all(vec![first, second, third]).await;
    assert_eq!(given.drain(&["mail"]).await, order);
}

async fn a_job_that_waits_for_nothing_that_is_there_is_refused_and_its_batch_with_it(given: Given) {
    let (known, unknown, unheard) = (given.enqueue("post", 1).await[0], given.id(), given.id());
    let batch = vec![
        given.new_job("mail"),
        given.on_terms("mail", after(&[known, unknown, unheard], IfFailed::Run)),
        given.new_job("mail"),
    ];
    let refusal = Refusal::NoSuchJob(unknown);
    assert_eq!(given.enqueue_all(batch.clone()).await, Enqueued::Refused { index: 1, refusal });
    assert_eq!(given.all().await.len(), 1);
    assert_eq!(given.count("mail", StateName::Queued).await, 0);
    let mended = vec![batch[0].clone(), given.on_terms("mail", after(&[known], IfFailed::Run))];
    assert!(
        matches!(given.enqueue_all(mended).await, Enqueued::Stored(_)),
        "nothing was kept of the refused"
    );
}

async fn a_job_waits_for_no_later_one_and_not_for_itself(given: Given) {
    let later = given.new_job("mail");
    let early = given.on_terms("mail", after(&[later.id], IfFailed::Run));
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::NoSuchJob(later.id) };
    assert_eq!(given.enqueue_all(vec![early, later]).await, refused);
    let mut narcissus = given.new_job("mail");
    narcissus.terms = std::sync::Arc::new(after(&[narcissus.id], IfFailed::Run));
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::NoSuchJob(narcissus.id) };
    assert_eq!(given.enqueue_all(vec![narcissus]).await, refused);
}

async fn ids_and_unique_keys_are_looked_at_before_what_a_job_waits_for(given: Given) {
    let nobody = given.id();
    let lost = |job: NewJob| {
        let terms = Terms { after: after(&[nobody], IfFailed::Run).after, ..job.terms.as_ref().clone() };
        NewJob { terms: std::sync::Arc::new(terms), ..job }
    };
    let first = given.only(1, Window::WhileUnfinished, OnConflict::Return);
    let id = given.put(first.clone()).await;
    assert_eq!(given.offer(lost(first)).await, Accepted::Repeated(id));
    let other = given.only(1, Window::WhileUnfinished, OnConflict::Return);
    assert_eq!(given.offer(lost(other.clone())).await, Accepted::Existing(id));
    let held = given.only(1, Window::WhileUnfinished, OnConflict::Reject);
    let refusal = Refusal::KeyHeld(id);
    assert_eq!(given.enqueue_all(vec![lost(held)]).await, Enqueued::Refused { index: 0, refusal });
    let replacing = given.only(1, Window::WhileUnfinished, OnConflict::Replace);
    let refusal = Refusal::NoSuchJob(nobody);
    assert_eq!(given.enqueue_all(vec![lost(replacing)]).await, Enqueued::Refused { index: 0, refusal });
    assert_eq!(given.state(id).await, StateName::Queued, "it was not replaced");
    let behind = given.on_terms("mail", after(&[other.id], IfFailed::Run));
    let refusal = Refusal::NoSuchJob(other.id);
    let answer = given.enqueue_all(vec![other, behind]).await;
    assert_eq!(
        answer,
        Enqueued::Refused { index: 1, refusal },
        "one that is there under another id is not there"
    );
}

async fn a_retry_is_no_end(given: Given) {
    let other = given.put(given.with_attempts("post", 2)).await;
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.settle(given.take("post").await, retry()).await;
    given.tend().await;
    assert_eq!(given.state(job).await, StateName::Blocked);
    given.pass(minutes(1));
    given.settle(given.take("post").await, retry()).await;
    given.tend().await;
    assert_eq!(given.state(job).await, StateName::Cancelled);
}

async fn one_that_is_done_again_before_anybody_noticed_is_waited_for_again(given: Given) {
    for verdict in [Verdict::Succeeded(None), failed()] {
        let other = given.enqueue("post", 1).await[0];
        let job = put_after(&given, &[other], IfFailed::Cancel).await;
        given.settle(given.take("post").await, verdict).await;
        given.change(other, Change::Redo).await;
        given.tend().await;
        assert_eq!(given.state(job).await, StateName::Blocked);
        assert_eq!(given.drain(&["post", "mail"]).await, [[other], [job]]);
    }
}

async fn one_that_is_done_again_later_is_not(given: Given) {
    let other = given.enqueue("post", 1).await[0];
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.succeed(given.take("post").await).await;
    given.tend().await;
    given.change(other, Change::Redo).await;
    assert_eq!(given.state(job).await, StateName::Queued, "what succeeded once has succeeded");
    given.fail(given.take("post").await).await;
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn a_job_that_is_done_again_does_not_wait_again(given: Given) {
    let other = given.enqueue("post", 1).await[0];
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.cancel(job).await;
    assert_eq!(given.change(job, Change::Redo).await, ChangeOutcome::Done);
    assert_eq!(given.state(job).await, StateName::Queued);
    given.cancel(other).await;
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn a_new_job_with_the_id_of_a_deleted_one_is_another(given: Given) {
    let other = given.new_job("post");
    given.put(other.clone()).await;
    let job = put_after(&given, &[other.id], IfFailed::Cancel).await;
    given.change(other.id, Change::Delete).await;
    given.put(other.clone()).await;
    let next = put_after(&given, &[other.id], IfFailed::Cancel).await;
    given.tend().await;
    assert_eq!(given.states(&[job, next]).await, [StateName::Cancelled, StateName::Blocked]);
    assert_eq!(given.drain(&["post", "mail"]).await, [[other.id], [next]]);
}

async fn a_job_waits_for_its_time_as_well(given: Given) {
    let other = given.enqueue("post", 1).await;
    let later =
        NewJob { due: Due::In(minutes(1)), ..given.on_terms("mail", after(&other, IfFailed::Cancel)) };
    let later = given.put(later).await;
    let early = put_after(&given, &other, IfFailed::Cancel).await;
    assert_eq!(given.states(&[later, early]).await, [StateName::Blocked; 2]);
    given.succeed(given.take("post").await).await;
    assert_eq!(given.drain(&["mail"]).await, [[early]]);
    assert_eq!(given.state(later).await, StateName::Scheduled);
    given.pass(minutes(1));
    assert_eq!(given.drain(&["mail"]).await, [[later]]);
}

async fn a_job_that_waits_can_be_changed_and_waits_on(given: Given) {
    let other = given.enqueue("post", 1).await;
    let job = put_after(&given, &other, IfFailed::Cancel).await;
    for change in [
        Change::Move(queue("fax")),
        Change::Reprioritise(priority(-9)),
        Change::Reschedule(Due::In(minutes(1))),
    ] {
        assert_eq!(given.change(job, change).await, ChangeOutcome::Done);
        assert_eq!(given.state(job).await, StateName::Blocked);
    }
    assert_eq!(given.job(job).await.state.due(), Some(given.now().after(minutes(1))));
    given.succeed(given.take("post").await).await;
    given.tend().await;
    assert_eq!(given.state(job).await, StateName::Scheduled);
    given.pass(minutes(1));
    assert_eq!(given.drain(&["fax"]).await, [[job]]);
}

async fn a_job_that_waits_can_be_cancelled_and_deleted(given: Given) {
    for (change, if_failed) in [(cancel_within(seconds(0)), BOTH[0]), (Change::Delete, BOTH[1])] {
        let other = given.enqueue("post", 1).await;
        let job = put_after(&given, &other, if_failed).await;
        let next = put_after(&given, &[job], IfFailed::Run).await;
        assert_eq!(given.change(job, change).await, ChangeOutcome::Done);
        given.succeed(given.take("post").await).await;
        assert_eq!(given.drain(&["mail"]).await, [[next]]);
        assert!(!given.tend().await.more);
    }
}

async fn a_long_chain_runs_in_order(given: Given) {
    let mut batch = vec![given.new_job("mail")];
    for _ in 0..300 {
        let last = batch.last().unwrap().id;
        batch.push(given.on_terms("mail", after(&[last], IfFailed::Cancel)));
    }
    let order: Vec<Vec<JobId>> = batch.iter().map(|job| vec![job.id]).collect();
    given.enqueue_all(batch).await;
    assert_eq!(given.drain(&["mail"]).await, order);
}

async fn many_that_wait_for_one_are_let_go_in_bounded_steps(given: Given) {
    let count = limits::SWEEP_ROWS + 10;
    let one = given.enqueue("post", 1).await;
    let batch: Vec<NewJob> =
        (0..count).map(|_| given.on_terms("mail", after(&one, IfFailed::Cancel))).collect();
    given.enqueue_all(batch).await;
    given.succeed(given.take("post").await).await;
    let first = given.tend().await;
    assert!(first.due <= limits::SWEEP_ROWS && first.due > 0 && first.more, "{first:?}");
    let mut due = first.due;
    for _ in 0..100 {
        let tended = given.tend().await;
        due += tended.due;
        if !tended.more {
            break;
        }
    }
    assert_eq!(due, count);
    assert_eq!(given.count("mail", StateName::Queued).await, count as u64);
}

async fn one_job_waits_for_as_many_as_may_be_named(given: Given) {
    let others = given.enqueue("post", limits::AFTER_JOBS).await;
    let job = put_after(&given, &others, IfFailed::Cancel).await;
    let mut granted = given.grab(&["post"]).await;
    let last = granted.pop().unwrap();
    let ended = granted.into_iter().map(|r| super::given::decide(r, Verdict::Succeeded(None))).collect();
    given.store.settle(ended, None).await.unwrap();
    while given.tend().await.more {}
    assert_eq!(given.state(job).await, StateName::Blocked);
    given.succeed(last).await;
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn a_job_named_twice_is_waited_for_once(given: Given) {
    let other = given.enqueue("post", 1).await[0];
    let job = put_after(&given, &[other, other], IfFailed::Cancel).await;
    given.serve(&["mail"]).await;
    assert_eq!(given.why(job).await, Reason::AfterJobs { jobs: vec![other] });
    given.succeed(given.take("post").await).await;
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn while_an_end_is_unnoticed_something_is_due(given: Given) {
    let other = given.put(given.with_attempts("post", 1)).await;
    let job = put_after(&given, &[other], IfFailed::Run).await;
    given.take("post").await;
    given.pass(TTL);
    let due_in = async || given.turn(given.ask(vec![want("fax", 1)], 1)).await.due_in;
    assert_eq!(due_in().await, Some(Duration::ZERO), "the turn ended what another waits for");
    assert_eq!(due_in().await, None, "that was noticed");
    assert_eq!(given.state(job).await, StateName::Queued);
}

/// T042, for jobs
async fn waiting_for_other_jobs_spends_no_attempt(given: Given) {
    let other = given.enqueue("post", 1).await;
    let terms = Terms {
        attempts: Some(1),
        retention: Retention::always(Keep::Forever),
        ..after(&other, IfFailed::Cancel)
    };
    let job = given.put(given.on_terms("mail", terms)).await;
    for _ in 0..10 {
        assert_eq!(given.grab(&["mail"]).await, []);
        given.pass(seconds(1));
        given.tend().await;
    }
    given.succeed(given.take("post").await).await;
    let reserved = given.take("mail").await;
    assert_eq!((reserved.job().id, reserved.job().attempt, reserved.job().delivery), (job, 1, 1));
}

async fn waiting_for_other_jobs_is_explained_by_them(given: Given) {
    given.serve(&["mail"]).await;
    let others = given.enqueue("post", 3).await;
    let job = put_after(&given, &[others[2], others[0], others[1]], IfFailed::Run).await;
    let waits_for = |jobs: &[JobId]| Reason::AfterJobs { jobs: jobs.to_vec() };
    assert_eq!(given.why(job).await, waits_for(&[others[2], others[0], others[1]]), "as it named them");
    given.fail(given.take("post").await).await;
    assert_eq!(given.why(job).await, waits_for(&[others[2], others[1]]), "noticed or not");
    given.cancel(others[1]).await;
    given.change(others[2], Change::Delete).await;
    assert_eq!(given.why(job).await, Reason::Next { ahead: 0 });
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert_eq!(given.why(job).await, Reason::QueuePaused { queue: queue("mail") });
}
