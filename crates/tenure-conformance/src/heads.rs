//! What becomes of an ordering key when the job whose turn it is waits, is changed or ends.

use tenure_core::{
    Due, Head, JobId, NewJob, OnConflict, StateName, Terms, Unique, UniqueKey, Verdict, Window,
};

use super::given::{Given, TTL, cancel_within, minutes, queue, retry, retry_at, seconds};
use super::keyed::{after, ordered};
use super::ordering::{HEADS, stand};
use super::{Test, test};
use tenure_store::{Accepted, Change, ChangeOutcome};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_blocking_head_that_is_due_later_keeps_the_others_waiting),
        test(a_blocking_head_keeps_its_turn_until_it_has_ended),
        test(a_head_that_steps_aside_lets_the_others_go_on_while_it_waits),
        test(a_head_that_stepped_aside_comes_first_when_its_time_has_come),
        test(a_head_that_steps_aside_keeps_its_turn_while_it_is_due),
        test(heads_of_both_sorts_share_a_key),
        test(a_lapsed_head_comes_back_before_the_others),
        test(a_head_that_time_ends_passes_its_turn_on),
        test(a_waiting_head_that_is_cancelled_deleted_or_replaced_passes_its_turn_on),
        test(a_head_keeps_its_turn_in_another_queue),
        test(a_head_of_a_paused_queue_keeps_its_turn),
        test(a_blocking_head_that_is_rescheduled_keeps_its_turn),
        test(a_head_that_steps_aside_passes_its_turn_on_when_it_is_rescheduled),
        test(a_head_that_waits_for_other_jobs_stands_in_the_way_without_the_turn),
    ]
}

async fn a_blocking_head_that_is_due_later_keeps_the_others_waiting(given: Given) {
    let later = NewJob { due: Due::In(minutes(5)), ..given.on_terms("mail", ordered(Head::Block)) };
    let jobs = [given.put(later).await, given.put(given.on_terms("mail", ordered(Head::Block))).await];
    assert_eq!(stand(&given, &jobs).await, "sb");
    assert_eq!(given.grab(&["mail"]).await, []);
    given.pass(minutes(5));
    assert_eq!(given.drain(&["mail"]).await, [[jobs[0]], [jobs[1]]]);
}

async fn a_blocking_head_keeps_its_turn_until_it_has_ended(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::Block), 2).await;
    for (verdict, head) in [
        (retry(), 's'),
        (retry_at(Due::Now), 'q'),
        (Verdict::Snoozed(Due::In(minutes(1))), 's'),
        (Verdict::Released, 'q'),
    ] {
        let reserved = given.take("mail").await;
        assert_eq!(reserved.job().id, jobs[0]);
        given.settle(reserved, verdict).await;
        assert_eq!(stand(&given, &jobs).await, format!("{head}b"));
        given.pass(minutes(60));
    }
    given.succeed(given.take("mail").await).await;
    assert_eq!(stand(&given, &jobs).await, ".q");
}

async fn a_head_that_steps_aside_lets_the_others_go_on_while_it_waits(given: Given) {
    for verdict in [retry(), Verdict::Snoozed(Due::In(minutes(60)))] {
        let jobs = given.put_on("mail", &ordered(Head::StepAside), 3).await;
        given.settle(given.take("mail").await, verdict).await;
        assert_eq!(stand(&given, &jobs).await, "sqb");
        let turns: Vec<Vec<JobId>> = given.drain(&["mail"]).await;
        assert_eq!(turns, [[jobs[1]], [jobs[2]]]);
        given.pass(minutes(60));
        assert_eq!(given.drain(&["mail"]).await, [[jobs[0]]]);
    }
    let later = NewJob { due: Due::In(minutes(5)), ..given.on_terms("mail", ordered(Head::StepAside)) };
    let later = given.put(later).await;
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 1).await;
    assert_eq!(stand(&given, &[later, jobs[0]]).await, "sq");
}

async fn a_head_that_stepped_aside_comes_first_when_its_time_has_come(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 4).await;
    given.settle(given.take("mail").await, Verdict::Snoozed(Due::In(seconds(10)))).await;
    given.succeed(given.take("mail").await).await;
    let running = given.take("mail").await;
    given.pass(seconds(10));
    given.tend().await;
    assert_eq!(stand(&given, &jobs).await, "b.rb", "it waits until the running one has ended");
    given.succeed(running).await;
    assert_eq!(given.drain(&["mail"]).await, [[jobs[0]], [jobs[3]]]);
}

async fn a_head_that_steps_aside_keeps_its_turn_while_it_is_due(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 2).await;
    for verdict in [Verdict::Released, retry_at(Due::Now), Verdict::Snoozed(Due::Now)] {
        let reserved = given.take("mail").await;
        assert_eq!(given.settle_to(reserved, verdict).await, StateName::Queued);
        assert_eq!(stand(&given, &jobs).await, "qb");
    }
    given.take("mail").await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(stand(&given, &jobs).await, "qb", "it lapsed");
}

async fn heads_of_both_sorts_share_a_key(given: Given) {
    let aside = NewJob { due: Due::In(seconds(5)), ..given.on_terms("mail", ordered(Head::StepAside)) };
    let block = NewJob { due: Due::In(seconds(9)), ..given.on_terms("mail", ordered(Head::Block)) };
    let jobs = [
        given.put(aside).await,
        given.put(block).await,
        given.put(given.on_terms("mail", ordered(Head::StepAside))).await,
    ];
    assert_eq!(stand(&given, &jobs).await, "ssb", "one steps aside for all, one blocks those behind it");
    given.pass(seconds(5));
    given.tend().await;
    assert_eq!(stand(&given, &jobs).await, "bsb", "the one that blocks has the turn");
    given.pass(seconds(4));
    assert_eq!(given.drain(&["mail"]).await, [[jobs[1]], [jobs[0]], [jobs[2]]]);
}

