//! Promises about jobs that others depend on: they can be read until those have ended, however short their retention is.

use std::time::Duration;

use tenure_core::{IfFailed, JobId, Keep, Reason, Retention, Terms, Verdict, limits};
use tenure_store::{Change, Copied, Filter, Tended, copy};

use super::after::put_after;
use super::given::{Given, cancel_within, failed, minutes, output, queue, seconds};
use super::keyed::after;
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_and_its_output_are_kept_until_all_that_depend_on_it_have_ended),
        test(a_job_is_kept_for_one_that_was_enqueued_after_its_end),
        test(a_failed_job_is_kept_for_one_that_runs_anyway),
        test(a_job_is_kept_for_one_that_ended_and_is_done_again),
        test(a_job_that_is_done_again_is_kept_when_it_has_ended_again),
        test(a_job_is_kept_no_longer_for_one_that_was_cancelled_or_deleted),
        test(a_needed_job_is_kept_for_its_retention_again_and_then_looked_at),
        test(needed_jobs_keep_no_others_from_being_removed),
        test(a_needed_job_can_be_deleted),
        test(a_needed_job_is_explained_by_those_that_depend_on_it),
        test(a_copy_keeps_jobs_that_others_depend_on),
    ]
}

const DAY: Duration = minutes(24 * 60);

/// A job that succeeded with an output and is kept for this time.
async fn succeeded(given: &Given, keep: Duration) -> JobId {
    let id = given.put(given.kept("post", Keep::For(keep))).await;
    given.settle(given.take("post").await, Verdict::Succeeded(Some(output("7")))).await;
    id
}

/// Lets some time pass in which the store is tended; answers how many jobs were removed.
async fn pass_a_day(given: &Given) -> usize {
    let mut pruned = 0;
    for _ in 0..24 {
        given.pass(minutes(60));
        loop {
            let tended = given.tend().await;
            pruned += tended.pruned;
            if !tended.more {
                break;
            }
        }
    }
    pruned
}

async fn assert_has_output(given: &Given, id: JobId) {
    let output_of = given.job(id).await.output.map(|output| output.value);
    assert_eq!(output_of, Some(output("7").value));
}

async fn a_job_and_its_output_are_kept_until_all_that_depend_on_it_have_ended(given: Given) {
    let other = given.put(given.kept("post", Keep::For(seconds(0)))).await;
    for _ in 0..2 {
        put_after(&given, &[other], IfFailed::Cancel).await;
    }
    given.settle(given.take("post").await, Verdict::Succeeded(Some(output("7")))).await;
    assert_eq!(pass_a_day(&given).await, 0, "they wait");
    assert_has_output(&given, other).await;
    let (first, second) = (given.take("mail").await, given.take("mail").await);
    assert_has_output(&given, other).await;
    given.succeed(first).await;
    assert_eq!(given.tend().await.pruned, 0, "one of them runs");
    assert_has_output(&given, other).await;
    given.succeed(second).await;
    given.pass(limits::NEEDED_LEAST);
    assert_eq!(given.tend().await.pruned, 1);
    assert!(!given.is_there(other).await);
}

async fn a_job_is_kept_for_one_that_was_enqueued_after_its_end(given: Given) {
    let other = succeeded(&given, seconds(1)).await;
    put_after(&given, &[other], IfFailed::Cancel).await;
    assert_eq!(pass_a_day(&given).await, 0);
    assert_has_output(&given, other).await;
    given.succeed(given.take("mail").await).await;
    given.pass(limits::NEEDED_LEAST);
    assert_eq!(given.tend().await.pruned, 1);
}

async fn a_failed_job_is_kept_for_one_that_runs_anyway(given: Given) {
    let other = given.put(given.kept("post", Keep::For(seconds(0)))).await;
    put_after(&given, &[other], IfFailed::Run).await;
    given.settle(given.take("post").await, failed()).await;
    assert_eq!(pass_a_day(&given).await, 0);
    assert!(given.job(other).await.failure.is_some());
    given.succeed(given.take("mail").await).await;
    given.pass(limits::NEEDED_LEAST);
    assert_eq!(given.tend().await.pruned, 1);
}

async fn a_job_is_kept_for_one_that_ended_and_is_done_again(given: Given) {
    let other = succeeded(&given, minutes(1)).await;
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.fail(given.take("mail").await).await;
    given.change(job, Change::Redo).await;
    assert_eq!(pass_a_day(&given).await, 0);
    assert_has_output(&given, other).await;
    given.change(job, Change::Reschedule(tenure_core::Due::In(DAY))).await;
    assert_eq!(pass_a_day(&given).await, 0);
    assert_has_output(&given, other).await;
    given.succeed(given.take("mail").await).await;
    given.pass(limits::NEEDED_LEAST);
    assert_eq!(given.tend().await.pruned, 1);
}

