//! What reserving promises.

use std::time::Duration;

use tenure_core::{
    AttemptEnd, Cause, Due, End, Epoch, JobId, NewJob, RetryPolicy, State, StateName, Terms, Verdict, Why,
    limits,
};

use super::given::{
    Given, TTL, cancel_within, decide, held, host, ids, minutes, priority, queue, retry, retry_at, seconds,
    want, want_kinds,
};
use super::{Test, test};
use tenure_store::{Change, Reserve, Settled};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(jobs_are_granted_by_priority_then_due_then_acceptance),
        test(a_thousand_jobs_of_one_instant_are_granted_in_the_order_of_acceptance),
        test(a_granted_job_runs_under_its_holder_until_the_lease_ends),
        test(what_is_granted_is_what_is_stored),
        test(a_running_job_is_granted_to_nobody_else),
        test(a_finished_job_is_not_granted_again),
        test(a_cancelled_job_is_never_granted),
        test(a_job_is_granted_at_its_instant_and_not_before),
        test(wants_are_served_in_their_order),
        test(a_want_is_bounded_and_leaves_the_rest_to_the_next),
        test(a_turn_is_bounded_over_all_wants),
        test(a_turn_grants_at_most_the_limit),
        test(a_turn_for_no_jobs_or_no_queues_grants_none),
        test(a_queue_that_was_never_named_has_nothing),
        test(a_kind_that_is_not_wanted_is_left_for_others),
        test(several_wanted_kinds_are_granted_in_one_order),
        test(a_worker_that_knows_no_kind_is_granted_nothing),
        test(a_paused_queue_hands_out_nothing_and_the_others_go_on),
        test(a_lapsed_job_is_granted_to_the_next_who_asks),
        test(a_lapsed_job_returns_to_its_old_place_in_line),
        test(a_lapsed_job_of_a_queue_that_is_not_wanted_waits_again),
        test(each_grant_has_a_greater_fence),
        test(each_grant_counts_an_attempt_and_a_delivery),
        test(a_job_that_silences_its_holders_ends_at_its_limit_of_attempts),
        test(a_job_that_silences_its_holders_ends_at_its_limit_of_deliveries),
        test(a_job_is_taken_from_a_deaf_holder_at_the_end_of_its_grace),
        test(a_job_that_keeps_failing_does_not_block_those_behind_it),
        test(a_grant_clears_the_progress_and_keeps_the_failure),
        test(a_clock_that_steps_back_grants_nothing_twice),
        test(a_clock_that_steps_back_grants_nothing_early),
        test(nothing_is_due_until_the_first_scheduled_job_is),
        test(nothing_is_due_until_the_first_lapse),
        test(nothing_is_due_until_the_first_grace_ends),
        test(nothing_is_expected_of_an_empty_store),
    ]
}

async fn jobs_are_granted_by_priority_then_due_then_acceptance(given: Given) {
    let at = |seconds_ago: u64| Due::At(given.now().before(seconds(seconds_ago)));
    let job = |number: i64, due: Due| NewJob { priority: priority(number), due, ..given.new_job("mail") };
    let batch =
        vec![job(0, at(1)), job(0, at(1)), job(0, at(2)), job(5, at(9)), job(-5, at(0)), job(100, at(0))];
    let order: Vec<JobId> = [4, 2, 0, 1, 3, 5].map(|index: usize| batch[index].id).to_vec();
    given.enqueue_all(batch).await;
    let mut granted = ids(&given.reserve("mail", 2).await);
    granted.extend(ids(&given.reserve("mail", 9).await));
    assert_eq!(granted, order);
}

/// T102
async fn a_thousand_jobs_of_one_instant_are_granted_in_the_order_of_acceptance(given: Given) {
    let batch: Vec<NewJob> = (0..1_000).map(|_| given.due_in("mail", minutes(1))).collect();
    let order: Vec<JobId> = batch.iter().map(|job| job.id).collect();
    given.enqueue_all(batch).await;
    given.pass(minutes(1));
    let mut granted = Vec::new();
    for _ in 0..4 {
        granted.extend(ids(&given.reserve("mail", 250).await));
    }
    assert_eq!(granted, order);
}

