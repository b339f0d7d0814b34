//! What rates promise: how many start in a time.

use std::time::Duration;

use tenure_core::{Due, JobId, Limit, NewJob, Rate, Reason, StateName, Timestamp, Verdict};

use super::given::{Given, TTL, minutes, priority, queue, retry_at, seconds, want};
use super::keyed::{key, limited, per_second};
use super::{Test, test};

const SECOND: Duration = seconds(1);
const MICRO: Duration = Duration::from_micros(1);

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_burst_starts_together_and_then_one_at_each_interval),
        test(a_start_comes_at_its_instant_and_not_before),
        test(a_rate_is_never_exceeded_in_the_long_run),
        test(what_was_not_used_is_kept_up_to_the_burst),
        test(room_that_comes_by_time_is_noticed_by_a_turn_and_by_tending),
        test(room_grows_one_by_one),
        test(nothing_gives_a_start_back),
        test(one_call_starts_no_more_than_the_rate_allows),
        test(a_rate_and_a_number_bound_together),
        test(nothing_is_due_until_a_rate_lets_the_next_one_start),
        test(nothing_is_expected_of_a_rate_that_blocks_nobody),
        test(a_newcomer_with_a_better_place_starts_first),
        test(setting_the_same_rate_again_gives_nothing_away),
        test(another_rate_counts_at_once),
        test(a_rate_that_was_cleared_is_forgotten),
        test(a_clock_that_was_put_back_costs_a_rate_at_most_one_bucket),
        test(a_clock_that_was_put_back_costs_the_rate_of_a_queue_at_most_one_bucket),
        test(a_rate_that_nobody_waited_for_costs_no_more_after_the_clock_was_put_back),
        test(waiting_for_a_rate_is_explained_by_the_next_start),
    ]
}

async fn set(given: &Given, limit: Limit) {
    given.store.set_limit(&key("smtp"), Some(limit)).await.unwrap();
}

/// So many jobs of a limit with this rate.
async fn rated(given: &Given, limit: Limit, count: usize) -> Vec<JobId> {
    set(given, limit).await;
    given.put_on("mail", &limited(None), count).await
}

async fn starts(given: &Given) -> usize {
    given.grab(&["mail", "post"]).await.len()
}

async fn a_burst_starts_together_and_then_one_at_each_interval(given: Given) {
    rated(&given, per_second(2, 3), 6).await;
    assert_eq!((starts(&given).await, starts(&given).await), (3, 0));
    for _ in 0..3 {
        given.pass(SECOND / 2);
        assert_eq!((starts(&given).await, starts(&given).await), (1, 0));
    }
}

async fn a_start_comes_at_its_instant_and_not_before(given: Given) {
    rated(&given, per_second(4, 1), 2).await;
    assert_eq!(starts(&given).await, 1);
    given.pass(SECOND / 4 - MICRO);
    assert_eq!(starts(&given).await, 0);
    given.pass(MICRO);
    assert_eq!(starts(&given).await, 1);
}

async fn a_rate_is_never_exceeded_in_the_long_run(given: Given) {
    let rate = Rate::new(3, SECOND).burst(2);
    rated(&given, Limit { most: None, rate: Some(rate) }, 200).await;
    let (begin, mut all) = (given.now(), 0);
    for step in 1..=400_u32 {
        let granted = given.grab(&["mail"]).await;
        all += granted.len();
        for reserved in granted {
            given.succeed(reserved).await;
        }
        let passed = given.now().since(begin).as_secs_f64();
        assert!(all as f64 <= 2.0 + passed * 3.0 + 1e-6, "{all} in {passed} seconds");
        // In uneven steps, of 97 milliseconds on average.
        given.pass(Duration::from_micros(u64::from(step * 7_919 % 97 + 1) * 1_980));
    }
    assert!((110..=120).contains(&all), "{all} in {:?}", given.now().since(begin));
}

async fn what_was_not_used_is_kept_up_to_the_burst(given: Given) {
    rated(&given, per_second(1, 2), 8).await;
    assert_eq!(starts(&given).await, 2);
    given.pass(minutes(9));
    assert_eq!(starts(&given).await, 2);
}

