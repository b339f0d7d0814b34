//! What ordering keys promise.

use tenure_core::{Due, Head, JobId, NewJob, Reason, StateName, Terms, Verdict};

use super::given::{Given, cancel_within, failed, ids, minutes, priority, queue, seconds, trouble};
use super::keyed::{after, key, ordered};
use super::{Test, test};
use tenure_store::{Change, ChangeOutcome};

pub(super) const HEADS: [Head; 2] = [Head::Block, Head::StepAside];

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(jobs_of_one_key_run_one_at_a_time_in_the_order_of_their_acceptance),
        test(jobs_of_one_batch_run_in_its_order),
        test(jobs_of_other_keys_and_of_none_go_on),
        test(a_key_counts_across_queues_and_kinds),
        test(neither_priority_nor_due_time_changes_the_order),
        test(the_next_is_queued_at_once_when_the_one_before_it_ends_however_it_ends),
        test(of_those_that_come_due_the_first_due_takes_a_free_turn_and_then_the_first_accepted),
        test(a_turn_that_nobody_notices_is_taken_by_nobody),
        test(one_that_is_removed_from_the_middle_is_skipped),
        test(a_job_without_the_turn_can_be_changed_and_stays_blocked),
        test(a_job_done_again_comes_before_those_accepted_later_but_takes_the_turn_from_nobody),
        test(no_two_jobs_wait_for_each_other_for_ever),
        test(a_key_is_free_when_all_its_jobs_have_ended),
        test(waiting_for_the_turn_spends_no_attempt),
        test(waiting_for_the_turn_is_explained_by_whose_turn_it_is),
        test(blocked_jobs_are_counted_and_found_as_such),
    ]
}

/// Checks which of them are queued, in a word: `q`, `b`locked, `s`cheduled, `r`unning, or `.` if ended.
pub(super) async fn stand(given: &Given, ids: &[JobId]) -> String {
    let letter = |state| match state {
        StateName::Queued => 'q',
        StateName::Blocked => 'b',
        StateName::Scheduled => 's',
        StateName::Running => 'r',
        StateName::Succeeded | StateName::Failed | StateName::Cancelled => '.',
    };
    given.states(ids).await.into_iter().map(letter).collect()
}

async fn jobs_of_one_key_run_one_at_a_time_in_the_order_of_their_acceptance(given: Given) {
    for head in HEADS {
        let jobs = given.put_on("mail", &ordered(head), 4).await;
        assert_eq!(stand(&given, &jobs).await, "qbbb");
        let turns = given.drain(&["mail"]).await;
        assert_eq!(turns, jobs.iter().map(|id| vec![*id]).collect::<Vec<_>>());
    }
}

async fn jobs_of_one_batch_run_in_its_order(given: Given) {
    let batch: Vec<NewJob> = (0..50).map(|_| given.on_terms("mail", ordered(Head::Block))).collect();
    let order: Vec<Vec<JobId>> = batch.iter().map(|job| vec![job.id]).collect();
    given.enqueue_all(batch).await;
    assert_eq!(given.drain(&["mail"]).await, order);
}

async fn jobs_of_other_keys_and_of_none_go_on(given: Given) {
    let first = given.put_on("mail", &ordered(Head::Block), 2).await;
    let mut other = ordered(Head::Block);
    other.ordering.as_mut().unwrap().key = key("cart-8");
    let second = given.put_on("mail", &other, 2).await;
    let free = given.enqueue("mail", 2).await;
    assert_eq!(ids(&given.grab(&["mail"]).await), [first[0], second[0], free[0], free[1]]);
}

async fn a_key_counts_across_queues_and_kinds(given: Given) {
    let mut jobs = Vec::new();
    for (queue, kind) in [("mail", "send"), ("post", "send"), ("post", "print")] {
        jobs.push(given.put(given.keyed(queue, kind, ordered(Head::Block))).await);
    }
    assert_eq!(given.drain(&["post", "mail"]).await, [[jobs[0]], [jobs[1]], [jobs[2]]]);
}