async fn a_granted_job_runs_under_its_holder_until_the_lease_ends(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let due = given.now();
    given.pass(seconds(3));
    given.take("mail").await;
    let job = given.job(id).await;
    let until = given.now().after(TTL);
    assert_eq!(job.state, State::Running { holder: given.holder, until, due });
    assert_eq!((job.holder, job.started), (Some(given.holder), Some(given.now())));
}

async fn what_is_granted_is_what_is_stored(given: Given) {
    let id = given.put(given.with_attempts("mail", 3)).await;
    let before = given.job(id).await;
    given.pass(seconds(3));
    let reserved = given.take("mail").await;
    let until = given.now().after(TTL);
    let epoch = Epoch::new(reserved.fence().number() - 1);
    let granted = before.granted(given.holder, epoch, given.now(), until);
    assert_eq!(*reserved.job(), granted);
    assert_eq!(given.job(id).await, granted);
}

/// S7
async fn a_running_job_is_granted_to_nobody_else(given: Given) {
    given.running().await;
    given.pass(TTL - seconds(1));
    let other = Reserve { holder: host(2), ..given.ask(vec![want("mail", 9)], 9) };
    assert_eq!(given.turn(other).await.jobs, []);
}

async fn a_finished_job_is_not_granted_again(given: Given) {
    given.succeeded().await;
    given.fail(given.running().await).await;
    given.pass(minutes(600));
    assert_eq!(given.reserve("mail", 9).await, []);
}

/// S16, T147
async fn a_cancelled_job_is_never_granted(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.cancel(id).await;
    given.pass(minutes(600));
    assert_eq!(given.reserve("mail", 9).await, []);
}

async fn a_job_is_granted_at_its_instant_and_not_before(given: Given) {
    let id = given.put(given.due_in("mail", seconds(60))).await;
    given.pass(std::time::Duration::from_micros(59_999_999));
    assert_eq!(given.reserve("mail", 9).await, []);
    given.pass(std::time::Duration::from_micros(1));
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

async fn wants_are_served_in_their_order(given: Given) {
    let mail = given.enqueue("mail", 2).await;
    let urgent = given.put(NewJob { priority: priority(-100), ..given.new_job("post") }).await;
    let granted = given.turn(given.ask(vec![want("mail", 9), want("post", 9)], 9)).await;
    assert_eq!(ids(&granted.jobs), [mail[0], mail[1], urgent]);
}

async fn a_want_is_bounded_and_leaves_the_rest_to_the_next(given: Given) {
    let (mail, post) = (given.enqueue("mail", 3).await, given.enqueue("post", 3).await);
    let granted = given.turn(given.ask(vec![want("mail", 2), want("post", 1)], 9)).await;
    assert_eq!(ids(&granted.jobs), [mail[0], mail[1], post[0]]);
}

async fn a_turn_is_bounded_over_all_wants(given: Given) {
    let (mail, post) = (given.enqueue("mail", 3).await, given.enqueue("post", 3).await);
    let granted = given.turn(given.ask(vec![want("mail", 2), want("post", 9)], 3)).await;
    assert_eq!(ids(&granted.jobs), [mail[0], mail[1], post[0]]);
    assert_eq!(given.state(post[1]).await, StateName::Queued);
}

async fn a_turn_grants_at_most_the_limit(given: Given) {
    given.enqueue("mail", limits::RESERVE_JOBS + 1).await;
    assert_eq!(given.reserve("mail", usize::MAX).await.len(), limits::RESERVE_JOBS);
    assert_eq!(given.reserve("mail", usize::MAX).await.len(), 1);
}

async fn a_turn_for_no_jobs_or_no_queues_grants_none(given: Given) {
    given.enqueue("mail", 2).await;
    assert_eq!(given.turn(given.ask(vec![want("mail", 9)], 0)).await.jobs, []);
    assert_eq!(given.turn(given.ask(vec![want("mail", 0)], 9)).await.jobs, []);
    assert_eq!(given.turn(given.ask(vec![], 9)).await.jobs, []);
    assert_eq!(given.count("mail", StateName::Queued).await, 2);
}

async fn a_queue_that_was_never_named_has_nothing(given: Given) {
    given.enqueue("mail", 1).await;
    assert_eq!(given.reserve("mai", 9).await, []);
    assert_eq!(given.reserve("mail2", 9).await, []);
    let names: Vec<_> = given.store.queues().await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, [queue("mail")], "asking for jobs does not name a queue");
}

