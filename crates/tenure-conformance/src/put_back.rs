//! What holds for jobs that share keys when the clock is put back: what was due is not due any more, and keeps
//! its place all the same.

use tenure_core::{Block, Due, Head, JobId, Limit, NewJob, Priority, Rate, State, StateName, Timestamp};

use super::given::{Given, ids, minutes, priority, queue, seconds, want};
use super::keyed::{key, limited, ordered};
use super::{Test, test};
use tenure_store::Change;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(jobs_that_are_not_due_any_more_keep_none_from_the_room_that_is_left),
        test(what_a_rate_had_brought_it_brings_later_and_nobody_starts_without),
        test(a_queued_job_that_is_changed_stays_in_line_though_it_is_not_due_any_more),
        test(a_job_that_waits_for_its_turn_and_is_changed_waits_on_though_it_is_not_due_any_more),
    ]
}

fn put_back(given: &Given) {
    given.clock.step_to(given.now().before(minutes(60)));
}

/// A job of the limit that is due by any clock.
fn long_due(given: &Given, kind: &str) -> NewJob {
    NewJob { due: Due::At(Timestamp::EPOCH), ..given.keyed("mail", kind, limited(None)) }
}

async fn jobs_that_are_not_due_any_more_keep_none_from_the_room_that_is_left(given: Given) {
    given.store.set_limit(&key("smtp"), Some(Limit::of(3))).await.unwrap();
    let urgent = NewJob { priority: Priority::FIRST, ..given.keyed("mail", "send", limited(None)) };
    let urgent = given.put(urgent).await;
    put_back(&given);
    let mut jobs = Vec::new();
    for kind in ["send", "print", "print", "send"] {
        jobs.push(given.put(long_due(&given, kind)).await);
    }
    let granted = given.turn(given.ask(vec![want("mail", 9)], 9)).await.jobs;
    assert_eq!(ids(&granted), jobs[..3]);
    assert_eq!(given.states(&[jobs[3], urgent]).await, [StateName::Blocked; 2]);
    for reserved in granted {
        given.succeed(reserved).await;
    }
    assert_eq!(given.drain(&["mail"]).await, [[jobs[3]]]);
    given.pass(minutes(60));
    assert_eq!(given.drain(&["mail"]).await, [[urgent]]);
}

async fn what_a_rate_had_brought_it_brings_later_and_nobody_starts_without(given: Given) {
    let rate = Limit { most: None, rate: Some(Rate::new(1, minutes(1)).burst(2)) };
    given.store.set_limit(&key("smtp"), Some(rate)).await.unwrap();
    let mut jobs = Vec::new();
    for kind in ["send", "send", "send", "print"] {
        jobs.push(given.put(long_due(&given, kind)).await);
    }
    given.succeed(given.reserve_kind("mail", "print").await).await;
    given.succeed(given.take("mail").await).await;
    given.pass(minutes(9));
    given.tend().await;
    given.change(jobs[2], Change::Delete).await;
    assert_eq!(given.state(jobs[1]).await, StateName::Queued);
    put_back(&given);
    assert_eq!(given.grab(&["mail"]).await, []);
    given.pass(minutes(1));
    assert_eq!(given.drain(&["mail"]).await, [[jobs[1]]]);
}

async fn changed(given: &Given, id: JobId) {
    given.change(id, Change::Reprioritise(priority(-1))).await;
    given.change(id, Change::Move(queue("post"))).await;
}

async fn a_queued_job_that_is_changed_stays_in_line_though_it_is_not_due_any_more(given: Given) {
    let jobs = given.put_on("mail", &limited(Some(1)), 3).await;
    put_back(&given);
    changed(&given, jobs[0]).await;
    changed(&given, jobs[2]).await;
    // Each line shows as many as there is room for.
    let expected = [("post", StateName::Queued), ("mail", StateName::Queued), ("post", StateName::Blocked)];
    for (queue, state) in expected {
        assert_eq!(given.count(queue, state).await, 1, "{queue} {state:?}");
    }
    assert_eq!(given.count("post", StateName::Scheduled).await, 0);
    given.pass(minutes(60));
    assert_eq!(given.drain(&["mail", "post"]).await, [[jobs[1]], [jobs[0]], [jobs[2]]]);
}

async fn a_job_that_waits_for_its_turn_and_is_changed_waits_on_though_it_is_not_due_any_more(given: Given) {
    let jobs = given.put_on("mail", &ordered(Head::StepAside), 3).await;
    put_back(&given);
    changed(&given, jobs[1]).await;
    let state = given.job(jobs[1]).await.state;
    assert!(matches!(state, State::Blocked { on: Block::Order, .. }), "{state:?}");
    given.pass(minutes(60) + seconds(1));
    assert_eq!(given.drain(&["mail", "post"]).await, [[jobs[0]], [jobs[1]], [jobs[2]]]);
}
