//! What unique keys promise.

use std::sync::Arc;

use tenure_core::{
    Cause, End, Failure, Keep, NewJob, OnConflict, Retention, State, StateName, Terms, Unique, Window,
};

use super::given::{Given, TTL, cancel_within, failed, ids, ids_of, minutes, retry, seconds};
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Refusal, Settled};

const HOUR: Window = Window::For(minutes(60));
const WHILE: Window = Window::WhileUnfinished;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_second_job_with_a_held_key_meets_its_holder_and_is_not_stored),
        test(a_rejecting_job_refuses_its_whole_batch_and_names_the_holder),
        test(a_replacing_job_cancels_a_waiting_holder_and_takes_its_key),
        test(a_replacing_job_meets_a_running_holder),
        test(a_replacing_job_meets_a_finished_holder),
        test(a_replacement_in_a_refused_batch_is_undone),
        test(the_second_job_decides_what_a_conflict_comes_to),
        test(different_keys_and_no_key_do_not_conflict),
        test(a_key_goes_across_queues_and_kinds),
        test(a_later_job_of_a_batch_meets_the_key_of_an_earlier_one),
        test(of_a_batch_of_replacing_jobs_the_last_one_stays),
        test(a_repetition_is_no_conflict_with_itself),
        test(a_key_while_unfinished_is_held_through_attempts),
        test(a_key_while_unfinished_is_freed_by_every_end),
        test(a_key_while_unfinished_is_freed_when_silence_ends_its_job),
        test(a_key_for_a_time_is_held_after_the_end_of_its_job),
        test(a_key_for_a_time_is_free_at_its_instant),
        test(a_key_for_a_time_is_free_at_its_instant_even_if_its_job_waits),
        test(deleting_a_job_frees_its_key),
        test(the_end_of_an_earlier_holder_leaves_the_key_to_the_present_one),
        test(deleting_an_earlier_holder_leaves_the_key_to_the_present_one),
        test(a_key_for_a_time_outlives_the_pruning_of_its_job),
        test(a_key_for_a_time_whose_job_was_pruned_is_free_at_its_instant),
    ]
}

fn key_held(by: tenure_core::JobId) -> Enqueued {
    Enqueued::Refused { index: 0, refusal: Refusal::KeyHeld(by) }
}

async fn a_second_job_with_a_held_key_meets_its_holder_and_is_not_stored(given: Given) {
    let first = given.put(given.only(1, WHILE, OnConflict::Return)).await;
    let second = given.only(1, WHILE, OnConflict::Return);
    assert_eq!(given.offer(second.clone()).await, Accepted::Existing(first));
    assert!(!given.is_there(second.id).await);
    assert_eq!(ids_of(&given.all().await), [first]);
}

async fn a_rejecting_job_refuses_its_whole_batch_and_names_the_holder(given: Given) {
    let first = given.put(given.only(1, WHILE, OnConflict::Return)).await;
    let batch = vec![given.new_job("mail"), given.only(1, WHILE, OnConflict::Reject)];
    let refused = Enqueued::Refused { index: 1, refusal: Refusal::KeyHeld(first) };
    assert_eq!(given.enqueue_all(batch).await, refused);
    assert_eq!(ids_of(&given.all().await), [first]);
}

async fn a_replacing_job_cancels_a_waiting_holder_and_takes_its_key(given: Given) {
    let old = given.put(given.only(1, WHILE, OnConflict::Return)).await;
    given.pass(seconds(1));
    let new = given.only(1, WHILE, OnConflict::Replace);
    assert_eq!(given.offer(new.clone()).await, Accepted::Replaced { id: new.id, old });
    let cancelled = given.job(old).await;
    assert_eq!(cancelled.state, State::Finished { at: given.now(), end: End::Cancelled });
    let reason = format!("replaced by job {}", new.id);
    assert_eq!(cancelled.failure, Some(Failure::new(Cause::Cancelled, &reason)));
    assert_eq!(given.job(new.id).await, new.accepted(2, given.now()));
    let third = given.only(1, WHILE, OnConflict::Return);
    assert_eq!(given.offer(third).await, Accepted::Existing(new.id));
}

async fn a_replacing_job_meets_a_running_holder(given: Given) {
    let old = given.put(given.only(1, WHILE, OnConflict::Return)).await;
    let reserved = given.take("mail").await;
    let new = given.only(1, WHILE, OnConflict::Replace);
    assert_eq!(given.offer(new.clone()).await, Accepted::Existing(old));
    assert!(!given.is_there(new.id).await);
    assert_eq!(given.job(old).await, *reserved.job());
}