/// T098: what a worker does not know is left, and does not stand in the way.
async fn a_kind_that_is_not_wanted_is_left_for_others(given: Given) {
    let strange = given.put(given.of_kind("mail", "print")).await;
    let known = given.put(given.of_kind("mail", "send")).await;
    let granted = given.turn(given.ask(vec![want_kinds("mail", &["send"], 9)], 9)).await;
    assert_eq!(ids(&granted.jobs), [known]);
    assert_eq!(given.job(strange).await.delivery, 0);
    let granted = given.turn(given.ask(vec![want_kinds("mail", &["print"], 9)], 9)).await;
    assert_eq!(ids(&granted.jobs), [strange]);
}

async fn several_wanted_kinds_are_granted_in_one_order(given: Given) {
    let kinds = ["print", "send", "fold", "send", "print"];
    let batch: Vec<NewJob> = kinds.iter().map(|kind| given.of_kind("mail", kind)).collect();
    let order: Vec<JobId> = [0, 1, 3, 4].map(|index: usize| batch[index].id).to_vec();
    given.enqueue_all(batch).await;
    let granted = given.turn(given.ask(vec![want_kinds("mail", &["send", "print"], 9)], 9)).await;
    assert_eq!(ids(&granted.jobs), order);
}

async fn a_worker_that_knows_no_kind_is_granted_nothing(given: Given) {
    given.enqueue("mail", 1).await;
    assert_eq!(given.turn(given.ask(vec![want_kinds("mail", &[], 9)], 9)).await.jobs, []);
}

async fn a_paused_queue_hands_out_nothing_and_the_others_go_on(given: Given) {
    let mail = given.enqueue("mail", 1).await;
    let post = given.enqueue("post", 1).await;
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    let wants = || given.ask(vec![want("mail", 9), want("post", 9)], 9);
    assert_eq!(ids(&given.turn(wants()).await.jobs), post);
    given.store.set_paused(&queue("mail"), false).await.unwrap();
    assert_eq!(ids(&given.turn(wants()).await.jobs), mail);
}

async fn a_lapsed_job_is_granted_to_the_next_who_asks(given: Given) {
    let lost = given.running().await;
    given.pass(TTL);
    let other = Reserve { holder: host(2), ..given.ask(vec![want("mail", 9)], 9) };
    let granted = given.turn(other).await.jobs;
    assert_eq!(ids(&granted), [lost.job().id]);
    assert_eq!(granted[0].job().holder, Some(host(2)));
    assert_eq!(granted[0].job().attempt, 2, "an attempt that was lost is spent");
    let cause = granted[0].job().failure.as_ref().map(|failure| failure.cause);
    assert_eq!(cause, Some(Cause::Lost));
}

async fn a_lapsed_job_returns_to_its_old_place_in_line(given: Given) {
    let first = given.running().await.job().id;
    given.pass(seconds(1));
    let second = given.enqueue("mail", 1).await[0];
    given.pass(TTL);
    assert_eq!(ids(&given.reserve("mail", 9).await), [first, second]);
}