async fn room_that_comes_by_time_is_noticed_by_a_turn_and_by_tending(given: Given) {
    let jobs = rated(&given, per_second(1, 1), 3).await;
    assert_eq!(starts(&given).await, 1);
    given.pass(SECOND);
    assert_eq!(given.state(jobs[1]).await, StateName::Blocked, "nobody has looked");
    given.tend().await;
    assert_eq!(given.states(&jobs[1..]).await, [StateName::Queued, StateName::Blocked]);
    assert_eq!(starts(&given).await, 1);
    given.pass(SECOND);
    given.reserve("fax", 1).await;
    assert_eq!(given.state(jobs[2]).await, StateName::Queued, "by whatever turn");
}

async fn room_grows_one_by_one(given: Given) {
    let jobs = rated(&given, per_second(1, 3), 6).await;
    assert_eq!(starts(&given).await, 3);
    for queued in 1..=3 {
        given.pass(SECOND);
        given.tend().await;
        let states = given.states(&jobs).await;
        assert_eq!(states.iter().filter(|state| **state == StateName::Queued).count(), queued);
    }
    assert_eq!(starts(&given).await, 3);
}

async fn nothing_gives_a_start_back(given: Given) {
    let rate = Limit { most: None, rate: Some(Rate::new(1, minutes(60))) };
    let verdicts = [Verdict::Released, retry_at(Due::Now), Verdict::Snoozed(Due::Now)];
    let job = rated(&given, rate, 1).await[0];
    for verdict in verdicts {
        let reserved = given.take("mail").await;
        assert_eq!(given.settle_to(reserved, verdict).await, StateName::Blocked);
        assert_eq!(starts(&given).await, 0);
        given.pass(minutes(60));
    }
    given.take("mail").await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(given.state(job).await, StateName::Blocked, "a lapsed one has started");
}

async fn one_call_starts_no_more_than_the_rate_allows(given: Given) {
    set(&given, per_second(1, 2)).await;
    for (queue, kind) in [("mail", "send"), ("mail", "print"), ("post", "send")] {
        given.put(given.keyed(queue, kind, limited(None))).await;
        given.put(given.keyed(queue, kind, limited(None))).await;
    }
    assert_eq!(starts(&given).await, 2);
    assert_eq!(given.count("post", StateName::Blocked).await, 2);
}

async fn a_rate_and_a_number_bound_together(given: Given) {
    let rate = Some(Rate::new(1, SECOND).burst(3));
    rated(&given, Limit { most: Some(2), rate }, 9).await;
    let mut running = given.grab(&["mail"]).await;
    assert_eq!(running.len(), 2, "the number is smaller");
    given.succeed(running.pop().unwrap()).await;
    given.succeed(running.pop().unwrap()).await;
    running = given.grab(&["mail"]).await;
    assert_eq!(running.len(), 1, "the rate has only one left");
    given.pass(SECOND * 9);
    running.extend(given.grab(&["mail"]).await);
    assert_eq!(running.len(), 2);
}

async fn due_in(given: &Given) -> Option<Duration> {
    given.turn(given.ask(vec![want("fax", 1)], 1)).await.due_in
}

async fn nothing_is_due_until_a_rate_lets_the_next_one_start(given: Given) {
    rated(&given, per_second(1, 1), 2).await;
    let turn = given.turn(given.ask(vec![want("mail", 1)], 1)).await;
    let hint = turn.due_in.expect("a job waits for time alone");
    assert!(hint <= SECOND, "late, it would leave a job lying");
    given.succeed(turn.jobs.into_iter().next().unwrap()).await;
    assert!(due_in(&given).await.unwrap() <= SECOND);
    given.pass(SECOND);
    assert_eq!(starts(&given).await, 1);
}

async fn nothing_is_expected_of_a_rate_that_blocks_nobody(given: Given) {
    rated(&given, per_second(1, 2), 2).await;
    given.drain(&["mail"]).await;
    assert_eq!(due_in(&given).await, None);
}

async fn a_newcomer_with_a_better_place_starts_first(given: Given) {
    let jobs = rated(&given, per_second(1, 1), 2).await;
    starts(&given).await;
    let urgent = NewJob { priority: priority(-1), ..given.on_terms("mail", limited(None)) };
    let urgent = given.put(urgent).await;
    given.pass(SECOND);
    given.tend().await;
    assert_eq!(given.states(&[jobs[1], urgent]).await, [StateName::Blocked, StateName::Queued]);
}

async fn setting_the_same_rate_again_gives_nothing_away(given: Given) {
    rated(&given, per_second(1, 2), 9).await;
    assert_eq!(starts(&given).await, 2);
    set(&given, per_second(1, 2)).await;
    assert_eq!(starts(&given).await, 0);
    given.pass(SECOND);
    set(&given, Limit { most: Some(9), ..per_second(1, 2) }).await;
    assert_eq!(starts(&given).await, 1);
}

