//! What a copy promises: it answers as its source did, and nobody holds anything in it from before.

mod fill;
mod seen;

use std::time::Duration;

use tenure_core::{
    Attempt, AttemptEnd, Fence, Head, IfFailed, LeaseOutcome, LeaseState, OnConflict, Retention, RetryPolicy,
    State, StateName, Terms, Ttl, Why, Window,
};

use super::given::{Given, TTL, decide, failed, held, host, ids_of, minutes, seconds};
use super::keyed::{after, limited, ordered, per_second};
use super::wishes::{Mine, acquire, id, renew, renew_late};
use super::{Test, test};
use seen::seen;
use tenure_store::{
    Accepted, Copied, CopyRefusal, Enqueued, InTheWay, Refusal, Renewal, Settled, Store, Totals, copy,
};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_copy_answers_as_its_source_does),
        test(a_copy_in_memory_and_back_answers_as_its_source_does),
        test(many_jobs_are_copied_in_bounded_pages_and_in_order),
        test(a_place_in_use_is_refused_and_stays_as_it_is),
        test(a_source_in_use_is_refused_and_says_who_uses_it),
        test(a_job_that_ran_has_lapsed_in_the_copy_and_is_done_again),
        test(a_job_that_ran_with_its_last_attempt_has_failed_in_the_copy),
        test(each_new_fence_is_greater_than_all_of_the_source),
        test(two_copies_of_a_source_share_no_fence),
        test(a_lease_that_was_held_is_kept_from_others_and_from_its_holder),
        test(unique_keys_still_hold),
        test(jobs_go_on_waiting_for_what_they_waited_for),
        test(orders_and_limits_go_on),
        test(what_is_enqueued_in_a_copy_stands_behind_all_that_was_copied),
        test(a_copy_can_be_copied),
    ]
}

/// Copies all of one store to another one.
async fn copied(from: &dyn Store, to: &dyn Store, even_in_use: bool) -> Copied {
    copy(from, to, even_in_use, &mut |_, _| {}).await.unwrap()
}

/// Copies what nobody uses, where nothing is.
async fn whole(from: &Given, to: &Given) -> Totals {
    match copied(&*from.store, &*to.store, false).await {
        Copied::Whole(totals) => totals,
        Copied::Refused(why) => panic!("refused: {why}"),
    }
}

/// Copies what may be in use.
async fn whole_even_in_use(from: &Given, to: &Given) {
    let copied = copied(&*from.store, &*to.store, true).await;
    assert!(matches!(copied, Copied::Whole(_)), "{copied:?}");
}

async fn a_copy_answers_as_its_source_does(given: Given) {
    given.fill().await;
    let other = given.beside().await;
    let totals = whole(&given, &other).await;
    assert!(totals.jobs > 10 && totals.keys > 0 && totals.leases > 1, "{totals}");
    assert!(totals.entries > 3 && totals.timers > 1 && totals.slots > 1, "{totals}");
    assert_eq!(seen(&*other.store).await, seen(&*given.store).await);
    let _ = other.store.close().await;
}

async fn a_copy_in_memory_and_back_answers_as_its_source_does(given: Given) {
    given.fill().await;
    let (memory, other) = (given.reference(), given.beside().await);
    assert!(matches!(copied(&*given.store, &*memory, false).await, Copied::Whole(_)));
    let before = seen(&*given.store).await;
    assert_eq!(seen(&*memory).await, before);
    assert!(matches!(copied(&*memory, &*other.store, false).await, Copied::Whole(_)));
    assert_eq!(seen(&*other.store).await, before);
    let _ = other.store.close().await;
}

