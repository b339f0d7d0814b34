//! What changing jobs promises.

use tenure_core::{
    CancelRequest, Cause, Due, End, Failure, JobId, Keep, Name, NewJob, OnConflict, State, StateName, Terms,
    Verdict, Why, Window, limits,
};

use super::given::{
    Given, TTL, cancel_within, decide, held, ids, kind, minutes, output, priority, queue, retry, seconds,
};
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Filter, Refusal, Renewal, Selection, Settled};

pub(super) fn tests() -> Vec<Test> {
    let mut tests = cancelling();
    tests.extend(redoing());
    tests.extend(deleting());
    tests.extend(arranging());
    tests.extend(selecting());
    tests
}

fn cancelling() -> Vec<Test> {
    vec![
        test(cancelling_a_waiting_job_ends_it_at_once),
        test(cancelling_a_scheduled_job_ends_it_at_once),
        test(cancelling_a_running_job_asks_its_holder),
        test(the_first_wish_to_cancel_stands),
        test(a_holder_that_does_not_stop_within_the_grace_loses_the_job),
        test(a_job_whose_end_was_asked_for_is_cancelled_when_its_holder_falls_silent),
        test(a_grace_of_nothing_takes_the_job_with_the_next_turn),
        test(cancelling_what_is_cancelled_changes_nothing),
        test(cancelling_what_has_ended_otherwise_is_refused),
    ]
}

fn redoing() -> Vec<Test> {
    vec![
        test(a_finished_job_is_done_again_with_all_its_attempts),
        test(every_end_can_be_done_again),
        test(a_job_that_has_not_finished_is_not_done_again),
        test(a_late_settlement_of_a_job_done_again_changes_nothing),
        test(doing_a_job_again_takes_its_key_again),
        test(doing_a_job_again_is_refused_while_another_holds_its_key),
    ]
}

fn deleting() -> Vec<Test> {
    vec![
        test(a_waiting_or_finished_job_is_deleted_with_all_that_belongs_to_it),
        test(a_running_job_is_not_deleted),
        test(a_deleted_job_is_found_by_nobody),
    ]
}

fn arranging() -> Vec<Test> {
    vec![
        test(a_moved_job_waits_in_the_other_queue),
        test(a_moved_job_takes_its_place_by_priority_due_and_acceptance),
        test(moving_a_job_to_where_it_is_changes_nothing),
        test(a_new_priority_changes_the_place_in_line),
        test(the_same_priority_changes_nothing),
        test(a_rescheduled_job_is_due_then),
        test(a_retry_can_be_brought_forward),
        test(a_running_job_is_not_rearranged),
        test(a_finished_job_is_not_rearranged),
    ]
}

fn selecting() -> Vec<Test> {
    vec![
        test(changes_are_answered_job_by_job_in_order),
        test(a_job_that_is_not_there_is_not_found),
        test(a_filter_selects_only_what_it_means),
        test(a_filter_selects_the_oldest_first_behind_the_cursor),
        test(a_filter_that_means_nothing_changes_nothing),
        test(a_change_over_a_filter_goes_on_until_all_are_done),
        test(a_change_over_a_filter_reaches_what_lies_behind_many_others),
    ]
}

/// T147, S16
async fn cancelling_a_waiting_job_ends_it_at_once(given: Given) {
    let id = given.put(given.kept("mail", Keep::For(minutes(60)))).await;
    given.pass(seconds(1));
    assert_eq!(given.cancel(id).await, ChangeOutcome::Done);
    let job = given.job(id).await;
    assert_eq!(job.state, State::Finished { at: given.now(), end: End::Cancelled });
    assert_eq!(job.failure, Some(Failure::new(Cause::Cancelled, "not wanted any more")));
    assert_eq!((job.attempt, job.expires), (0, Some(given.now().after(minutes(60)))));
}

async fn cancelling_a_scheduled_job_ends_it_at_once(given: Given) {
    let id = given.put(given.due_in("mail", minutes(1))).await;
    assert_eq!(given.cancel(id).await, ChangeOutcome::Done);
    assert_eq!(given.state(id).await, StateName::Cancelled);
    assert_eq!(given.count("mail", StateName::Scheduled).await, 0);
}

