//! What holds for jobs that share keys when the clock is put back: what was due is not due any more, and keeps
//! its place all the same.

use tenure_core::{
    Block, Due, Head, JobId, Limit, NewJob, Priority, Rate, State, StateName, Timestamp, Verdict, Why,
};

use super::given::{Given, ids, minutes, much_metadata, priority, queue, retry, seconds, want};
use super::keyed::{key, limited, ordered};
use super::{Test, test};
use tenure_store::{Change, ClockCorrection};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(jobs_that_are_not_due_any_more_keep_none_from_the_room_that_is_left),
        test(what_a_rate_had_brought_it_brings_later_and_nobody_starts_without),
        test(a_queued_job_that_is_changed_stays_in_line_though_it_is_not_due_any_more),
        test(a_job_that_waits_for_its_turn_and_is_changed_waits_on_though_it_is_not_due_any_more),
        test(a_job_without_a_delay_starts_once_the_clock_is_corrected),
        test(a_job_with_a_due_time_of_its_own_keeps_it_when_the_clock_is_corrected),
        test(a_correction_leaves_jobs_alone_that_a_right_clock_accepted),
        test(a_correction_makes_a_bounded_number_of_jobs_due_at_a_time),
        test(a_correction_finds_jobs_behind_many_with_much_metadata),
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

/// Runs all steps of a program that starts after the correction, and returns their number.
async fn correct(given: &Given) -> usize {
    let mut correction = ClockCorrection::default();
    assert!(!correction.step(&*given.store).await.unwrap(), "the first step looks for nothing");
    let mut steps = 1;
    while correction.step(&*given.store).await.unwrap() {
        steps += 1;
    }
    steps
}

async fn a_job_without_a_delay_starts_once_the_clock_is_corrected(given: Given) {
    let plain = given.put(given.new_job("mail")).await;
    let turns = given.put_on("post", &ordered(Head::Block), 2).await;
    let sums = given.put_on("sums", &limited(Some(1)), 2).await;
    let released = given.put(given.new_job("late")).await;
    let held = given.take("late").await;
    put_back(&given);
    given.settle(held, Verdict::Released).await;
    assert_eq!(given.grab(&["mail", "post", "sums", "late"]).await, []);
    correct(&given).await;
    let job = given.job(plain).await;
    assert_eq!(job.state, State::Waiting { due: given.now(), why: Why::Enqueued });
    assert_eq!(job.created, given.now().after(minutes(60)), "what the clock showed stays on record");
    assert_eq!(
        given.drain(&["mail", "post", "sums", "late"]).await,
        [vec![plain, turns[0], sums[0], released], vec![turns[1], sums[1]]]
    );
}

async fn a_job_with_a_due_time_of_its_own_keeps_it_when_the_clock_is_corrected(given: Given) {
    let again = given.put(given.with_attempts("mail", 2)).await;
    given.settle(given.take("mail").await, retry()).await;
    let at = NewJob { due: Due::At(given.now().before(minutes(1))), ..given.new_job("mail") };
    let jobs = [again, given.put(at).await, given.put(given.due_in("mail", minutes(10))).await];
    let moved = given.put(given.new_job("mail")).await;
    given.change(moved, Change::Reschedule(Due::In(minutes(5)))).await;
    put_back(&given);
    let before = given.all().await;
    correct(&given).await;
    assert_eq!(given.all().await, before);
    assert_eq!(given.states(&[jobs[0], jobs[1], jobs[2], moved]).await, [StateName::Scheduled; 4]);
}

async fn a_correction_leaves_jobs_alone_that_a_right_clock_accepted(given: Given) {
    let mut correction = ClockCorrection::default();
    given.put(given.new_job("mail")).await;
    given.put(given.due_in("mail", minutes(10))).await;
    given.put_on("post", &ordered(Head::Block), 2).await;
    let before = given.all().await;
    for _ in 0..3 {
        assert!(!correction.step(&*given.store).await.unwrap());
        given.pass(seconds(5));
    }
    assert_eq!(given.all().await, before);
    // A later step back is noticed, too.
    given.clock.step_to(given.now().after(minutes(60)));
    assert!(!correction.step(&*given.store).await.unwrap());
    let early = given.put(given.new_job("early")).await;
    put_back(&given);
    let right = given.put(given.new_job("early")).await;
    correction.step(&*given.store).await.unwrap();
    assert_eq!(given.drain(&["early"]).await, [[early, right]]);
    // A step also finds a job that the store accepted during a clock error between two steps.
    given.clock.step_to(given.now().after(minutes(60)));
    let unseen = given.put(given.new_job("early")).await;
    put_back(&given);
    given.pass(seconds(30));
    correction.step(&*given.store).await.unwrap();
    assert_eq!(given.drain(&["early"]).await, [[]; 0]);
    given.pass(seconds(30));
    correction.step(&*given.store).await.unwrap();
    assert_eq!(given.drain(&["early"]).await, [[unseen]]);
}

async fn a_correction_makes_a_bounded_number_of_jobs_due_at_a_time(given: Given) {
    let jobs = given.enqueue("mail", 250).await;
    put_back(&given);
    assert_eq!(correct(&given).await, 3);
    assert_eq!(ids(&given.reserve("mail", 1_000).await), jobs, "they keep their order");
}

/// A page ends early among large jobs. The search must not take that for its end.
async fn a_correction_finds_jobs_behind_many_with_much_metadata(given: Given) {
    let early = given.put(given.new_job("early")).await;
    put_back(&given);
    let (terms, many) = much_metadata();
    let later = || NewJob { due: Due::In(minutes(10)), ..given.on_terms("mail", terms.clone()) };
    given.enqueue_all((0..many).map(|_| later()).collect()).await;
    let steps = correct(&given).await;
    let job = given.job(early).await;
    assert_eq!(job.state, State::Waiting { due: given.now(), why: Why::Enqueued }, "{steps} steps");
    assert_eq!(given.drain(&["early"]).await, [[early]]);
}
