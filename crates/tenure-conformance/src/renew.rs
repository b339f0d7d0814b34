//! What renewing promises.

use tenure_core::{CancelRequest, Epoch, Fence, Job, Reserved, State, Verdict};

use super::given::{Given, TTL, cancel_within, held, minutes, seconds};
use super::{Test, test};
use tenure_store::{Change, Held, Holds, Renew, Renewal, Settled};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_renewal_counts_from_now),
        test(a_renewal_may_also_end_sooner_and_the_next_one_later_again),
        test(a_renewed_job_does_not_lapse_when_it_would_have),
        test(a_renewal_changes_nothing_but_the_end_of_the_lease),
        test(a_renewal_that_comes_too_late_is_told_so_and_changes_nothing),
        test(a_renewal_of_what_somebody_else_has_taken_is_lost),
        test(a_renewal_of_what_was_swept_is_lost_although_nobody_has_it),
        test(a_renewal_of_what_was_settled_is_lost),
        test(a_renewal_of_what_is_not_there_is_lost),
        test(a_renewal_under_a_fence_to_come_is_lost),
        test(a_renewal_tells_the_wish_to_cancel_each_time),
        test(a_renewal_does_not_put_off_the_end_of_the_grace),
        test(renewals_are_answered_one_by_one_in_order),
        test(renewing_nothing_is_answered_with_nothing),
    ]
}

fn until(job: &Job) -> tenure_core::Timestamp {
    let State::Running { until, .. } = job.state else { panic!("it runs: {:?}", job.state) };
    until
}

async fn stored(given: &Given, reserved: &Reserved) -> Job {
    given.job(reserved.job().id).await
}

fn kept(until: tenure_core::Timestamp) -> Renewal {
    Renewal::Held(Holds { until, cancel: None })
}

async fn a_renewal_counts_from_now(given: Given) {
    let reserved = given.running().await;
    given.pass(seconds(10));
    let expected = given.now().after(minutes(2));
    assert_eq!(given.renew(held(&reserved), minutes(2)).await, kept(expected));
    assert_eq!(until(&stored(&given, &reserved).await), expected);
}

/// T024
async fn a_renewal_may_also_end_sooner_and_the_next_one_later_again(given: Given) {
    let reserved = given.running().await;
    for ttl in [seconds(2), minutes(5), seconds(1), minutes(1)] {
        assert_eq!(given.renew(held(&reserved), ttl).await, kept(given.now().after(ttl)));
    }
}

async fn a_renewed_job_does_not_lapse_when_it_would_have(given: Given) {
    let reserved = given.running().await;
    for _ in 0..5 {
        given.pass(TTL - seconds(1));
        given.renew(held(&reserved), TTL).await;
        assert_eq!(given.reserve("mail", 9).await, []);
    }
    given.succeed(reserved).await;
}

async fn a_renewal_changes_nothing_but_the_end_of_the_lease(given: Given) {
    let reserved = given.running().await;
    given.pass(seconds(10));
    given.renew(held(&reserved), TTL).await;
    let mut expected = reserved.job().clone();
    let State::Running { until, .. } = &mut expected.state else { panic!("it runs") };
    *until = given.now().after(TTL);
    assert_eq!(stored(&given, &reserved).await, expected);
}

/// T005
async fn a_renewal_that_comes_too_late_is_told_so_and_changes_nothing(given: Given) {
    let reserved = given.running().await;
    given.pass(TTL);
    for _ in 0..2 {
        assert_eq!(given.renew(held(&reserved), TTL).await, Renewal::Lapsed);
        assert_eq!(stored(&given, &reserved).await, *reserved.job());
    }
    assert_eq!(given.reserve("mail", 9).await.len(), 1, "it is there for the next");
}

/// T095
async fn a_renewal_of_what_somebody_else_has_taken_is_lost(given: Given) {
    let slow = given.running().await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    assert_eq!(given.renew(held(&slow), minutes(60)).await, Renewal::Lost);
    assert_eq!(stored(&given, &quick).await, *quick.job(), "the new holder is unaffected");
}

async fn a_renewal_of_what_was_swept_is_lost_although_nobody_has_it(given: Given) {
    let reserved = given.running().await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(given.renew(held(&reserved), TTL).await, Renewal::Lost);
}

async fn a_renewal_of_what_was_settled_is_lost(given: Given) {
    for verdict in [Verdict::Succeeded(None), Verdict::Released] {
        let reserved = given.running().await;
        let ownership = held(&reserved);
        given.settle(reserved, verdict).await;
        let before = given.job(ownership.id).await;
        assert_eq!(given.renew(ownership, TTL).await, Renewal::Lost);
        assert_eq!(given.job(ownership.id).await, before);
    }
}

async fn a_renewal_of_what_is_not_there_is_lost(given: Given) {
    let reserved = given.running().await;
    let ownership = held(&reserved);
    given.succeed(reserved).await;
    given.change(ownership.id, Change::Delete).await;
    assert_eq!(given.renew(ownership, TTL).await, Renewal::Lost);
    let unknown = Held { id: given.id(), seq: 77, fence: Fence::from_number(1) };
    assert_eq!(given.renew(unknown, TTL).await, Renewal::Lost);
}

async fn a_renewal_under_a_fence_to_come_is_lost(given: Given) {
    let reserved = given.running().await;
    let to_come = Held { fence: reserved.fence().next(Epoch::default()), ..held(&reserved) };
    assert_eq!(given.renew(to_come, TTL).await, Renewal::Lost);
    assert_eq!(stored(&given, &reserved).await, *reserved.job());
}

async fn a_renewal_tells_the_wish_to_cancel_each_time(given: Given) {
    let reserved = given.running().await;
    let wish = CancelRequest::new(given.now(), minutes(5), "not wanted any more");
    given.change(reserved.job().id, cancel_within(minutes(5))).await;
    for _ in 0..2 {
        given.pass(seconds(5));
        let answer = Renewal::Held(Holds { until: given.now().after(TTL), cancel: Some(wish.clone()) });
        assert_eq!(given.renew(held(&reserved), TTL).await, answer);
    }
}

async fn a_renewal_does_not_put_off_the_end_of_the_grace(given: Given) {
    let reserved = given.running().await;
    given.change(reserved.job().id, cancel_within(seconds(10))).await;
    given.pass(seconds(5));
    given.renew(held(&reserved), minutes(60)).await;
    given.pass(seconds(5));
    given.tend().await;
    assert_eq!(given.settle(reserved, Verdict::Succeeded(None)).await, Settled::Fenced);
}

async fn renewals_are_answered_one_by_one_in_order(given: Given) {
    let [first, second, third] = [given.running().await, given.running().await, given.running().await];
    let all = vec![held(&first), held(&second), held(&third), held(&first)];
    given.succeed(second).await;
    given.pass(seconds(1));
    let until = given.now().after(TTL);
    let answers = given.store.renew(Renew { ttl: TTL, held: all }).await.unwrap();
    assert_eq!(answers, [kept(until), Renewal::Lost, kept(until), kept(until)]);
}

async fn renewing_nothing_is_answered_with_nothing(given: Given) {
    assert_eq!(given.store.renew(Renew { ttl: TTL, held: vec![] }).await.unwrap(), []);
}
