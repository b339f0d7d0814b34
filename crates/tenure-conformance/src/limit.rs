//! What limit keys promise: how many run at once.

use tenure_core::{Due, JobId, Limit, LimitKey, NewJob, Reason, StateName, Terms, Verdict, limits};

use super::given::{
    Given, TTL, cancel_within, failed, host, ids, minutes, priority, queue, retry, retry_at, seconds, want,
    want_kinds,
};
use super::keyed::{key, limited, ordered};
use super::{Test, test};
use tenure_store::{Change, ChangeOutcome, Reserve, Settled};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(of_a_limit_so_many_run_at_once_and_the_rest_is_blocked),
        test(the_first_in_line_are_queued_by_priority_then_due_then_acceptance),
        test(a_limit_counts_over_queues_kinds_and_holders),
        test(one_call_grants_no_more_than_there_is_room_for),
        test(a_grant_in_one_queue_blocks_the_last_queued_of_the_others),
        test(a_newcomer_with_a_better_place_pushes_out_the_last_queued),
        test(an_end_makes_room_at_once_in_every_queue),
        test(a_job_that_is_given_back_has_its_old_place_in_line),
        test(a_settlement_tells_where_the_job_stands_when_all_are_written),
        test(a_lapsed_holder_has_its_slot_until_somebody_notices),
        test(a_job_that_is_not_due_takes_no_room),
        test(blocked_queued_and_running_jobs_that_end_or_go_let_others_in),
        test(a_moved_job_joins_the_line_of_its_new_queue),
        test(a_reprioritised_job_finds_its_place),
        test(a_rescheduled_job_leaves_its_line_or_joins_it),
        test(a_job_done_again_joins_the_line),
        test(a_paused_queue_takes_no_room_from_the_others),
        test(keys_do_not_mix),
        test(a_job_takes_its_turn_before_its_room),
        test(waiting_for_room_spends_no_attempt),
        test(waiting_for_room_is_explained_by_what_takes_it),
    ]
}

pub(super) async fn running(given: &Given, most: u32, count: usize) -> Vec<JobId> {
    given.put_on("mail", &limited(Some(most)), count).await
}

async fn of_a_limit_so_many_run_at_once_and_the_rest_is_blocked(given: Given) {
    let jobs = running(&given, 2, 5).await;
    let [queued, blocked] = [StateName::Queued, StateName::Blocked];
    assert_eq!(given.states(&jobs).await, [queued, queued, blocked, blocked, blocked]);
    let turns = given.drain(&["mail"]).await;
    assert_eq!(turns, [vec![jobs[0], jobs[1]], vec![jobs[2], jobs[3]], vec![jobs[4]]]);
}

async fn the_first_in_line_are_queued_by_priority_then_due_then_acceptance(given: Given) {
    let at = |seconds_ago: u64| Due::At(given.now().before(seconds(seconds_ago)));
    let job =
        |number, due| NewJob { priority: priority(number), due, ..given.on_terms("mail", limited(Some(1))) };
    let batch = vec![job(0, at(1)), job(0, at(1)), job(0, at(2)), job(5, at(9)), job(-5, at(0))];
    let order: Vec<Vec<JobId>> = [4, 2, 0, 1, 3].map(|index: usize| vec![batch[index].id]).to_vec();
    given.enqueue_all(batch).await;
    assert_eq!(given.drain(&["mail"]).await, order);
}

async fn a_limit_counts_over_queues_kinds_and_holders(given: Given) {
    for (queue, kind) in [("mail", "send"), ("mail", "print"), ("post", "send")] {
        given.put(given.keyed(queue, kind, limited(Some(2)))).await;
    }
    let mut granted = 0;
    for number in 1..=3 {
        let wants = vec![want("post", 1), want("mail", 1)];
        let ask = Reserve { holder: host(number), ..given.ask(wants, 1) };
        granted += given.turn(ask).await.jobs.len();
    }
    assert_eq!((granted, given.count("mail", StateName::Blocked).await), (2, 1));
}