async fn many_jobs_are_copied_in_bounded_pages_and_in_order(given: Given) {
    let ids = given.enqueue("mail", 1_234).await;
    let (other, mut pages) = (given.beside().await, Vec::new());
    let tell = &mut |copied: Totals, of: Totals| pages.push((copied.jobs, of.jobs));
    let whole = copy(&*given.store, &*other.store, false, tell).await.unwrap();
    assert!(matches!(whole, Copied::Whole(Totals { jobs: 1_234, .. })));
    assert!(pages.len() > 2 && pages.iter().all(|(_, of)| *of == 1_234), "{pages:?}");
    assert!(pages.iter().map(|(copied, _)| copied).is_sorted(), "{pages:?}");
    assert_eq!(ids_of(&other.all().await), ids);
    assert_eq!(other.drain(&["mail"]).await.concat(), ids);
    let _ = other.store.close().await;
}

async fn a_place_in_use_is_refused_and_stays_as_it_is(given: Given) {
    given.enqueue("mail", 2).await;
    let job = given.beside().await;
    job.enqueue("post", 1).await;
    let before = seen(&*job.store).await;
    let refused = copied(&*given.store, &*job.store, true).await;
    assert_eq!(refused, Copied::Refused(CopyRefusal::Occupied("jobs".to_owned())));
    assert_eq!(seen(&*job.store).await, before);
    let lease = given.beside().await;
    lease.hold("x", 1).await;
    let refused = copied(&*given.store, &*lease.store, true).await;
    assert_eq!(refused, Copied::Refused(CopyRefusal::Occupied("leases".to_owned())));
    let alive = given.beside().await;
    alive.store.announce(host(7), "web-7", 1, &[], TTL).await.unwrap();
    let refused = copied(&*given.store, &*alive.store, true).await;
    assert_eq!(refused, Copied::Refused(CopyRefusal::Occupied("live hosts".to_owned())));
    for other in [job, lease, alive] {
        let _ = other.store.close().await;
    }
}

async fn a_source_in_use_is_refused_and_says_who_uses_it(given: Given) {
    given.store.announce(host(7), "web-7 (pid 4711)", 1, &[], minutes(1)).await.unwrap();
    let reserved = given.running().await;
    given.hold("x", 1).await;
    let other = given.beside().await;
    let until = given.now().after(minutes(1));
    let expected = vec![
        InTheWay::Host { name: "web-7 (pid 4711)".to_owned(), until },
        InTheWay::Job { id: reserved.job().id, holder: given.holder, until: given.soon(TTL) },
        InTheWay::Lease {
            name: super::wishes::name("x"),
            by: "web-1".to_owned(),
            until: Some(given.soon(TTL)),
        },
    ];
    let refused = copied(&*given.store, &*other.store, false).await;
    assert_eq!(refused, Copied::Refused(CopyRefusal::InUse(expected)));
    assert_eq!(other.all().await, []);
    given.pass(minutes(2));
    whole(&given, &other).await;
    let _ = other.store.close().await;
}

async fn a_job_that_ran_has_lapsed_in_the_copy_and_is_done_again(given: Given) {
    let reserved = given.running().await;
    let (id, fence, mine) = (reserved.job().id, reserved.fence(), held(&reserved));
    let other = given.beside().await;
    whole_even_in_use(&given, &other).await;
    let job = other.job(id).await;
    assert!(matches!(job.state, State::Waiting { why: Why::Lost, .. }), "{:?}", job.state);
    assert!(job.fence > fence);
    let attempts = other.attempts(id).await;
    let [Attempt { ended: Some((_, AttemptEnd::Lost)), fence: of, .. }] = attempts[..] else {
        panic!("{attempts:?}")
    };
    assert_eq!(of, fence);
    // Whoever had it there has nothing here.
    assert_eq!(other.renew(mine, TTL).await, Renewal::Lost);
    let settled = other.settle(reserved, tenure_core::Verdict::Succeeded(None)).await;
    assert_eq!(settled, Settled::Fenced);
    let again = other.take("mail").await;
    assert_eq!((again.job().id, again.job().attempt), (id, 2));
    assert!(again.fence() > job.fence);
    other.succeed(again).await;
    // The source has not noticed anything.
    assert_eq!(given.state(id).await, StateName::Running);
    let _ = other.store.close().await;
}