async fn another_rate_counts_at_once(given: Given) {
    let hourly = Limit { most: None, rate: Some(Rate::new(1, minutes(60)).burst(10)) };
    rated(&given, hourly, 50).await;
    assert_eq!(starts(&given).await, 10);
    set(&given, per_second(10, 10)).await;
    assert_eq!(starts(&given).await, 0, "what was taken stays taken");
    given.pass(SECOND);
    assert_eq!(starts(&given).await, 10, "but it comes back at the new rate");
    set(&given, Limit::default()).await;
    assert_eq!(starts(&given).await, 30);
}

async fn a_rate_that_was_cleared_is_forgotten(given: Given) {
    rated(&given, per_second(1, 1), 3).await;
    assert_eq!(starts(&given).await, 1);
    given.store.set_limit(&key("smtp"), None).await.unwrap();
    set(&given, per_second(1, 1)).await;
    assert_eq!(starts(&given).await, 1);
}

/// So many jobs of the limit that are due by a clock that is put back, too.
async fn long_due(given: &Given, count: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for _ in 0..count {
        let due = Due::At(Timestamp::EPOCH);
        jobs.push(given.put(NewJob { due, ..given.on_terms("mail", limited(None)) }).await);
    }
    jobs
}

/// What was taken by a clock that was ahead is not owed until that clock is reached again.
async fn a_clock_that_was_put_back_costs_a_rate_at_most_one_bucket(given: Given) {
    set(&given, per_second(1, 2)).await;
    let jobs = long_due(&given, 9).await;
    assert_eq!(starts(&given).await, 2);
    given.clock.step_to(given.now().before(minutes(60)));
    let next = given.now().after(SECOND);
    given.serve(&["mail"]).await;
    assert_eq!(given.why(jobs[2]).await, Reason::RateReached { key: Some(key("smtp")), next });
    let turn = given.turn(given.ask(vec![want("mail", 9)], 9)).await;
    assert_eq!((turn.jobs.len(), turn.due_in.is_some_and(|span| span <= SECOND)), (0, true));
    // Whoever looks meanwhile does not make it longer.
    for _ in 0..2 {
        given.pass(SECOND / 2);
        given.tend().await;
    }
    assert_eq!(starts(&given).await, 1);
    given.pass(SECOND);
    assert_eq!((starts(&given).await, starts(&given).await), (1, 0));
}

async fn a_clock_that_was_put_back_costs_the_rate_of_a_queue_at_most_one_bucket(given: Given) {
    given.store.set_queue_limit(&queue("mail"), per_second(1, 2)).await.unwrap();
    long_due(&given, 9).await;
    assert_eq!(starts(&given).await, 2);
    given.clock.step_to(given.now().before(minutes(60)));
    let turn = given.turn(given.ask(vec![want("mail", 9)], 9)).await;
    assert_eq!((turn.jobs.len(), turn.due_in.is_some_and(|span| span <= SECOND)), (0, true));
    given.pass(SECOND / 2);
    assert_eq!(starts(&given).await, 0);
    given.pass(SECOND / 2);
    assert_eq!(starts(&given).await, 1);
    given.pass(SECOND);
    assert_eq!((starts(&given).await, starts(&given).await), (1, 0));
}

async fn a_rate_that_nobody_waited_for_costs_no_more_after_the_clock_was_put_back(given: Given) {
    rated(&given, per_second(1, 2), 2).await;
    assert_eq!(starts(&given).await, 2);
    given.clock.step_to(given.now().before(minutes(60)));
    given.put_on("mail", &limited(None), 3).await;
    assert_eq!(starts(&given).await, 0);
    given.pass(SECOND * 2);
    assert_eq!(starts(&given).await, 2);
}

async fn waiting_for_a_rate_is_explained_by_the_next_start(given: Given) {
    given.serve(&["mail"]).await;
    let jobs = rated(&given, per_second(1, 1), 2).await;
    assert_eq!(given.why(jobs[0]).await, Reason::Next { ahead: 0 });
    starts(&given).await;
    let next = given.now().after(SECOND);
    assert_eq!(given.why(jobs[1]).await, Reason::RateReached { key: Some(key("smtp")), next });
    given.pass(SECOND);
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 0 }, "noticed or not");
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    given.tend().await;
    assert_eq!(given.why(jobs[1]).await, Reason::QueuePaused { queue: queue("mail") });
}