async fn neither_priority_nor_due_time_changes_the_order(given: Given) {
    let last = NewJob { priority: priority(9), ..given.on_terms("mail", ordered(Head::Block)) };
    let past = Due::At(given.now().before(minutes(5)));
    let urgent = NewJob { priority: priority(-9), due: past, ..given.on_terms("mail", ordered(Head::Block)) };
    let order = [[given.put(last).await], [given.put(urgent).await]];
    assert_eq!(given.drain(&["mail"]).await, order);
}

async fn the_next_is_queued_at_once_when_the_one_before_it_ends_however_it_ends(given: Given) {
    let stopped = Verdict::Cancelled(trouble("stopped"));
    let jobs = given.put_on("mail", &ordered(Head::Block), 4).await;
    for (place, verdict) in [Verdict::Succeeded(None), failed(), stopped].into_iter().enumerate() {
        given.settle(given.take("mail").await, verdict).await;
        assert_eq!(given.state(jobs[place + 1]).await, StateName::Queued, "nobody had to notice");
    }
}

async fn of_those_that_come_due_the_first_due_takes_a_free_turn_and_then_the_first_accepted(given: Given) {
    let mut jobs = Vec::new();
    for span in [30, 20, 10] {
        let due = Due::In(seconds(span));
        jobs.push(given.put(NewJob { due, ..given.on_terms("mail", ordered(Head::StepAside)) }).await);
    }
    given.pass(seconds(20));
    given.tend().await;
    // The last came due first, and a turn found both at once.
    assert_eq!(stand(&given, &jobs).await, "sbq");
    given.pass(seconds(10));
    assert_eq!(given.drain(&["mail"]).await, [[jobs[2]], [jobs[0]], [jobs[1]]]);
}

async fn a_turn_that_nobody_notices_is_taken_by_nobody(given: Given) {
    let later = NewJob { due: Due::In(seconds(5)), ..given.on_terms("mail", ordered(Head::StepAside)) };
    let later = given.put(later).await;
    given.pass(seconds(5));
    // It is due, but nobody has looked; the next finds the turn free.
    let next = given.put_on("mail", &ordered(Head::StepAside), 1).await[0];
    assert_eq!(stand(&given, &[later, next]).await, "qq");
    assert_eq!(given.drain(&["mail"]).await, [[next], [later]]);
}

async fn one_that_is_removed_from_the_middle_is_skipped(given: Given) {
    for change in [cancel_within(seconds(0)), Change::Delete] {
        let jobs = given.put_on("mail", &ordered(Head::Block), 3).await;
        assert_eq!(given.change(jobs[1], change).await, ChangeOutcome::Done);
        assert_eq!(given.drain(&["mail"]).await, [[jobs[0]], [jobs[2]]]);
    }
}

async fn a_job_without_the_turn_can_be_changed_and_stays_blocked(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::Block), 2).await;
    for change in [
        Change::Move(queue("post")),
        Change::Reprioritise(priority(-9)),
        Change::Reschedule(Due::In(minutes(5))),
    ] {
        assert_eq!(given.change(jobs[1], change).await, ChangeOutcome::Done);
        assert_eq!(stand(&given, &jobs).await, "qb");
    }
    given.succeed(given.take("mail").await).await;
    assert_eq!(stand(&given, &jobs).await, ".s", "its turn has come before its time");
    given.pass(minutes(5));
    assert_eq!(ids(&given.grab(&["post"]).await), [jobs[1]]);
}

async fn a_job_done_again_comes_before_those_accepted_later_but_takes_the_turn_from_nobody(given: Given) {
    for head in HEADS {
        let jobs = given.put_on("mail", &ordered(head), 3).await;
        given.succeed(given.take("mail").await).await;
        assert_eq!(given.change(jobs[0], Change::Redo).await, ChangeOutcome::Done);
        assert_eq!(stand(&given, &jobs).await, "bqb");
        assert_eq!(given.drain(&["mail"]).await, [[jobs[1]], [jobs[0]], [jobs[2]]]);
    }
}