/// S15
async fn one_call_grants_no_more_than_there_is_room_for(given: Given) {
    for (queue, kind) in [("mail", "send"), ("mail", "print"), ("post", "send"), ("post", "print")] {
        for _ in 0..3 {
            given.put(given.keyed(queue, kind, limited(Some(3)))).await;
        }
    }
    assert_eq!(given.count("mail", StateName::Queued).await, 6, "each line is queued as if it were alone");
    assert_eq!(given.grab(&["mail", "post"]).await.len(), 3);
    assert_eq!(given.count("mail", StateName::Queued).await, 0);
    assert_eq!(given.count("post", StateName::Blocked).await, 6);
    assert_eq!(given.grab(&["post", "mail"]).await, []);
}

async fn a_grant_in_one_queue_blocks_the_last_queued_of_the_others(given: Given) {
    let mail = running(&given, 2, 2).await;
    let post = given.put_on("post", &limited(None), 2).await;
    let reserved = given.take("post").await;
    assert_eq!(given.states(&mail).await, [StateName::Queued, StateName::Blocked]);
    assert_eq!(given.states(&post).await, [StateName::Running, StateName::Queued]);
    given.succeed(reserved).await;
    assert_eq!(given.states(&mail).await, [StateName::Queued; 2]);
}

async fn a_newcomer_with_a_better_place_pushes_out_the_last_queued(given: Given) {
    let jobs = running(&given, 2, 2).await;
    let urgent = NewJob { priority: priority(-1), ..given.on_terms("mail", limited(None)) };
    let urgent = given.put(urgent).await;
    let states = [StateName::Queued, StateName::Blocked, StateName::Queued];
    assert_eq!(given.states(&[jobs[0], jobs[1], urgent]).await, states);
    let usual = given.put(given.on_terms("mail", limited(None))).await;
    assert_eq!(given.state(usual).await, StateName::Blocked);
    assert_eq!(given.drain(&["mail"]).await, [[urgent, jobs[0]], [jobs[1], usual]]);
}

async fn an_end_makes_room_at_once_in_every_queue(given: Given) {
    let stopped = Verdict::Cancelled(super::given::trouble("stopped"));
    for verdict in
        [Verdict::Succeeded(None), failed(), stopped, retry(), Verdict::Snoozed(Due::In(minutes(1)))]
    {
        running(&given, 1, 1).await;
        let reserved = given.take("mail").await;
        let waiting = [
            given.put(given.on_terms("mail", limited(None))).await,
            given.put(given.on_terms("post", limited(None))).await,
        ];
        assert_eq!(given.states(&waiting).await, [StateName::Blocked; 2]);
        given.settle(reserved, verdict).await;
        assert_eq!(given.states(&waiting).await, [StateName::Queued; 2], "nobody had to notice");
        given.drain(&["mail", "post"]).await;
        given.pass(minutes(60));
        given.drain(&["mail", "post"]).await;
    }
}

async fn a_job_that_is_given_back_has_its_old_place_in_line(given: Given) {
    let first = running(&given, 1, 1).await[0];
    given.pass(seconds(1));
    let second = running(&given, 1, 1).await[0];
    assert_eq!(given.settle_to(given.take("mail").await, Verdict::Released).await, StateName::Queued);
    assert_eq!(given.states(&[first, second]).await, [StateName::Queued, StateName::Blocked]);
    // One that is tried again has a later place.
    given.pass(seconds(1));
    assert_eq!(given.settle_to(given.take("mail").await, retry_at(Due::Now)).await, StateName::Blocked);
    assert_eq!(given.states(&[first, second]).await, [StateName::Blocked, StateName::Queued]);
}

async fn a_settlement_tells_where_the_job_stands_when_all_are_written(given: Given) {
    let jobs = running(&given, 2, 2).await;
    let urgent = given.on_terms("mail", limited(None));
    let mut reserved = given.reserve("mail", 2).await;
    given.put(NewJob { priority: priority(-9), ..urgent }).await;
    let second = super::given::decide(reserved.pop().unwrap(), Verdict::Succeeded(None));
    let first = super::given::decide(reserved.pop().unwrap(), Verdict::Released);
    assert_eq!((first.id(), second.id()), (jobs[0], jobs[1]));
    let turn = given.store.settle(vec![first, second], None).await.unwrap();
    // After the first alone, the urgent one would have had the only room.
    let [queued, succeeded] = [StateName::Queued, StateName::Succeeded].map(Settled::Done);
    assert_eq!(turn.settled, [queued, succeeded]);
}

