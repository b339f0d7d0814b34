//! What enqueueing promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::{
    Args, Due, Head, JobId, Keep, Name, NewJob, Retention, RetryPolicy, StateName, Terms, Timestamp, limits,
};

use super::given::{Given, ids, ids_of, kind, minutes, priority, seconds};
use super::keyed::{limited, ordered, shared};
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Refusal};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(an_accepted_job_is_kept_as_it_was_given),
        test(arguments_are_kept_byte_for_byte_up_to_the_limit),
        test(accepted_jobs_are_numbered_in_the_order_of_acceptance),
        test(a_number_is_not_used_again_after_the_last_job_was_deleted),
        test(a_batch_is_answered_job_by_job_in_order),
        test(an_empty_batch_is_stored_as_nothing),
        test(the_same_job_enqueued_again_is_stored_once),
        test(a_repetition_changes_nothing_of_the_job_that_is_there),
        test(a_repetition_is_known_while_the_job_runs_and_after_its_end),
        test(a_repetition_within_one_batch_is_stored_once),
        test(an_id_of_another_job_is_refused),
        test(an_id_taken_earlier_in_the_same_batch_is_refused),
        test(a_refused_batch_leaves_nothing_behind),
        test(a_refused_batch_leaves_no_place_in_line_of_a_job_with_keys),
        test(a_refusal_names_the_first_job_that_is_refused),
        test(a_refused_batch_can_be_enqueued_once_its_cause_is_gone),
        test(a_delay_counts_from_the_clock_of_the_store),
        test(an_instant_long_past_or_far_ahead_is_kept_exactly),
        test(the_id_of_a_deleted_job_is_free),
        test(a_large_batch_is_stored_in_its_order),
        test(of_many_jobs_alike_only_the_new_ones_are_stored),
    ]
}

fn full_terms() -> Terms {
    Terms {
        attempts: Some(7),
        retry: Some(RetryPolicy { max_attempts: 3, ..RetryPolicy::default() }),
        timeout: Some(minutes(5)),
        retention: Retention { succeeded: Keep::Forever, failed: Keep::For(seconds(7)) },
        tags: vec![Name::new("tag", "billing").unwrap(), Name::new("tag", "eu").unwrap()],
        meta: BTreeMap::from([("trace".to_owned(), "ø \" ' \\ ; --".to_owned())]),
        ..Terms::default()
    }
}

async fn an_accepted_job_is_kept_as_it_was_given(given: Given) {
    let plain = given.new_job("mail");
    let full = NewJob {
        kind: kind("Mail.Send:v2"),
        priority: priority(-7),
        due: Due::In(minutes(90)),
        ..given.on_terms("mail.out", full_terms())
    };
    given.enqueue_all(vec![plain.clone(), full.clone()]).await;
    assert_eq!(given.job(plain.id).await, plain.accepted(1, given.now()));
    assert_eq!(given.job(full.id).await, full.accepted(2, given.now()));
}

async fn arguments_are_kept_byte_for_byte_up_to_the_limit(given: Given) {
    // The second is no JSON at all: a store keeps bytes and leaves reading them to others.
    let odd = Args::new(*b" { \"a\" : 1.0e3,\t\"\\u00f8\":\"\\u0000\" }\n").unwrap();
    let bytes = Args::stored(b"\x00\xff\"\n");
    let empty = Args::new(*b"").unwrap();
    let large = Args::new([vec![b' '; limits::ARGS_BYTES - 1], vec![b'7']].concat()).unwrap();
    for args in [odd, bytes, empty, large] {
        let id = given.put(NewJob { args: args.clone(), ..given.new_job("mail") }).await;
        assert!(given.job(id).await.args == args, "{} bytes", args.as_bytes().len());
        assert!(given.take("mail").await.job().args == args, "{} bytes", args.as_bytes().len());
    }
}