async fn a_job_that_is_done_again_is_kept_when_it_has_ended_again(given: Given) {
    let other = succeeded(&given, seconds(0)).await;
    put_after(&given, &[other], IfFailed::Cancel).await;
    given.tend().await;
    given.change(other, Change::Redo).await;
    given.settle(given.take("post").await, Verdict::Succeeded(Some(output("7")))).await;
    assert_eq!(pass_a_day(&given).await, 0);
    assert_has_output(&given, other).await;
}

async fn a_job_is_kept_no_longer_for_one_that_was_cancelled_or_deleted(given: Given) {
    for change in [cancel_within(seconds(0)), Change::Delete] {
        let other = succeeded(&given, seconds(0)).await;
        let job = put_after(&given, &[other], IfFailed::Cancel).await;
        assert_eq!(given.tend().await.pruned, 0);
        given.change(job, change).await;
        given.pass(limits::NEEDED_LEAST);
        assert_eq!(given.tend().await.pruned, 1);
        assert!(!given.is_there(other).await);
    }
}

/// Not by each step of pruning.
async fn a_needed_job_is_kept_for_its_retention_again_and_then_looked_at(given: Given) {
    for (keep, again) in
        [(seconds(0), limits::NEEDED_LEAST), (minutes(7), minutes(7)), (DAY, limits::NEEDED_MOST)]
    {
        let other = succeeded(&given, keep).await;
        let retention = Retention::always(Keep::Forever);
        let terms = Terms { retention, ..after(&[other], IfFailed::Cancel) };
        given.put(given.on_terms("mail", terms)).await;
        given.pass(keep);
        assert_eq!(given.tend().await, Tended::default());
        assert_eq!(given.job(other).await.expires, Some(given.now().after(again)));
        given.succeed(given.take("mail").await).await;
        given.pass(again - seconds(1));
        assert_eq!(given.tend().await.pruned, 0);
        given.pass(seconds(1));
        assert_eq!(given.tend().await.pruned, 1);
        assert!(!given.is_there(other).await);
    }
}

async fn needed_jobs_keep_no_others_from_being_removed(given: Given) {
    let batch: Vec<_> = (0..=limits::PRUNE_JOBS).map(|_| given.kept("post", Keep::For(seconds(0)))).collect();
    let needed: Vec<JobId> = batch.iter().map(|job| job.id).collect();
    given.enqueue_all(batch).await;
    for some in needed.chunks(limits::AFTER_JOBS) {
        put_after(&given, some, IfFailed::Run).await;
    }
    let in_post = Filter { queues: vec![queue("post")], ..Filter::default() };
    given.change_matching(cancel_within(seconds(0)), in_post).await;
    given.pass(seconds(1));
    let last = succeeded(&given, seconds(0)).await;
    let mut pruned = 0;
    for _ in 0..100 {
        let tended = given.tend().await;
        pruned += tended.pruned;
        if !tended.more {
            break;
        }
    }
    assert_eq!(pruned, 1);
    assert!(!given.is_there(last).await);
    assert!(given.is_there(needed[0]).await);
}

async fn a_needed_job_can_be_deleted(given: Given) {
    let other = succeeded(&given, seconds(0)).await;
    let job = put_after(&given, &[other], IfFailed::Cancel).await;
    given.change(other, Change::Delete).await;
    assert!(!given.is_there(other).await);
    assert_eq!(given.drain(&["mail"]).await, [[job]]);
}

async fn a_needed_job_is_explained_by_those_that_depend_on_it(given: Given) {
    let other = given.put(given.new_job("post")).await;
    let (first, second) = (
        put_after(&given, &[other], IfFailed::Cancel).await,
        put_after(&given, &[other], IfFailed::Cancel).await,
    );
    given.succeed(given.take("post").await).await;
    let needed_by = async || {
        let Reason::Finished { needed_by, .. } = given.why(other).await else { panic!("it has ended") };
        needed_by
    };
    assert_eq!(needed_by().await, [first, second]);
    given.tend().await;
    given.succeed(given.take("mail").await).await;
    assert_eq!(needed_by().await, [second]);
    given.cancel(second).await;
    assert_eq!(needed_by().await, []);
}

async fn a_copy_keeps_jobs_that_others_depend_on(given: Given) {
    let (early, late) = (succeeded(&given, seconds(0)).await, succeeded(&given, seconds(0)).await);
    put_after(&given, &[early], IfFailed::Cancel).await;
    given.take("mail").await;
    put_after(&given, &[late], IfFailed::Cancel).await;
    let other = given.beside().await;
    let copied = copy(&*given.store, &*other.store, true, &mut |_, _| {}).await.unwrap();
    assert!(matches!(copied, Copied::Whole(_)), "{copied:?}");
    assert_eq!(pass_a_day(&other).await, 0);
    assert_has_output(&other, early).await;
    assert_has_output(&other, late).await;
    other.drain(&["mail"]).await;
    other.pass(limits::NEEDED_LEAST);
    assert_eq!(other.tend().await.pruned, 2);
    let _ = other.store.close().await;
}