async fn a_job_that_ran_with_its_last_attempt_has_failed_in_the_copy(given: Given) {
    let retry = Some(RetryPolicy { max_attempts: 1, ..RetryPolicy::default() });
    let unique = given.only(7, Window::WhileUnfinished, OnConflict::Reject).terms.unique;
    let terms = Terms { retry, unique, retention: Retention::default(), ..Terms::default() };
    let last = given.put(given.on_terms("mail", terms)).await;
    let waiter = given.put(given.on_terms("post", after(&[last], IfFailed::Run))).await;
    given.take("mail").await;
    given.pass(TTL);
    let other = given.beside().await;
    whole(&given, &other).await;
    assert_eq!(other.state(last).await, StateName::Failed);
    // Its key is free, and who waited for it goes on.
    other.put(given.only(7, Window::WhileUnfinished, OnConflict::Reject)).await;
    assert_eq!(other.take("post").await.job().id, waiter);
    let _ = other.store.close().await;
}

async fn each_new_fence_is_greater_than_all_of_the_source(given: Given) {
    for _ in 0..5 {
        let reserved = given.running().await;
        given.settle(reserved, failed()).await;
    }
    let mine = given.hold("x", 1).await;
    given.give_back("x", mine).await;
    given.put(given.new_job("mail")).await;
    let greatest = given.all().await.iter().map(|job| job.fence).chain([mine.fence]).max().unwrap();
    let other = given.beside().await;
    whole(&given, &other).await;
    assert!(other.take("mail").await.fence() > greatest);
    assert!(other.hold("x", 2).await.fence > greatest);
    assert!(other.hold("never seen", 2).await.fence > greatest);
    let _ = other.store.close().await;
}

/// T008: a store that is copied again grants above what the copy before it has granted.
async fn two_copies_of_a_source_share_no_fence(given: Given) {
    given.enqueue("mail", 1).await;
    let mut last = (Fence::NONE, Fence::NONE);
    for _ in 0..3 {
        given.pass(Duration::from_millis(5));
        let other = given.beside().await;
        whole(&given, &other).await;
        let first = (other.take("mail").await.fence(), other.hold("x", 1).await.fence);
        assert!(first.0 > last.0 && first.1 > last.1, "{first:?} after {last:?}");
        last = (first.0, other.hold("y", 1).await.fence.max(first.1));
        let _ = other.store.close().await;
    }
}

async fn a_lease_that_was_held_is_kept_from_others_and_from_its_holder(given: Given) {
    let mine = given.hold("x", 1).await;
    let endless = given.hold_for("y", 1, Ttl::Endless).await;
    let other = given.beside().await;
    whole_even_in_use(&given, &other).await;
    for (name, mine) in [("x", mine), ("y", endless)] {
        let before = other.lease(name).await;
        assert_eq!(before.state, LeaseState::Held);
        assert!(before.lease.fence > mine.fence);
        assert!(matches!(other.wish(name, renew(mine)).await, LeaseOutcome::Refused(_)));
        assert!(matches!(other.wish(name, acquire(2)).await, LeaseOutcome::Refused(_)));
    }
    given.pass(TTL + seconds(5));
    assert!(matches!(other.wish("x", renew_late(mine)).await, LeaseOutcome::Refused(_)));
    let Mine { fence, .. } = other.hold("x", 2).await;
    assert!(fence > mine.fence);
    assert_eq!(other.lease("x").await.lease.held.unwrap().id, id(2));
    let _ = other.store.close().await;
}

async fn unique_keys_still_hold(given: Given) {
    let unfinished = given.put(given.only(1, Window::WhileUnfinished, OnConflict::Return)).await;
    let for_a_time = given.put(given.only(2, Window::For(minutes(5)), OnConflict::Reject)).await;
    let other = given.beside().await;
    whole(&given, &other).await;
    let again = other.offer(given.only(1, Window::WhileUnfinished, OnConflict::Return)).await;
    assert_eq!(again, Accepted::Existing(unfinished));
    let rejected = other.enqueue_all(vec![given.only(2, Window::For(minutes(5)), OnConflict::Reject)]).await;
    assert_eq!(rejected, Enqueued::Refused { index: 0, refusal: Refusal::KeyHeld(for_a_time) });
    for reserved in other.reserve("mail", 2).await {
        other.succeed(reserved).await;
    }
    other.put(given.only(1, Window::WhileUnfinished, OnConflict::Return)).await;
    given.pass(minutes(5));
    other.put(given.only(2, Window::For(minutes(5)), OnConflict::Reject)).await;
    let _ = other.store.close().await;
}