async fn accepted_jobs_are_numbered_in_the_order_of_acceptance(given: Given) {
    let mut accepted = given.enqueue("mail", 3).await;
    let repeated = given.new_job("mail");
    accepted.push(given.put(repeated.clone()).await);
    given.offer(repeated).await;
    accepted.extend(given.enqueue("post", 2).await);
    let mut numbers = Vec::new();
    for id in accepted {
        numbers.push(given.job(id).await.seq);
    }
    // Which numbers they are is the store's own affair.
    assert!(numbers[0] > 0 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

async fn a_number_is_not_used_again_after_the_last_job_was_deleted(given: Given) {
    let last = given.enqueue("mail", 3).await[2];
    let number = given.job(last).await.seq;
    assert_eq!(given.change(last, Change::Delete).await, ChangeOutcome::Done);
    let next = given.put(given.new_job("mail")).await;
    assert!(given.job(next).await.seq > number);
}

async fn a_batch_is_answered_job_by_job_in_order(given: Given) {
    let old = given.new_job("mail");
    given.put(old.clone()).await;
    let batch = vec![given.new_job("mail"), old.clone(), given.new_job("post")];
    let (first, last) = (batch[0].id, batch[2].id);
    let answers = vec![Accepted::New(first), Accepted::Repeated(old.id), Accepted::New(last)];
    assert_eq!(given.enqueue_all(batch).await, Enqueued::Stored(answers));
    assert_eq!(ids_of(&given.all().await), [old.id, first, last]);
}

async fn an_empty_batch_is_stored_as_nothing(given: Given) {
    assert_eq!(given.enqueue_all(vec![]).await, Enqueued::Stored(vec![]));
    assert_eq!(given.all().await, []);
}

/// T131
async fn the_same_job_enqueued_again_is_stored_once(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    assert_eq!(given.offer(job.clone()).await, Accepted::Repeated(job.id));
    assert_eq!(ids_of(&given.all().await), [job.id]);
}

async fn a_repetition_changes_nothing_of_the_job_that_is_there(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    let before = given.job(job.id).await;
    given.pass(minutes(1));
    let again =
        NewJob { priority: priority(9), due: Due::In(minutes(3)), terms: Arc::new(full_terms()), ..job };
    assert_eq!(given.offer(again).await, Accepted::Repeated(before.id));
    assert_eq!(given.job(before.id).await, before);
}

async fn a_repetition_is_known_while_the_job_runs_and_after_its_end(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    let reserved = given.take("mail").await;
    assert_eq!(given.offer(job.clone()).await, Accepted::Repeated(job.id));
    given.succeed(reserved).await;
    assert_eq!(given.offer(job.clone()).await, Accepted::Repeated(job.id));
    assert_eq!(given.all().await.len(), 1);
}

async fn a_repetition_within_one_batch_is_stored_once(given: Given) {
    let job = given.new_job("mail");
    let stored = given.enqueue_all(vec![job.clone(), job.clone()]).await;
    assert_eq!(stored, Enqueued::Stored(vec![Accepted::New(job.id), Accepted::Repeated(job.id)]));
    assert_eq!(given.all().await.len(), 1);
}

async fn an_id_of_another_job_is_refused(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    let before = given.job(job.id).await;
    let others = [
        NewJob { kind: kind("print"), ..job.clone() },
        NewJob { args: Args::new(*b"{\"to\":8}").unwrap(), ..job.clone() },
    ];
    for other in others {
        let refused = Enqueued::Refused { index: 0, refusal: Refusal::IdTaken(job.id) };
        assert_eq!(given.enqueue_all(vec![other]).await, refused);
    }
    assert_eq!(given.all().await, [before]);
}

async fn an_id_taken_earlier_in_the_same_batch_is_refused(given: Given) {
    let job = given.new_job("mail");
    let other = NewJob { kind: kind("print"), ..job.clone() };
    let refused = Enqueued::Refused { index: 1, refusal: Refusal::IdTaken(job.id) };
    assert_eq!(given.enqueue_all(vec![job, other]).await, refused);
    assert_eq!(given.all().await, []);
}

async fn a_refused_batch_leaves_nothing_behind(given: Given) {
    let old = given.new_job("mail");
    given.put(old.clone()).await;
    let (counts, queues) = (given.store.counts().await.unwrap(), given.store.queues().await.unwrap());
    let bad = NewJob { kind: kind("print"), ..old.clone() };
    let refused = given.enqueue_all(vec![given.new_job("post"), given.new_job("mail"), bad]).await;
    assert_eq!(refused, Enqueued::Refused { index: 2, refusal: Refusal::IdTaken(old.id) });
    assert_eq!(ids_of(&given.all().await), [old.id]);
    assert_eq!(given.store.counts().await.unwrap(), counts);
    assert_eq!(given.store.queues().await.unwrap(), queues, "a queue of a refused batch was never named");
    let next = given.put(given.new_job("mail")).await;
    assert_eq!(given.job(next).await.seq, 2, "only accepted jobs are numbered");
}

async fn a_refused_batch_leaves_no_place_in_line_of_a_job_with_keys(given: Given) {
    let old = given.put(given.new_job("post")).await;
    let bad = NewJob { id: old, ..given.of_kind("post", "print") };
    for terms in [ordered(Head::Block), limited(Some(1)), shared("acme")] {
        let batch = vec![given.on_terms("mail", terms), bad.clone()];
        let refused = Enqueued::Refused { index: 1, refusal: Refusal::IdTaken(old) };
        assert_eq!(given.enqueue_all(batch).await, refused);
        let next = given.put(given.new_job("mail")).await;
        assert_eq!(ids(&given.reserve("mail", 9).await), [next]);
    }
}

async fn a_refusal_names_the_first_job_that_is_refused(given: Given) {
    let olds = [given.new_job("mail"), given.new_job("mail")];
    given.enqueue_all(olds.to_vec()).await;
    let bad = olds.clone().map(|old| NewJob { kind: kind("print"), ..old });
    let batch = vec![given.new_job("mail"), bad[1].clone(), bad[0].clone()];
    let refused = Enqueued::Refused { index: 1, refusal: Refusal::IdTaken(olds[1].id) };
    assert_eq!(given.enqueue_all(batch).await, refused);
}

async fn a_refused_batch_can_be_enqueued_once_its_cause_is_gone(given: Given) {
    let old = given.new_job("mail");
    given.put(old.clone()).await;
    let batch = vec![given.new_job("mail"), NewJob { kind: kind("print"), ..old.clone() }];
    let Enqueued::Refused { .. } = given.enqueue_all(batch.clone()).await else {
        panic!("it was not refused")
    };
    given.change(old.id, Change::Delete).await;
    let both = vec![Accepted::New(batch[0].id), Accepted::New(old.id)];
    assert_eq!(given.enqueue_all(batch).await, Enqueued::Stored(both));
}

async fn a_delay_counts_from_the_clock_of_the_store(given: Given) {
    let job = given.due_in("mail", seconds(90));
    given.pass(minutes(5));
    let id = given.put(job).await;
    let stored = given.job(id).await;
    assert_eq!(stored.created, given.now());
    assert_eq!(stored.state.due(), Some(given.now().after(seconds(90))));
}

/// T102: far past and far future dates.
async fn an_instant_long_past_or_far_ahead_is_kept_exactly(given: Given) {
    let odd = Timestamp::from_micros(1_767_225_600_000_001).unwrap();
    for at in [Timestamp::EPOCH, odd, Timestamp::LAST] {
        let id = given.put(NewJob { due: Due::At(at), ..given.new_job("mail") }).await;
        assert_eq!(given.job(id).await.state.due(), Some(at));
    }
    assert_eq!(given.reserve("mail", 9).await.len(), 1, "only what is past is due");
}

async fn the_id_of_a_deleted_job_is_free(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    given.change(job.id, Change::Delete).await;
    let other = NewJob { kind: kind("print"), ..job };
    given.put(other.clone()).await;
    assert_eq!(given.job(other.id).await, other.accepted(2, given.now()));
}

async fn a_large_batch_is_stored_in_its_order(given: Given) {
    let ids = given.enqueue("mail", 2_500).await;
    assert_eq!(ids_of(&given.all().await), ids);
}

/// A store may write many jobs with one statement.
async fn of_many_jobs_alike_only_the_new_ones_are_stored(given: Given) {
    given.enqueue("mail", 1).await;
    let batch: Vec<NewJob> = (0..35).map(|_| given.new_job("mail")).collect();
    let old = [12, 13, 29].map(|index: usize| batch[index].clone());
    for job in &old {
        given.put(job.clone()).await;
    }
    let answer = |job: &NewJob| match old.iter().any(|old| old.id == job.id) {
        true => Accepted::Repeated(job.id),
        false => Accepted::New(job.id),
    };
    let expected = Enqueued::Stored(batch.iter().map(answer).collect());
    assert_eq!(given.enqueue_all(batch.clone()).await, expected);
    let new = batch.iter().map(|job| job.id).filter(|id| !old.iter().any(|old| old.id == *id));
    let stored: Vec<JobId> = old.iter().map(|job| job.id).chain(new).collect();
    assert_eq!(ids_of(&given.all().await)[1..], stored);
    assert_eq!(given.count("mail", StateName::Queued).await, 36);
    assert_eq!(ids(&given.reserve("mail", 99).await)[1..], stored);
}
