//! What the counters promise.

use std::collections::BTreeMap;

use tenure_core::{Due, Keep, Kind, QueueName, StateName, Verdict};

use super::given::{Given, TTL, cancel_within, failed, kind, minutes, queue, retry, retry_at, seconds};
use super::{Test, test};
use tenure_store::{Change, Count};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(counts_are_by_queue_kind_and_state_in_that_order),
        test(an_empty_store_counts_nothing),
        test(a_counter_at_zero_is_not_listed),
        test(a_job_counts_as_scheduled_until_a_turn_has_found_it_due),
        test(a_job_counts_as_scheduled_until_tending_has_found_it_due),
        test(a_job_that_is_due_when_it_comes_counts_as_queued),
        test(counters_follow_a_job_through_its_life),
        test(counters_follow_what_time_brings),
        test(counters_follow_what_people_change),
    ]
}

/// What the counters should say, counted by listing every job.
pub(super) async fn recount(given: &Given) -> Vec<Count> {
    let mut counted: BTreeMap<(QueueName, Kind, StateName), u64> = BTreeMap::new();
    for job in given.all().await {
        *counted.entry((job.queue, job.kind, job.state.name(given.now()))).or_default() += 1;
    }
    counted.into_iter().map(|((queue, kind, state), jobs)| Count { queue, kind, state, jobs }).collect()
}

/// Checks the counters against the jobs; every job that is due has been found due.
async fn agree(given: &Given) {
    assert_eq!(given.store.counts().await.unwrap(), recount(given).await);
}

async fn counts_are_by_queue_kind_and_state_in_that_order(given: Given) {
    for (queue, kind, due) in [
        ("post", "send", Due::Now),
        ("mail", "send", Due::Now),
        ("mail", "print", Due::Now),
        ("mail", "send", Due::Now),
        ("mail", "send", Due::In(minutes(1))),
    ] {
        given.put(tenure_core::NewJob { due, ..given.of_kind(queue, kind) }).await;
    }
    let count = |q: &str, k: &str, state, jobs| Count { queue: queue(q), kind: kind(k), state, jobs };
    let expected = [
        count("mail", "print", StateName::Queued, 1),
        count("mail", "send", StateName::Scheduled, 1),
        count("mail", "send", StateName::Queued, 2),
        count("post", "send", StateName::Queued, 1),
    ];
    assert_eq!(given.store.counts().await.unwrap(), expected);
}

async fn an_empty_store_counts_nothing(given: Given) {
    assert_eq!(given.store.counts().await.unwrap(), []);
}

async fn a_counter_at_zero_is_not_listed(given: Given) {
    given.running().await;
    let states: Vec<StateName> =
        given.store.counts().await.unwrap().iter().map(|count| count.state).collect();
    assert_eq!(states, [StateName::Running]);
}

async fn scheduled_and_queued(given: &Given) -> (u64, u64) {
    (given.count("mail", StateName::Scheduled).await, given.count("mail", StateName::Queued).await)
}

async fn a_job_counts_as_scheduled_until_a_turn_has_found_it_due(given: Given) {
    given.put(given.due_in("mail", seconds(10))).await;
    given.put(given.due_in("mail", seconds(10))).await;
    given.pass(seconds(10));
    assert_eq!(scheduled_and_queued(&given).await, (2, 0), "nobody has looked");
    given.take("mail").await;
    assert_eq!(scheduled_and_queued(&given).await, (0, 1));
}

async fn a_job_counts_as_scheduled_until_tending_has_found_it_due(given: Given) {
    given.put(given.due_in("mail", seconds(10))).await;
    given.put(given.due_in("mail", seconds(11))).await;
    given.pass(seconds(10));
    given.tend().await;
    assert_eq!(scheduled_and_queued(&given).await, (1, 1));
}

async fn a_job_that_is_due_when_it_comes_counts_as_queued(given: Given) {
    let past = Due::At(given.now().before(minutes(1)));
    for due in [Due::Now, Due::At(given.now()), past, Due::In(seconds(0))] {
        given.put(tenure_core::NewJob { due, ..given.new_job("mail") }).await;
    }
    assert_eq!(scheduled_and_queued(&given).await, (0, 4));
}

async fn counters_follow_a_job_through_its_life(given: Given) {
    let verdicts = [
        Verdict::Released,
        retry_at(Due::Now),
        Verdict::Snoozed(Due::In(minutes(90))),
        retry(),
        failed(),
        Verdict::Succeeded(None),
        Verdict::Cancelled(super::given::trouble("stopped")),
    ];
    for verdict in verdicts {
        given.enqueue("mail", 2).await;
        agree(&given).await;
        let reserved = given.take("mail").await;
        agree(&given).await;
        given.settle(reserved, verdict).await;
        agree(&given).await;
    }
}

async fn counters_follow_what_time_brings(given: Given) {
    given.put(given.with_attempts("mail", 1)).await;
    given.put(given.kept("mail", Keep::For(seconds(0)))).await;
    given.put(given.due_in("post", seconds(5))).await;
    let taken = given.reserve("mail", 1).await.remove(0);
    given.succeed(given.take("mail").await).await;
    agree(&given).await;
    given.pass(TTL);
    given.tend().await;
    assert_eq!(given.state(taken.job().id).await, StateName::Failed);
    assert_eq!(given.all().await.len(), 2, "one was pruned");
    agree(&given).await;
    given.enqueue("mail", 1).await;
    given.take("mail").await;
    given.pass(TTL);
    given.tend().await;
    agree(&given).await;
}

async fn counters_follow_what_people_change(given: Given) {
    let changes = [
        cancel_within(minutes(1)),
        Change::Redo,
        Change::Move(queue("post")),
        Change::Move(queue("fax")),
        Change::Reschedule(Due::In(minutes(1))),
        Change::Reschedule(Due::Now),
        cancel_within(minutes(1)),
        Change::Delete,
    ];
    let id = given.enqueue("mail", 2).await[0];
    for change in changes {
        given.change(id, change).await;
        agree(&given).await;
    }
    given.take("mail").await;
    given.change_matching(cancel_within(seconds(0)), tenure_store::Filter::default()).await;
    agree(&given).await;
    given.tend().await;
    agree(&given).await;
    assert_eq!(given.count("mail", StateName::Cancelled).await, 1);
}