async fn jobs_go_on_waiting_for_what_they_waited_for(given: Given) {
    let others = given.enqueue("post", 2).await;
    let waiter = given.put(given.on_terms("mail", after(&others, IfFailed::Cancel))).await;
    given.succeed(given.take("post").await).await;
    let spoiler = given.put(given.new_job("spoil")).await;
    let spoiled = given.put(given.on_terms("mail", after(&[spoiler], IfFailed::Cancel))).await;
    let reserved = given.take("spoil").await;
    given.fail(reserved).await;
    let other = given.beside().await;
    whole(&given, &other).await;
    assert_eq!(other.grab(&["mail"]).await.len(), 0);
    assert_eq!(other.states(&[waiter, spoiled]).await, [StateName::Blocked, StateName::Cancelled]);
    assert_eq!(other.why(waiter).await, given.why(waiter).await);
    other.succeed(other.take("post").await).await;
    assert_eq!(other.drain(&["mail"]).await, [[waiter]]);
    let _ = other.store.close().await;
}

async fn orders_and_limits_go_on(given: Given) {
    let in_order = given.put_on("cart", &ordered(Head::Block), 3).await;
    let together = given.put_on("mail", &limited(Some(2)), 5).await;
    given.store.set_limit(&super::keyed::key("sms"), Some(per_second(1, 1))).await.unwrap();
    given.store.set_queue_limit(&super::given::queue("post"), per_second(1, 2)).await.unwrap();
    given.enqueue("post", 4).await;
    let both = given.reserve("post", 4).await;
    assert_eq!(both.len(), 2);
    for reserved in both {
        given.succeed(reserved).await;
    }
    let other = given.beside().await;
    whole(&given, &other).await;
    assert_eq!(other.limits().await, given.limits().await);
    assert_eq!(other.reserve("post", 4).await.len(), 0, "the bucket is as empty as it was");
    given.pass(seconds(1));
    assert_eq!(other.reserve("post", 4).await.len(), 1);
    assert_eq!(other.drain(&["cart"]).await, in_order.iter().map(|id| vec![*id]).collect::<Vec<_>>());
    let turns = other.drain(&["mail"]).await;
    assert_eq!(turns, [vec![together[0], together[1]], vec![together[2], together[3]], vec![together[4]]]);
    let _ = other.store.close().await;
}

async fn what_is_enqueued_in_a_copy_stands_behind_all_that_was_copied(given: Given) {
    let ids = given.enqueue("mail", 3).await;
    // The last place is not given again, even though its job is gone.
    given.change(ids[2], tenure_store::Change::Delete).await;
    let other = given.beside().await;
    whole(&given, &other).await;
    let new = other.put(given.new_job("mail")).await;
    assert!(other.job(new).await.seq > other.job(ids[1]).await.seq + 1);
    assert_eq!(other.drain(&["mail"]).await.concat(), [ids[0], ids[1], new]);
    let _ = other.store.close().await;
}

async fn a_copy_can_be_copied(given: Given) {
    given.fill().await;
    let reserved = given.put(given.new_job("last")).await;
    let (one, two) = (given.beside().await, given.beside().await);
    whole(&given, &one).await;
    let first = one.take("last").await;
    assert_eq!(first.job().id, reserved);
    let fence = first.fence();
    one.write(decide(first, super::given::retry_at(tenure_core::Due::In(Duration::from_secs(1))))).await;
    whole(&one, &two).await;
    assert_eq!(seen(&*two.store).await, seen(&*one.store).await);
    given.pass(seconds(2));
    assert!(two.take("last").await.fence() > fence);
    for other in [one, two] {
        let _ = other.store.close().await;
    }
}