async fn cancelling_a_running_job_asks_its_holder(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.pass(seconds(1));
    assert_eq!(given.change(id, cancel_within(seconds(20))).await, ChangeOutcome::Asked);
    let mut expected = reserved.job().clone();
    expected.cancel = Some(CancelRequest::new(given.now(), seconds(20), "not wanted any more"));
    assert_eq!(given.job(id).await, expected);
}

async fn the_first_wish_to_cancel_stands(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.change(id, cancel_within(seconds(20))).await;
    let asked = given.job(id).await;
    given.pass(seconds(1));
    let again = Change::Cancel { grace: seconds(0), reason: "at once!".to_owned() };
    assert_eq!(given.change(id, again).await, ChangeOutcome::Already);
    assert_eq!(given.job(id).await, asked);
}

async fn a_holder_that_does_not_stop_within_the_grace_loses_the_job(given: Given) {
    let deaf = given.running().await;
    let id = deaf.job().id;
    given.change(id, cancel_within(seconds(10))).await;
    given.pass(seconds(10));
    assert_eq!(given.tend().await.lapsed, 1);
    let job = given.job(id).await;
    assert_eq!(job.state, State::Finished { at: given.now(), end: End::Cancelled });
    assert_eq!(job.failure, Some(Failure::new(Cause::Deaf, "not wanted any more")));
    assert!(job.fence > deaf.fence());
    assert_eq!(given.renew(held(&deaf), TTL).await, Renewal::Lost);
    assert_eq!(given.settle(deaf, Verdict::Succeeded(Some(output("1")))).await, Settled::Fenced);
    assert_eq!(given.job(id).await, job);
}

async fn a_job_whose_end_was_asked_for_is_cancelled_when_its_holder_falls_silent(given: Given) {
    let reserved = given.running().await;
    given.change(reserved.job().id, cancel_within(minutes(60))).await;
    given.pass(TTL);
    assert_eq!(given.reserve("mail", 9).await, []);
    assert_eq!(given.state(reserved.job().id).await, StateName::Cancelled);
}

async fn a_grace_of_nothing_takes_the_job_with_the_next_turn(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    assert_eq!(given.change(id, cancel_within(seconds(0))).await, ChangeOutcome::Asked);
    assert_eq!(given.reserve("mail", 9).await, []);
    assert_eq!(given.state(id).await, StateName::Cancelled);
}

async fn cancelling_what_is_cancelled_changes_nothing(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.cancel(id).await;
    let before = given.job(id).await;
    given.pass(seconds(1));
    assert_eq!(given.cancel(id).await, ChangeOutcome::Already);
    assert_eq!(given.job(id).await, before);
}

/// T147: done = conflict.
async fn cancelling_what_has_ended_otherwise_is_refused(given: Given) {
    let succeeded = given.succeeded().await;
    let reserved = given.running().await;
    let failed = reserved.job().id;
    given.fail(reserved).await;
    for id in [succeeded, failed] {
        let before = given.job(id).await;
        assert_eq!(given.cancel(id).await, ChangeOutcome::RefusedFinished);
        assert_eq!(given.job(id).await, before);
    }
}

/// T136: manual retry.
async fn a_finished_job_is_done_again_with_all_its_attempts(given: Given) {
    let id = given.put(given.with_attempts("mail", 1)).await;
    let reserved = given.take("mail").await;
    given.settle(reserved, retry()).await;
    let failed = given.job(id).await;
    given.pass(minutes(5));
    assert_eq!(given.change(id, Change::Redo).await, ChangeOutcome::Done);
    let job = given.job(id).await;
    let transition = tenure_core::redo(&failed, given.now()).unwrap();
    assert_eq!(job, failed.clone().after(transition));
    assert_eq!(job.state, State::Waiting { due: given.now(), why: Why::Asked });
    assert_eq!((job.attempt, job.delivery, job.fence), (0, 1, failed.fence));
    assert_eq!((job.expires, job.failure), (None, failed.failure));
    let again = given.take("mail").await;
    assert_eq!((again.job().attempt, again.job().delivery), (1, 2));
}