async fn a_lapsed_head_comes_back_before_the_others(given: Given) {
    for head in HEADS {
        let jobs = given.put_on("mail", &ordered(head), 2).await;
        given.take("mail").await;
        given.pass(TTL);
        assert_eq!(given.drain(&["mail"]).await, [[jobs[0]], [jobs[1]]]);
    }
}

async fn a_head_that_time_ends_passes_its_turn_on(given: Given) {
    let once = Terms { attempts: Some(1), ..ordered(Head::Block) };
    let jobs = given.put_on("mail", &once, 3).await;
    given.take("mail").await;
    given.pass(TTL);
    let second = given.take("mail").await;
    assert_eq!(second.job().id, jobs[1], "in the turn that took the first from its holder");
    given.change(jobs[1], cancel_within(seconds(5))).await;
    given.pass(seconds(5));
    given.tend().await;
    assert_eq!(stand(&given, &jobs).await, "..q");
}

async fn a_waiting_head_that_is_cancelled_deleted_or_replaced_passes_its_turn_on(given: Given) {
    let unique =
        Unique { key: UniqueKey([7; 16]), window: Window::WhileUnfinished, on_conflict: OnConflict::Replace };
    for change in [Some(cancel_within(seconds(0))), Some(Change::Delete), None] {
        let terms = Terms { unique: Some(unique), ..ordered(Head::Block) };
        let head = given.put(given.on_terms("mail", terms.clone())).await;
        let behind = given.put_on("mail", &ordered(Head::Block), 1).await;
        assert_eq!(stand(&given, &[head, behind[0]]).await, "qb");
        let last = match change {
            Some(change) => {
                assert_eq!(given.change(head, change).await, ChangeOutcome::Done);
                vec![]
            }
            None => {
                let new = given.on_terms("mail", terms);
                let id = new.id;
                assert_eq!(given.offer(new).await, Accepted::Replaced { id, old: head });
                assert_eq!(given.state(id).await, StateName::Blocked);
                vec![vec![id]]
            }
        };
        assert_eq!(given.state(behind[0]).await, StateName::Queued);
        assert_eq!(given.drain(&["mail"]).await, [vec![behind.clone()], last].concat());
    }
}

async fn a_head_keeps_its_turn_in_another_queue(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::Block), 2).await;
    assert_eq!(given.change(jobs[0], Change::Move(queue("post"))).await, ChangeOutcome::Done);
    assert_eq!(stand(&given, &jobs).await, "qb");
    assert_eq!(given.grab(&["mail"]).await, []);
    assert_eq!(given.drain(&["mail", "post"]).await, [[jobs[0]], [jobs[1]]]);
}

async fn a_head_of_a_paused_queue_keeps_its_turn(given: Given) {
    let jobs = [
        given.put(given.on_terms("post", ordered(Head::StepAside))).await,
        given.put(given.on_terms("mail", ordered(Head::StepAside))).await,
    ];
    given.store.set_paused(&queue("post"), true).await.unwrap();
    assert_eq!(given.grab(&["post", "mail"]).await, []);
    given.store.set_paused(&queue("post"), false).await.unwrap();
    assert_eq!(given.drain(&["post", "mail"]).await, [[jobs[0]], [jobs[1]]]);
}

async fn a_blocking_head_that_is_rescheduled_keeps_its_turn(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::Block), 2).await;
    given.change(jobs[0], Change::Reschedule(Due::In(minutes(5)))).await;
    assert_eq!(stand(&given, &jobs).await, "sb");
    given.change(jobs[0], Change::Reschedule(Due::Now)).await;
    assert_eq!(stand(&given, &jobs).await, "qb");
}

async fn a_head_that_steps_aside_passes_its_turn_on_when_it_is_rescheduled(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 2).await;
    given.change(jobs[0], Change::Reschedule(Due::In(minutes(5)))).await;
    assert_eq!(stand(&given, &jobs).await, "sq");
    given.change(jobs[0], Change::Reschedule(Due::Now)).await;
    assert_eq!(stand(&given, &jobs).await, "bq", "the turn is the other's now");
    given.change(jobs[1], Change::Reschedule(Due::In(minutes(5)))).await;
    assert_eq!(stand(&given, &jobs).await, "qs");
}

async fn a_head_that_waits_for_other_jobs_stands_in_the_way_without_the_turn(given: Given) {
    let other = given.put(given.new_job("post")).await;
    let after = after(&[other], tenure_core::IfFailed::Cancel).after;
    let head =
        given.put(given.on_terms("mail", Terms { after: after.clone(), ..ordered(Head::Block) })).await;
    let behind = given.put_on("mail", &ordered(Head::Block), 1).await[0];
    assert_eq!(stand(&given, &[head, behind]).await, "bb");
    assert_eq!(given.grab(&["mail"]).await, []);
    given.succeed(given.take("post").await).await;
    assert_eq!(given.drain(&["mail"]).await, [[head], [behind]]);

    let other = given.put(given.new_job("post")).await;
    let after = tenure_core::AfterJobs { jobs: vec![other], ..after.unwrap() };
    let terms = Terms { after: Some(after), ..ordered(Head::StepAside) };
    let head = given.put(given.on_terms("mail", terms)).await;
    let behind = given.put_on("mail", &ordered(Head::Block), 1).await[0];
    assert_eq!(given.drain(&["mail"]).await, [[behind]], "one that steps aside stands in nobody's way");
    assert_eq!(given.drain(&["post", "mail"]).await, [[other], [head]]);
}