async fn a_lapsed_job_of_a_queue_that_is_not_wanted_waits_again(given: Given) {
    let reserved = given.running().await;
    let State::Running { due, .. } = reserved.job().state else { panic!("it runs") };
    given.pass(TTL);
    given.reserve("post", 1).await;
    let job = given.job(reserved.job().id).await;
    assert_eq!(job.state, State::Waiting { due, why: Why::Lost });
    assert!(job.fence > reserved.fence(), "the silent holder is fenced off");
}

/// T008, S1: through giving back, retrying, silence, cancelling and doing again.
async fn each_grant_has_a_greater_fence(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let mut last = given.job(id).await.fence;
    for round in 0..10 {
        let reserved = given.take("mail").await;
        assert!(reserved.fence() > last, "round {round}");
        last = reserved.fence();
        match round % 5 {
            0 => given.release(reserved).await,
            1 => drop(given.settle(reserved, retry_at(Due::Now)).await),
            2 => given.pass(TTL),
            3 => {
                given.succeed(reserved).await;
                given.change(id, Change::Redo).await;
            }
            _ => {
                given.change(id, cancel_within(seconds(1))).await;
                given.pass(seconds(1));
                given.tend().await;
                assert!(given.job(id).await.fence > last, "round {round}");
                given.change(id, Change::Redo).await;
            }
        }
    }
}

async fn each_grant_counts_an_attempt_and_a_delivery(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let mut counted = Vec::new();
    for verdict in [Verdict::Released, retry_at(Due::Now), Verdict::Snoozed(Due::Now), retry_at(Due::Now)] {
        let reserved = given.take("mail").await;
        counted.push((reserved.job().attempt, reserved.job().delivery));
        given.settle(reserved, verdict).await;
    }
    assert_eq!(counted, [(1, 1), (1, 2), (2, 3), (2, 4)], "what was given back is not spent");
    assert_eq!((given.job(id).await.attempt, given.job(id).await.delivery), (2, 4));
}

/// T092
async fn a_job_that_silences_its_holders_ends_at_its_limit_of_attempts(given: Given) {
    let id = given.put(given.with_attempts("mail", 2)).await;
    for _ in 0..2 {
        given.take("mail").await;
        given.pass(TTL);
    }
    assert_eq!(given.reserve("mail", 9).await, []);
    let job = given.job(id).await;
    assert_eq!(job.state, State::Finished { at: given.now(), end: End::Failed });
    assert_eq!(job.failure.map(|failure| failure.cause), Some(Cause::Lost));
    assert_eq!(job.attempt, 2);
}

async fn a_job_that_silences_its_holders_ends_at_its_limit_of_deliveries(given: Given) {
    let retry = RetryPolicy { max_attempts: 100, max_deliveries: 3, ..RetryPolicy::default() };
    let id = given.put(given.on_terms("mail", Terms { retry: Some(retry), ..Terms::default() })).await;
    given.release(given.take("mail").await).await;
    for _ in 0..2 {
        given.take("mail").await;
        given.pass(TTL);
    }
    assert_eq!(given.reserve("mail", 9).await, []);
    assert_eq!(given.state(id).await, StateName::Failed);
}

/// T147: running = signal, then bounded.
async fn a_job_is_taken_from_a_deaf_holder_at_the_end_of_its_grace(given: Given) {
    let deaf = given.running().await;
    let id = deaf.job().id;
    given.change(id, cancel_within(seconds(20))).await;
    given.pass(seconds(19));
    given.renew(held(&deaf), minutes(60)).await;
    given.reserve("mail", 9).await;
    assert_eq!(given.state(id).await, StateName::Running);
    given.pass(seconds(1));
    assert_eq!(given.reserve("mail", 9).await, []);
    let job = given.job(id).await;
    assert_eq!(job.state, State::Finished { at: given.now(), end: End::Cancelled });
    assert_eq!(job.failure.map(|failure| failure.cause), Some(Cause::Deaf));
    assert_eq!(given.settle(deaf, Verdict::Succeeded(None)).await, Settled::Fenced);
    assert_eq!(given.attempts(id).await[0].ended, Some((given.now(), AttemptEnd::Cancelled)));
}