async fn every_end_can_be_done_again(given: Given) {
    let succeeded = given.running().await;
    let ids = [succeeded.job().id, given.put(given.new_job("mail")).await];
    given.settle(succeeded, Verdict::Succeeded(Some(output("1")))).await;
    given.cancel(ids[1]).await;
    for id in ids {
        assert_eq!(given.change(id, Change::Redo).await, ChangeOutcome::Done);
        assert_eq!(given.job(id).await.output, None, "it has yet to make one");
        given.succeed(given.take("mail").await).await;
    }
}

async fn a_job_that_has_not_finished_is_not_done_again(given: Given) {
    let running = given.running().await.job().id;
    let waiting = given.put(given.new_job("mail")).await;
    for id in [running, waiting] {
        let before = given.job(id).await;
        assert_eq!(given.change(id, Change::Redo).await, ChangeOutcome::RefusedUnfinished);
        assert_eq!(given.job(id).await, before);
    }
}

async fn a_late_settlement_of_a_job_done_again_changes_nothing(given: Given) {
    let settlement = decide(given.running().await, Verdict::Succeeded(Some(output("1"))));
    let id = settlement.id();
    given.write(settlement.clone()).await;
    given.change(id, Change::Redo).await;
    let waiting = given.job(id).await;
    assert_eq!(given.write(settlement.clone()).await, Settled::Repeated);
    assert_eq!(given.job(id).await, waiting);
    let again = given.take("mail").await;
    assert_eq!(given.write(settlement).await, Settled::Fenced);
    assert_eq!(given.job(id).await, *again.job());
}

async fn doing_a_job_again_takes_its_key_again(given: Given) {
    let id = given.put(given.only(1, Window::WhileUnfinished, OnConflict::Reject)).await;
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.change(id, Change::Redo).await, ChangeOutcome::Done);
    let second = given.only(1, Window::WhileUnfinished, OnConflict::Reject);
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::KeyHeld(id) };
    assert_eq!(given.enqueue_all(vec![second.clone()]).await, refused);
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.offer(second.clone()).await, Accepted::New(second.id));
}

async fn doing_a_job_again_is_refused_while_another_holds_its_key(given: Given) {
    let only = || given.only(1, Window::WhileUnfinished, OnConflict::Reject);
    let old = given.put(only()).await;
    given.succeed(given.take("mail").await).await;
    let new = given.put(only()).await;
    let before = given.job(old).await;
    assert_eq!(given.change(old, Change::Redo).await, ChangeOutcome::RefusedKeyHeld(new));
    assert_eq!(given.job(old).await, before);
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.change(old, Change::Redo).await, ChangeOutcome::Done);
}

async fn a_waiting_or_finished_job_is_deleted_with_all_that_belongs_to_it(given: Given) {
    let finished = given.succeeded().await;
    let waiting = given.put(given.new_job("mail")).await;
    let scheduled = given.put(given.due_in("mail", minutes(1))).await;
    for id in [finished, waiting, scheduled] {
        assert_eq!(given.change(id, Change::Delete).await, ChangeOutcome::Done);
        assert!(!given.is_there(id).await);
        assert_eq!(given.attempts(id).await, []);
    }
    assert_eq!(given.all().await, []);
    assert_eq!(given.store.counts().await.unwrap(), []);
}

async fn a_running_job_is_not_deleted(given: Given) {
    let reserved = given.running().await;
    assert_eq!(given.change(reserved.job().id, Change::Delete).await, ChangeOutcome::RefusedRunning);
    assert_eq!(given.job(reserved.job().id).await, *reserved.job());
}

async fn a_deleted_job_is_found_by_nobody(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.change(id, Change::Delete).await;
    assert_eq!(given.reserve("mail", 9).await, []);
    assert_eq!(given.change(id, Change::Delete).await, ChangeOutcome::NotFound);
    assert_eq!(given.cancel(id).await, ChangeOutcome::NotFound);
    assert_eq!(given.store.standing(id).await.unwrap(), None);
}

async fn a_moved_job_waits_in_the_other_queue(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let mut expected = given.job(id).await;
    assert_eq!(given.change(id, Change::Move(queue("post"))).await, ChangeOutcome::Done);
    expected.queue = queue("post");
    assert_eq!(given.job(id).await, expected);
    assert_eq!(given.reserve("mail", 9).await, []);
    let names: Vec<_> = given.store.queues().await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, [queue("mail"), queue("post")]);
    assert_eq!(ids(&given.reserve("post", 9).await), [id]);
}

