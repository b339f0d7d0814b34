//! What the record of attempts promises.

use tenure_core::{Attempt, AttemptEnd, Cause, Due, Verdict, limits};

use super::given::{Given, TTL, cancel_within, failed, retry_at, seconds, trouble};
use super::{Test, test};
use tenure_store::Change;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_that_never_ran_has_no_attempts),
        test(a_job_that_is_not_there_has_no_attempts),
        test(a_running_attempt_is_listed_without_an_end),
        test(every_way_out_of_running_is_recorded),
        test(attempts_are_listed_oldest_first),
        test(what_was_given_back_repeats_its_number),
        test(a_lost_attempt_is_recorded_with_its_holder),
        test(the_attempts_before_a_job_was_done_again_stay),
        test(cancelling_a_waiting_job_makes_no_attempt),
        test(the_oldest_attempts_make_room),
    ]
}

async fn a_job_that_never_ran_has_no_attempts(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    assert_eq!(given.attempts(id).await, []);
}

async fn a_job_that_is_not_there_has_no_attempts(given: Given) {
    given.succeeded().await;
    assert_eq!(given.attempts(given.id()).await, []);
}

async fn a_running_attempt_is_listed_without_an_end(given: Given) {
    let reserved = given.running().await;
    let expected = Attempt {
        attempt: 1,
        delivery: 1,
        fence: reserved.fence(),
        holder: given.holder,
        started: given.now(),
        ended: None,
        failure: None,
    };
    given.pass(seconds(1));
    assert_eq!(given.attempts(reserved.job().id).await, [expected]);
}

async fn every_way_out_of_running_is_recorded(given: Given) {
    let went_wrong = Some(trouble("try later"));
    let ways = [
        (Verdict::Succeeded(None), AttemptEnd::Succeeded, None),
        (failed(), AttemptEnd::Failed, Some(trouble("no such address"))),
        (retry_at(Due::In(seconds(600))), AttemptEnd::Retried, went_wrong),
        (Verdict::Snoozed(Due::In(seconds(600))), AttemptEnd::Snoozed, None),
        (Verdict::Cancelled(trouble("stopped")), AttemptEnd::Cancelled, Some(trouble("stopped"))),
        (Verdict::Released, AttemptEnd::Released, None),
    ];
    for (verdict, how, failure) in ways {
        let reserved = given.running().await;
        let (id, fence, started) = (reserved.job().id, reserved.fence(), given.now());
        given.pass(seconds(3));
        given.settle(reserved, verdict).await;
        let ended = Some((given.now(), how));
        let expected =
            Attempt { attempt: 1, delivery: 1, fence, holder: given.holder, started, ended, failure };
        assert_eq!(given.attempts(id).await, [expected]);
    }
}

async fn attempts_are_listed_oldest_first(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    for _ in 0..4 {
        given.settle(given.take("mail").await, retry_at(Due::Now)).await;
        given.pass(seconds(1));
    }
    given.take("mail").await;
    let attempts = given.attempts(id).await;
    assert_eq!(
        attempts.iter().map(|a| (a.attempt, a.delivery)).collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    );
    assert!(attempts.windows(2).all(|two| two[0].fence < two[1].fence));
    assert!(attempts.iter().map(|a| a.ended.is_some()).eq([true, true, true, true, false]));
}

async fn what_was_given_back_repeats_its_number(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    for verdict in
        [Verdict::Released, Verdict::Snoozed(Due::Now), retry_at(Due::Now), Verdict::Succeeded(None)]
    {
        given.settle(given.take("mail").await, verdict).await;
    }
    let numbers: Vec<_> = given.attempts(id).await.iter().map(|a| (a.attempt, a.delivery)).collect();
    assert_eq!(numbers, [(1, 1), (1, 2), (1, 3), (2, 4)]);
}

async fn a_lost_attempt_is_recorded_with_its_holder(given: Given) {
    let reserved = given.running().await;
    let started = given.now();
    given.pass(TTL + seconds(5));
    given.tend().await;
    let lost = given.attempts(reserved.job().id).await.remove(0);
    assert_eq!((lost.holder, lost.fence, lost.started), (given.holder, reserved.fence(), started));
    assert_eq!(lost.ended, Some((given.now(), AttemptEnd::Lost)));
    assert_eq!(lost.failure.map(|failure| failure.cause), Some(Cause::Lost));
}

async fn the_attempts_before_a_job_was_done_again_stay(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.fail(reserved).await;
    given.change(id, Change::Redo).await;
    let listed = given.attempts(id).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].ended.map(|(_, how)| how), Some(AttemptEnd::Failed));
    given.succeed(given.take("mail").await).await;
    let numbers: Vec<_> = given.attempts(id).await.iter().map(|a| (a.attempt, a.delivery)).collect();
    assert_eq!(numbers, [(1, 1), (1, 2)]);
}

async fn cancelling_a_waiting_job_makes_no_attempt(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.change(id, cancel_within(seconds(1))).await;
    assert_eq!(given.attempts(id).await, []);
}

async fn the_oldest_attempts_make_room(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let beyond = 5;
    for _ in 0..limits::ATTEMPTS_KEPT + beyond {
        given.release(given.take("mail").await).await;
    }
    let deliveries: Vec<u32> = given.attempts(id).await.iter().map(|a| a.delivery).collect();
    let kept: Vec<u32> = (beyond + 1..=limits::ATTEMPTS_KEPT + beyond).collect();
    assert_eq!(deliveries, kept);
}