async fn a_lapsed_holder_has_its_slot_until_somebody_notices(given: Given) {
    let jobs = running(&given, 1, 2).await;
    given.take("mail").await;
    given.pass(TTL);
    assert_eq!(given.state(jobs[1]).await, StateName::Blocked);
    assert_eq!(
        ids(&given.grab(&["mail"]).await),
        [jobs[0]],
        "it is noticed by a turn, and no slot is leaked"
    );
    given.pass(TTL);
    given.change(jobs[0], cancel_within(seconds(0))).await;
    given.tend().await;
    assert_eq!(given.states(&jobs).await, [StateName::Cancelled, StateName::Queued]);
}

async fn a_job_that_is_not_due_takes_no_room(given: Given) {
    let later = NewJob { due: Due::In(seconds(5)), ..given.on_terms("mail", limited(Some(1))) };
    let later = given.put(later).await;
    let now = running(&given, 1, 1).await[0];
    assert_eq!(given.states(&[later, now]).await, [StateName::Scheduled, StateName::Queued]);
    let reserved = given.take("mail").await;
    given.pass(seconds(5));
    given.tend().await;
    assert_eq!(given.state(later).await, StateName::Blocked);
    given.succeed(reserved).await;
    assert_eq!(given.state(later).await, StateName::Queued);
}

async fn blocked_queued_and_running_jobs_that_end_or_go_let_others_in(given: Given) {
    for change in [cancel_within(seconds(0)), Change::Delete] {
        let jobs = running(&given, 2, 5).await;
        let reserved = given.take("mail").await;
        assert_eq!(given.change(jobs[1], change.clone()).await, ChangeOutcome::Done, "a queued one");
        assert_eq!(given.states(&jobs[2..]).await[0], StateName::Queued);
        assert_eq!(given.change(jobs[3], change).await, ChangeOutcome::Done, "a blocked one");
        assert_eq!(given.state(jobs[4]).await, StateName::Blocked);
        given.change(jobs[0], cancel_within(minutes(1))).await;
        assert_eq!(given.state(jobs[4]).await, StateName::Blocked, "the wish alone makes no room");
        given.settle(reserved, Verdict::Released).await;
        assert_eq!(given.states(&[jobs[0], jobs[4]]).await, [StateName::Cancelled, StateName::Queued]);
        assert_eq!(given.drain(&["mail"]).await, [[jobs[2], jobs[4]]]);
    }
}

async fn a_moved_job_joins_the_line_of_its_new_queue(given: Given) {
    let jobs = running(&given, 1, 3).await;
    assert_eq!(given.change(jobs[2], Change::Move(queue("post"))).await, ChangeOutcome::Done);
    let [queued, blocked] = [StateName::Queued, StateName::Blocked];
    assert_eq!(given.states(&jobs).await, [queued, blocked, queued], "it is the first there");
    given.change(jobs[0], Change::Move(queue("post"))).await;
    assert_eq!(given.states(&jobs).await, [queued, queued, blocked]);
    given.store.set_limit(&key("smtp"), Some(Limit::of(3))).await.unwrap();
    assert_eq!(given.states(&jobs).await, [queued, queued, queued]);
}

async fn a_reprioritised_job_finds_its_place(given: Given) {
    let jobs = running(&given, 1, 3).await;
    let [queued, blocked] = [StateName::Queued, StateName::Blocked];
    given.change(jobs[2], Change::Reprioritise(priority(-1))).await;
    assert_eq!(given.states(&jobs).await, [blocked, blocked, queued]);
    given.change(jobs[2], Change::Reprioritise(priority(1))).await;
    assert_eq!(given.states(&jobs).await, [queued, blocked, blocked]);
    given.change(jobs[0], Change::Reprioritise(priority(1))).await;
    assert_eq!(given.drain(&["mail"]).await, [[jobs[1]], [jobs[0]], [jobs[2]]]);
}

async fn a_rescheduled_job_leaves_its_line_or_joins_it(given: Given) {
    let jobs = running(&given, 1, 2).await;
    given.change(jobs[0], Change::Reschedule(Due::In(minutes(1)))).await;
    assert_eq!(given.states(&jobs).await, [StateName::Scheduled, StateName::Queued]);
    given.change(jobs[0], Change::Reschedule(Due::At(given.now().before(seconds(1))))).await;
    assert_eq!(given.states(&jobs).await, [StateName::Queued, StateName::Blocked]);
    given.change(jobs[1], Change::Reschedule(Due::In(minutes(1)))).await;
    assert_eq!(given.states(&jobs).await, [StateName::Queued, StateName::Scheduled]);
}