async fn a_moved_job_takes_its_place_by_priority_due_and_acceptance(given: Given) {
    let post = given.enqueue("post", 1).await[0];
    let moved = given.put(given.new_job("mail")).await;
    let last = given.enqueue("post", 1).await[0];
    given.change(moved, Change::Move(queue("post"))).await;
    assert_eq!(ids(&given.reserve("post", 9).await), [post, moved, last]);
}

async fn moving_a_job_to_where_it_is_changes_nothing(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let before = given.job(id).await;
    assert_eq!(given.change(id, Change::Move(queue("mail"))).await, ChangeOutcome::Already);
    assert_eq!(given.job(id).await, before);
}

async fn a_new_priority_changes_the_place_in_line(given: Given) {
    let jobs = given.enqueue("mail", 3).await;
    let mut expected = given.job(jobs[2]).await;
    let first = Change::Reprioritise(priority(-1));
    assert_eq!(given.change(jobs[2], first).await, ChangeOutcome::Done);
    expected.priority = priority(-1);
    assert_eq!(given.job(jobs[2]).await, expected);
    assert_eq!(ids(&given.reserve("mail", 9).await), [jobs[2], jobs[0], jobs[1]]);
}

async fn the_same_priority_changes_nothing(given: Given) {
    let id = given.put(NewJob { priority: priority(3), ..given.new_job("mail") }).await;
    let before = given.job(id).await;
    assert_eq!(given.change(id, Change::Reprioritise(priority(3))).await, ChangeOutcome::Already);
    assert_eq!(given.job(id).await, before);
}