async fn a_replacing_job_meets_a_finished_holder(given: Given) {
    let old = given.put(given.only(1, HOUR, OnConflict::Return)).await;
    given.succeed(given.take("mail").await).await;
    let before = given.job(old).await;
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Replace)).await, Accepted::Existing(old));
    assert_eq!(given.all().await, [before]);
}

async fn a_replacement_in_a_refused_batch_is_undone(given: Given) {
    let olds = [1, 2].map(|key| given.only(key, WHILE, OnConflict::Return));
    given.enqueue_all(olds.to_vec()).await;
    let before = given.all().await;
    let batch = vec![given.only(1, WHILE, OnConflict::Replace), given.only(2, WHILE, OnConflict::Reject)];
    let refused = Enqueued::Refused { index: 1, refusal: Refusal::KeyHeld(olds[1].id) };
    assert_eq!(given.enqueue_all(batch).await, refused);
    assert_eq!(given.all().await, before);
    assert_eq!(given.count("mail", StateName::Cancelled).await, 0);
    assert_eq!(given.enqueue_all(vec![given.only(1, WHILE, OnConflict::Reject)]).await, key_held(olds[0].id));
}

async fn the_second_job_decides_what_a_conflict_comes_to(given: Given) {
    let first = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Return)).await, Accepted::Existing(first));
    assert_eq!(given.enqueue_all(vec![given.only(1, HOUR, OnConflict::Reject)]).await, key_held(first));
}

async fn different_keys_and_no_key_do_not_conflict(given: Given) {
    for key in 1..4 {
        given.put(given.only(key, WHILE, OnConflict::Reject)).await;
    }
    given.enqueue("mail", 2).await;
    assert_eq!(given.all().await.len(), 5);
}

async fn a_key_goes_across_queues_and_kinds(given: Given) {
    let first = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    let terms = given.only(1, WHILE, OnConflict::Return).terms;
    let elsewhere = NewJob { terms, ..given.of_kind("post", "print") };
    assert_eq!(given.offer(elsewhere).await, Accepted::Existing(first));
}

async fn a_later_job_of_a_batch_meets_the_key_of_an_earlier_one(given: Given) {
    let batch = vec![given.only(1, WHILE, OnConflict::Return), given.only(1, WHILE, OnConflict::Return)];
    let first = batch[0].id;
    let answers = vec![Accepted::New(first), Accepted::Existing(first)];
    assert_eq!(given.enqueue_all(batch).await, Enqueued::Stored(answers));
    assert_eq!(given.all().await.len(), 1);
}

async fn of_a_batch_of_replacing_jobs_the_last_one_stays(given: Given) {
    let batch: Vec<NewJob> = (0..3).map(|_| given.only(1, WHILE, OnConflict::Replace)).collect();
    let [a, b, c] = [batch[0].id, batch[1].id, batch[2].id];
    let answers =
        vec![Accepted::New(a), Accepted::Replaced { id: b, old: a }, Accepted::Replaced { id: c, old: b }];
    assert_eq!(given.enqueue_all(batch).await, Enqueued::Stored(answers));
    assert_eq!(given.state(a).await, StateName::Cancelled);
    assert_eq!(given.state(b).await, StateName::Cancelled);
    assert_eq!(given.state(c).await, StateName::Queued);
    assert_eq!(ids(&given.reserve("mail", 9).await), [c]);
}

async fn a_repetition_is_no_conflict_with_itself(given: Given) {
    for (key, conflict) in [(1, OnConflict::Return), (2, OnConflict::Reject), (3, OnConflict::Replace)] {
        let job = given.only(key, WHILE, conflict);
        given.put(job.clone()).await;
        assert_eq!(given.offer(job.clone()).await, Accepted::Repeated(job.id), "{conflict:?}");
    }
}

async fn a_key_while_unfinished_is_held_through_attempts(given: Given) {
    let first = given.put(given.only(1, WHILE, OnConflict::Return)).await;
    let rejected = || given.enqueue_all(vec![given.only(1, WHILE, OnConflict::Reject)]);
    let reserved = given.take("mail").await;
    assert_eq!(rejected().await, key_held(first), "it runs");
    given.settle(reserved, retry()).await;
    assert_eq!(rejected().await, key_held(first), "it waits for another attempt");
    given.pass(minutes(60));
    given.take("mail").await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(rejected().await, key_held(first), "its holder fell silent");
}