async fn a_job_done_again_joins_the_line(given: Given) {
    let jobs = running(&given, 1, 2).await;
    given.succeed(given.take("mail").await).await;
    given.pass(seconds(1));
    assert_eq!(given.change(jobs[0], Change::Redo).await, ChangeOutcome::Done);
    assert_eq!(given.states(&jobs).await, [StateName::Blocked, StateName::Queued]);
    assert_eq!(given.drain(&["mail"]).await, [[jobs[1]], [jobs[0]]]);
}

async fn a_paused_queue_takes_no_room_from_the_others(given: Given) {
    running(&given, 1, 1).await;
    let post = given.put_on("post", &limited(None), 2).await;
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert_eq!(given.drain(&["mail", "post"]).await, [[post[0]], [post[1]]]);
}

async fn keys_do_not_mix(given: Given) {
    for name in ["smtp", "SMTP", "smtp ", "s3"] {
        let limit = Some(LimitKey { key: key(name), most: Some(1) });
        given.put_on("mail", &Terms { limit, ..Terms::default() }, 2).await;
    }
    given.enqueue("mail", 2).await;
    assert_eq!(given.grab(&["mail"]).await.len(), 4 + 2);
}

async fn a_job_takes_its_turn_before_its_room(given: Given) {
    let both = Terms { limit: limited(Some(1)).limit, ..ordered(tenure_core::Head::Block) };
    let first = given.put_on("mail", &both, 3).await;
    let other = running(&given, 1, 1).await[0];
    // The second of the key is not in line for the room that the other takes.
    assert_eq!(given.drain(&["mail"]).await, [[first[0]], [first[1]], [first[2]], [other]]);
    let jobs = given.put_on("mail", &both, 2).await;
    let reserved = given.take("mail").await;
    let other = given.put(NewJob { priority: priority(-1), ..given.on_terms("mail", limited(None)) }).await;
    given.succeed(reserved).await;
    assert_eq!(given.states(&[jobs[1], other]).await, [StateName::Blocked, StateName::Queued]);
    given.serve(&["mail"]).await;
    assert!(matches!(given.why(jobs[1]).await, Reason::BehindInLimit { ahead: 1, .. }));
    assert_eq!(given.drain(&["mail"]).await, [[other], [jobs[1]]]);
}

/// T042, for jobs
async fn waiting_for_room_spends_no_attempt(given: Given) {
    let jobs = given.put_on("mail", &Terms { attempts: Some(1), ..limited(Some(1)) }, 2).await;
    let first = given.take("mail").await;
    for _ in 0..10 {
        assert_eq!(given.grab(&["mail"]).await, []);
        given.pass(seconds(1));
        given.tend().await;
    }
    given.succeed(first).await;
    let second = given.take("mail").await;
    assert_eq!((second.job().id, second.job().attempt, second.job().delivery), (jobs[1], 1, 1));
}

async fn waiting_for_room_is_explained_by_what_takes_it(given: Given) {
    given.serve(&["mail", "post"]).await;
    let jobs = running(&given, 2, 4).await;
    let full =
        |running: &[JobId]| Reason::LimitFull { key: Some(key("smtp")), most: 2, running: running.to_vec() };
    let behind = |ahead| Reason::BehindInLimit { key: key("smtp"), ahead };
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 1 });
    assert_eq!(given.why(jobs[2]).await, behind(2));
    let one = given.take("mail").await;
    assert_eq!(given.why(jobs[3]).await, behind(2));
    given.take("mail").await;
    assert_eq!(given.why(jobs[2]).await, full(&jobs[..2]));
    given.succeed(one).await;
    assert_eq!(given.why(jobs[2]).await, Reason::Next { ahead: 0 });
    assert_eq!(given.why(jobs[3]).await, behind(1));
    given.take("mail").await;
    let wants = want_kinds("mail", &["send"], limits::RESERVE_JOBS);
    assert_eq!(given.turn(given.ask(vec![wants], 9)).await.jobs, []);
    assert_eq!(given.why(jobs[3]).await, full(&jobs[1..3]));
    given.pass(TTL);
    assert_eq!(given.why(jobs[3]).await, Reason::Next { ahead: 0 }, "who fell silent takes no room");
}