async fn a_rescheduled_job_is_due_then(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.pass(seconds(1));
    assert_eq!(given.change(id, Change::Reschedule(Due::In(minutes(1)))).await, ChangeOutcome::Done);
    assert_eq!(given.job(id).await.state.due(), Some(given.now().after(minutes(1))));
    assert_eq!(given.reserve("mail", 9).await, []);
    given.pass(minutes(1));
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

async fn a_retry_can_be_brought_forward(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.settle(reserved, retry()).await;
    assert_eq!(given.reserve("mail", 9).await, []);
    assert_eq!(given.change(id, Change::Reschedule(Due::Now)).await, ChangeOutcome::Done);
    let state = State::Waiting { due: given.now(), why: Why::Retry };
    assert_eq!(given.job(id).await.state, state, "it still waits for what it waited for");
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

fn arrangements() -> [Change; 3] {
    [Change::Move(queue("post")), Change::Reprioritise(priority(1)), Change::Reschedule(Due::Now)]
}

async fn a_running_job_is_not_rearranged(given: Given) {
    let reserved = given.running().await;
    for change in arrangements() {
        assert_eq!(given.change(reserved.job().id, change).await, ChangeOutcome::RefusedRunning);
        assert_eq!(given.job(reserved.job().id).await, *reserved.job());
    }
}

async fn a_finished_job_is_not_rearranged(given: Given) {
    let id = given.succeeded().await;
    let before = given.job(id).await;
    for change in arrangements() {
        assert_eq!(given.change(id, change).await, ChangeOutcome::RefusedFinished);
        assert_eq!(given.job(id).await, before);
    }
}

async fn changes_are_answered_job_by_job_in_order(given: Given) {
    let running = given.running().await.job().id;
    let finished = given.succeeded().await;
    let waiting = given.put(given.new_job("mail")).await;
    let unknown = given.id();
    let selection = Selection::Ids(vec![waiting, running, unknown, finished, waiting]);
    let changed = given.store.change(cancel_within(minutes(1)), selection).await.unwrap();
    let answers = [
        (waiting, ChangeOutcome::Done),
        (running, ChangeOutcome::Asked),
        (unknown, ChangeOutcome::NotFound),
        (finished, ChangeOutcome::RefusedFinished),
        (waiting, ChangeOutcome::Already),
    ];
    assert_eq!((changed.outcomes.as_slice(), changed.next), (answers.as_slice(), None));
    let none = given.store.change(Change::Delete, Selection::Ids(vec![])).await.unwrap();
    assert_eq!((none.outcomes, none.next), (vec![], None));
}

async fn a_job_that_is_not_there_is_not_found(given: Given) {
    given.enqueue("mail", 1).await;
    let everything = [cancel_within(minutes(1)), Change::Redo, Change::Delete];
    for change in everything.into_iter().chain(arrangements()) {
        assert_eq!(given.change(given.id(), change).await, ChangeOutcome::NotFound);
    }
}

async fn a_filter_selects_only_what_it_means(given: Given) {
    let tagged = Terms { tags: vec![Name::new("tag", "eu").unwrap()], ..Terms::default() };
    let meant = NewJob { kind: kind("print"), ..given.on_terms("post", tagged.clone()) };
    let others = vec![
        NewJob { kind: kind("print"), ..given.on_terms("mail", tagged.clone()) },
        given.on_terms("post", tagged.clone()),
        NewJob { kind: kind("print"), ..given.new_job("post") },
        NewJob { kind: kind("print"), due: Due::In(minutes(1)), ..given.on_terms("post", tagged) },
    ];
    given.enqueue_all(others).await;
    given.put(meant.clone()).await;
    let filter = Filter {
        states: vec![StateName::Queued],
        queues: vec![queue("post")],
        kinds: vec![kind("print")],
        tags: vec![Name::new("tag", "eu").unwrap()],
        ..Filter::default()
    };
    let outcomes: Vec<_> =
        given.change_matching(Change::Delete, filter).await.into_iter().flat_map(|c| c.outcomes).collect();
    assert_eq!(outcomes, [(meant.id, ChangeOutcome::Done)]);
    assert_eq!(given.all().await.len(), 4);
}

async fn a_filter_selects_the_oldest_first_behind_the_cursor(given: Given) {
    let jobs = given.enqueue("mail", 4).await;
    let after = Some(tenure_store::Cursor::behind(given.job(jobs[1]).await.seq));
    let selection = Selection::Matching { filter: Filter::default(), after };
    let changed = given.store.change(cancel_within(minutes(1)), selection).await.unwrap();
    assert_eq!(changed.outcomes, [(jobs[2], ChangeOutcome::Done), (jobs[3], ChangeOutcome::Done)]);
    assert_eq!(given.state(jobs[1]).await, StateName::Queued);
}

async fn a_filter_that_means_nothing_changes_nothing(given: Given) {
    given.enqueue("mail", 2).await;
    let filter = Filter { queues: vec![queue("post")], ..Filter::default() };
    let steps = given.change_matching(Change::Delete, filter).await;
    assert!(steps.iter().all(|step| step.outcomes.is_empty()));
    assert_eq!(given.all().await.len(), 2);
}

async fn a_change_over_a_filter_goes_on_until_all_are_done(given: Given) {
    let jobs = given.enqueue("mail", 2 * limits::CHANGE_JOBS + 1).await;
    let filter = Filter { states: vec![StateName::Queued], ..Filter::default() };
    let steps = given.change_matching(cancel_within(minutes(1)), filter).await;
    assert!(steps.iter().all(|step| step.outcomes.len() <= limits::CHANGE_JOBS));
    let changed: Vec<JobId> = steps.iter().flat_map(|step| &step.outcomes).map(|(id, _)| *id).collect();
    assert_eq!(changed, jobs);
    assert_eq!(given.count("mail", StateName::Cancelled).await, jobs.len() as u64);
}

async fn a_change_over_a_filter_reaches_what_lies_behind_many_others(given: Given) {
    given.enqueue("mail", limits::PAGE_EXAMINED + 1).await;
    let tags = vec![Name::new("tag", "eu").unwrap()];
    let last = given.put(given.on_terms("mail", Terms { tags: tags.clone(), ..Terms::default() })).await;
    let filter = Filter { tags, ..Filter::default() };
    let outcomes: Vec<_> =
        given.change_matching(Change::Delete, filter).await.into_iter().flat_map(|c| c.outcomes).collect();
    assert_eq!(outcomes, [(last, ChangeOutcome::Done)]);
}