/// T103
async fn a_job_that_keeps_failing_does_not_block_those_behind_it(given: Given) {
    let urgent = NewJob { priority: priority(-100), ..given.new_job("mail") };
    given.put(urgent).await;
    let behind = given.enqueue("mail", 3).await;
    let mut done = Vec::new();
    for _ in 0..4 {
        let reserved = given.take("mail").await;
        if reserved.job().priority == priority(-100) {
            given.settle(reserved, retry()).await;
            continue;
        }
        done.push(reserved.job().id);
        given.succeed(reserved).await;
    }
    assert_eq!(done, behind);
}

async fn a_grant_clears_the_progress_and_keeps_the_failure(given: Given) {
    let reserved = given.running().await;
    let progress = Some(tenure_core::Progress::new(0.5, "half").unwrap());
    let report = tenure_store::Report { held: held(&reserved), progress: progress.clone(), lines: vec![] };
    given.store.report(vec![report]).await.unwrap();
    given.settle(reserved, retry_at(Due::Now)).await;
    let waiting = given.all().await.remove(0);
    assert_eq!(waiting.progress, progress, "it tells how far the last attempt has come");
    let next = given.take("mail").await;
    assert_eq!((next.job().progress.clone(), next.job().failure.clone()), (None, waiting.failure));
    assert!(next.job().failure.is_some());
    assert_eq!(given.job(next.job().id).await, *next.job());
}

/// T097: a shift of the clock is harmless.
async fn a_clock_that_steps_back_grants_nothing_twice(given: Given) {
    let reserved = given.running().await;
    given.clock.step_to(given.now().before(minutes(600)));
    assert_eq!(given.reserve("mail", 9).await, []);
    given.succeed(reserved).await;
    given.clock.step_to(given.now().after(minutes(1_200)));
    assert_eq!(given.reserve("mail", 9).await, []);
}

async fn a_clock_that_steps_back_grants_nothing_early(given: Given) {
    let id = given.put(given.due_in("mail", seconds(10))).await;
    given.pass(seconds(10));
    given.tend().await;
    given.clock.step_to(given.now().before(seconds(5)));
    assert_eq!(given.reserve("mail", 9).await, [], "although it had been found due before");
    given.pass(seconds(5));
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

async fn due_in(given: &Given) -> Option<Duration> {
    given.turn(given.ask(vec![want("mail", 9)], 9)).await.due_in
}

async fn nothing_is_due_until_the_first_scheduled_job_is(given: Given) {
    given.put(given.due_in("mail", minutes(9))).await;
    given.put(given.due_in("post", minutes(5))).await;
    assert_eq!(due_in(&given).await, Some(minutes(5)), "in whichever queue");
    given.pass(minutes(5));
    assert_eq!(due_in(&given).await, Some(minutes(4)));
}

async fn nothing_is_due_until_the_first_lapse(given: Given) {
    given.enqueue("mail", 1).await;
    given.put(given.due_in("mail", minutes(9))).await;
    assert_eq!(due_in(&given).await, Some(TTL), "what was just granted may lapse");
}

async fn nothing_is_due_until_the_first_grace_ends(given: Given) {
    let reserved = given.running().await;
    given.change(reserved.job().id, cancel_within(seconds(7))).await;
    assert_eq!(due_in(&given).await, Some(seconds(7)));
}

async fn nothing_is_expected_of_an_empty_store(given: Given) {
    assert_eq!(due_in(&given).await, None);
    let settlement = decide(given.running().await, Verdict::Succeeded(None));
    assert_eq!(given.write(settlement).await, Settled::Done(StateName::Succeeded));
    assert_eq!(due_in(&given).await, None, "what has finished comes due no more");
}