async fn a_key_while_unfinished_is_freed_by_every_end(given: Given) {
    let again = || given.put(given.only(1, WHILE, OnConflict::Reject));
    again().await;
    given.succeed(given.take("mail").await).await;
    again().await;
    given.fail(given.take("mail").await).await;
    let waiting = again().await;
    assert_eq!(given.cancel(waiting).await, ChangeOutcome::Done);
    let running = again().await;
    let reserved = given.take("mail").await;
    given.cancel(running).await;
    assert_eq!(given.settle(reserved, retry()).await, Settled::Done(StateName::Cancelled));
    again().await;
}

async fn a_key_while_unfinished_is_freed_when_silence_ends_its_job(given: Given) {
    let unique = given.only(1, WHILE, OnConflict::Reject).terms.unique;
    let once = given.with_attempts("mail", 1).terms.retry.clone();
    let job = given.put(given.on_terms("mail", Terms { unique, retry: once, ..Terms::default() })).await;
    given.take("mail").await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(given.state(job).await, StateName::Failed);
    let deaf = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    given.take("mail").await;
    given.change(deaf, cancel_within(seconds(5))).await;
    given.pass(seconds(5));
    given.tend().await;
    given.put(given.only(1, WHILE, OnConflict::Reject)).await;
}

async fn a_key_for_a_time_is_held_after_the_end_of_its_job(given: Given) {
    let first = given.put(given.only(1, HOUR, OnConflict::Return)).await;
    given.succeed(given.take("mail").await).await;
    given.pass(minutes(60) - seconds(1));
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Return)).await, Accepted::Existing(first));
}

async fn a_key_for_a_time_is_free_at_its_instant(given: Given) {
    given.put(given.only(1, HOUR, OnConflict::Return)).await;
    given.settle(given.take("mail").await, failed()).await;
    given.pass(minutes(60));
    given.put(given.only(1, HOUR, OnConflict::Reject)).await;
}

async fn a_key_for_a_time_is_free_at_its_instant_even_if_its_job_waits(given: Given) {
    let old = given.put(given.only(1, HOUR, OnConflict::Return)).await;
    given.pass(minutes(60));
    let new = given.put(given.only(1, HOUR, OnConflict::Replace)).await;
    assert_eq!(given.state(old).await, StateName::Queued, "what lost its key is left alone");
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Return)).await, Accepted::Existing(new));
}

async fn deleting_a_job_frees_its_key(given: Given) {
    let waiting = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    given.change(waiting, Change::Delete).await;
    given.put(given.only(1, HOUR, OnConflict::Reject)).await;
    let reserved = given.take("mail").await;
    let finished = reserved.job().id;
    given.succeed(reserved).await;
    given.change(finished, Change::Delete).await;
    given.put(given.only(1, HOUR, OnConflict::Reject)).await;
}

async fn the_end_of_an_earlier_holder_leaves_the_key_to_the_present_one(given: Given) {
    let old = given.put(given.only(1, Window::For(seconds(1)), OnConflict::Reject)).await;
    given.pass(seconds(1));
    let new = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    let reserved = given.take("mail").await;
    assert_eq!(reserved.job().id, old);
    given.succeed(reserved).await;
    assert_eq!(given.enqueue_all(vec![given.only(1, WHILE, OnConflict::Reject)]).await, key_held(new));
}

async fn deleting_an_earlier_holder_leaves_the_key_to_the_present_one(given: Given) {
    let old = given.put(given.only(1, Window::For(seconds(1)), OnConflict::Reject)).await;
    given.pass(seconds(1));
    let new = given.put(given.only(1, WHILE, OnConflict::Reject)).await;
    assert_eq!(given.change(old, Change::Delete).await, ChangeOutcome::Done);
    assert_eq!(given.enqueue_all(vec![given.only(1, WHILE, OnConflict::Reject)]).await, key_held(new));
}

fn gone_at_once(given: &Given) -> NewJob {
    let job = given.only(1, HOUR, OnConflict::Reject);
    let unique: Option<Unique> = job.terms.unique;
    let retention = Retention::always(Keep::For(seconds(0)));
    NewJob { terms: Arc::new(Terms { unique, retention, ..Terms::default() }), ..job }
}

async fn a_key_for_a_time_outlives_the_pruning_of_its_job(given: Given) {
    let old = given.put(gone_at_once(&given)).await;
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.tend().await.pruned, 1);
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Return)).await, Accepted::Existing(old));
    assert_eq!(given.offer(given.only(1, HOUR, OnConflict::Replace)).await, Accepted::Existing(old));
}

async fn a_key_for_a_time_whose_job_was_pruned_is_free_at_its_instant(given: Given) {
    given.put(gone_at_once(&given)).await;
    given.succeed(given.take("mail").await).await;
    given.tend().await;
    given.pass(minutes(60));
    given.put(given.only(1, HOUR, OnConflict::Reject)).await;
}