/// A job that waits for one of its own key cannot have the turn which that one needs.
async fn no_two_jobs_wait_for_each_other_for_ever(given: Given) {
    let aside = NewJob { due: Due::In(minutes(1)), ..given.on_terms("mail", ordered(Head::StepAside)) };
    let aside = given.put(aside).await;
    let terms = Terms { after: after(&[aside], tenure_core::IfFailed::Cancel).after, ..ordered(Head::Block) };
    let behind = given.put(given.on_terms("mail", terms.clone())).await;
    given.pass(minutes(1));
    assert_eq!(given.drain(&["mail"]).await, [[aside], [behind]]);

    let first = given.put_on("mail", &ordered(Head::Block), 1).await[0];
    let terms = Terms { after: after(&[first], tenure_core::IfFailed::Run).after, ..ordered(Head::Block) };
    let second = given.put(given.on_terms("mail", terms)).await;
    given.fail(given.take("mail").await).await;
    assert_eq!(given.change(first, Change::Redo).await, ChangeOutcome::Done);
    assert_eq!(given.drain(&["mail"]).await, [[first], [second]]);
}

async fn a_key_is_free_when_all_its_jobs_have_ended(given: Given) {
    for verdict in [Verdict::Succeeded(None), failed()] {
        let job = given.put_on("mail", &ordered(Head::Block), 1).await;
        assert_eq!(stand(&given, &job).await, "q");
        given.settle(given.take("mail").await, verdict).await;
    }
}

/// T042, for jobs
async fn waiting_for_the_turn_spends_no_attempt(given: Given) {
    let jobs = given.put_on("mail", &Terms { attempts: Some(1), ..ordered(Head::Block) }, 2).await;
    let first = given.take("mail").await;
    for _ in 0..10 {
        assert_eq!(given.grab(&["mail"]).await, []);
        given.pass(seconds(1));
        given.tend().await;
    }
    given.succeed(first).await;
    let second = given.take("mail").await;
    assert_eq!((second.job().id, second.job().attempt, second.job().delivery), (jobs[1], 1, 1));
    assert_eq!(given.attempts(jobs[1]).await.len(), 1);
}

async fn waiting_for_the_turn_is_explained_by_whose_turn_it_is(given: Given) {
    given.serve(&["mail"]).await;
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 3).await;
    let behind = |turn, ahead| Reason::NotItsTurn { key: key("cart-7"), turn: Some(turn), ahead };
    assert_eq!(given.why(jobs[0]).await, Reason::Next { ahead: 0 });
    assert_eq!(given.why(jobs[1]).await, behind(jobs[0], 1));
    assert_eq!(given.why(jobs[2]).await, behind(jobs[0], 2));
    given.settle(given.take("mail").await, Verdict::Snoozed(Due::In(minutes(1)))).await;
    assert!(matches!(given.why(jobs[0]).await, Reason::DueLater { .. }));
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 0 });
    assert_eq!(given.why(jobs[2]).await, behind(jobs[1], 2));
    given.pass(minutes(1));
    given.tend().await;
    assert_eq!(given.why(jobs[0]).await, behind(jobs[1], 0), "who was accepted first can be second");
    let reserved = given.reserve_kind("mail", "send").await;
    assert!(matches!(given.why(jobs[1]).await, Reason::Running { .. }));
    assert_eq!(given.why(jobs[0]).await, behind(jobs[1], 0));
    given.succeed(reserved).await;
    assert!(matches!(given.why(jobs[1]).await, Reason::Finished { .. }));
    assert_eq!(given.why(jobs[0]).await, Reason::Next { ahead: 0 });
}

async fn blocked_jobs_are_counted_and_found_as_such(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::Block), 3).await;
    assert_eq!(given.count("mail", StateName::Queued).await, 1);
    assert_eq!(given.count("mail", StateName::Blocked).await, 2);
    assert_eq!(given.store.counts().await.unwrap(), super::counts::recount(&given).await);
    let filter = tenure_store::Filter { states: vec![StateName::Blocked], ..tenure_store::Filter::default() };
    let found = given.list(filter, tenure_store::Order::OldestFirst, 10).await;
    assert_eq!(super::given::ids_of(&found), jobs[1..]);
    given.take("mail").await;
    assert_eq!(given.store.counts().await.unwrap(), super::counts::recount(&given).await);
}
