//! A claim for one lane is one statement, by the server's time: what it leaves to others is asked for behind it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use given::jobs::{ask, new_job, new_jobs, settle};
use given::{host, number, options, schema, server, user};
use tenure_core::{JobId, Kind, NewJob, Priority, QueueName, Reserved, Verdict};
use tenure_postgres::PostgresStore;
use tenure_store::{Accepted, Enqueued, Jobs, Kinds, Reserve, Store, Views, Want};

async fn opened(schema: &str) -> Arc<PostgresStore> {
    PostgresStore::open(&server().url(), options(schema), None).await.unwrap()
}

async fn claim(store: &PostgresStore, at_most: usize) -> Vec<Reserved> {
    store.reserve(ask(host(1), at_most)).await.unwrap().jobs
}

fn ids(reserved: &[Reserved]) -> Vec<JobId> {
    reserved.iter().map(|reserved| reserved.job().id).collect()
}

/// Whoever was claimed before is found by a claim that looks for others first, in his place and once.
#[tokio::test]
async fn jobs_that_were_claimed_before_stand_in_line_with_those_that_were_not() {
    let schema = schema();
    let store = opened(&schema).await;
    for round in 0..3 {
        let from = 10 * round + 1;
        let mut urgent = new_job(from);
        urgent.priority = Priority::new(-5).unwrap();
        store.enqueue(vec![urgent]).await.unwrap();
        let mut given_back = claim(&store, 1).await;
        assert_eq!(given_back.len(), 1);
        let released = settle(given_back.remove(0), Verdict::Released);
        store.enqueue(new_jobs(from + 1, 3)).await.unwrap();
        store.settle(vec![released], None).await.unwrap();
        let granted = claim(&store, 3).await;
        assert_eq!(ids(&granted), [0, 1, 2].map(|number| new_job(from + number).id));
        assert_eq!(granted.iter().map(|one| one.job().delivery).collect::<Vec<_>>(), [2, 1, 1]);
        let last = claim(&store, 3).await;
        assert_eq!(ids(&last), [new_job(from + 3).id]);
        let done = granted.into_iter().chain(last).map(|one| settle(one, Verdict::Succeeded(None)));
        store.settle(done.collect(), None).await.unwrap();
    }
    store.close().await.unwrap();
}

/// One line has nothing but what was claimed before.
#[tokio::test]
async fn a_line_of_jobs_that_were_all_claimed_before_is_granted() {
    let schema = schema();
    let store = opened(&schema).await;
    store.enqueue(new_jobs(1, 5)).await.unwrap();
    let released = claim(&store, 5).await.into_iter().map(|one| settle(one, Verdict::Released)).collect();
    // A program of its own has not met them.
    let other = opened(&schema).await;
    // It has seen what comes next, so that its claims are by themselves from now on.
    assert!(claim(&other, 2).await.is_empty());
    other.enqueue(vec![new_job(6)]).await.unwrap();
    assert_eq!(claim(&other, 2).await.len(), 1);
    store.settle(released, None).await.unwrap();
    assert_eq!(claim(&other, 2).await.len(), 2);
    assert_eq!(claim(&other, 5).await.len(), 3);
    for store in [store, other] {
        store.close().await.unwrap();
    }
}

/// What somebody has taken and given up again is found in each queue, also where others come first with every claim.
#[tokio::test]
async fn what_was_given_up_is_found_in_the_second_of_two_queues() {
    let schema = schema();
    let store = opened(&schema).await;
    let queues = [QueueName::default(), QueueName::new("other").unwrap()];
    let of_queue = |number: u64| NewJob { queue: queues[1].clone(), ..new_job(number) };
    let wants = || queues.clone().map(|queue| Want { queue, kinds: Kinds::All, at_most: 1 });
    let claim = async || {
        let both = Reserve { wants: wants().to_vec(), ..ask(host(1), 2) };
        store.reserve(both).await.unwrap().jobs
    };
    store.enqueue(vec![new_job(1), of_queue(2)]).await.unwrap();
    assert_eq!(claim().await.len(), 2);
    store.enqueue(vec![of_queue(3)]).await.unwrap();
    let client = user(&server().url()).await;
    let given_up = format!("BEGIN; DELETE FROM {schema}.ready; ROLLBACK");
    client.batch_execute(&given_up).await.unwrap();
    let mut granted = Vec::new();
    for _ in 0..10 {
        granted.extend(claim().await);
    }
    assert_eq!(ids(&granted), [new_job(3).id]);
    store.close().await.unwrap();
}

/// Agrees on something about the queue as who edits it does, and answers what a claim for five jobs is granted that had begun
/// before, and waited for that.
async fn claimed_while(agreed: &str) -> usize {
    let schema = schema();
    let store = opened(&schema).await;
    store.enqueue(new_jobs(1, 5)).await.unwrap();
    let (mut setter, watcher) = (user(&server().url()).await, user(&server().url()).await);
    let setting = setter.transaction().await.unwrap();
    let lock = format!("SELECT pg_advisory_xact_lock(1413827147, hashtext('{schema}' || 'default'))");
    setting.batch_execute(&lock).await.unwrap();
    let set = format!("UPDATE {schema}.queue SET {agreed} WHERE name = 'default'");
    assert_eq!(setting.execute(&set, &[]).await.unwrap(), 1);
    let mut claiming = tokio::spawn({
        let store = Arc::clone(&store);
        async move { claim(&store, 5).await.len() }
    });
    let waits = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 1413827147
             AND objid::bigint = hashtext('{schema}' || 'default')::bigint & 4294967295
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    while number(&watcher, &waits).await == 0 {
        tokio::select! {
            biased;
            _ = &mut claiming => panic!("it has not waited"),
            () = store.clock().sleep(Duration::from_millis(5)) => {}
        }
    }
    setting.commit().await.unwrap();
    let claimed = claiming.await.unwrap();
    store.close().await.unwrap();
    claimed
}

/// A claim that has begun before a limit was set, and waited for that, knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_set_while_a_claim_begins_bounds_it() {
    assert_eq!(claimed_while("limit_to = '{\"most\":1}'").await, 1);
}

/// Whoever was told that a queue is paused sees nothing of it granted after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_is_agreed_on_while_a_claim_begins_stops_it() {
    assert_eq!(claimed_while("paused = true").await, 0);
}

/// The lanes of a large batch are made before it is stored, by two programs at once here; what is there already is found all the same.
#[tokio::test]
async fn a_large_batch_of_new_kinds_is_stored_once() {
    let schema = schema();
    let (store, other) = (opened(&schema).await, opened(&schema).await);
    let of_kind = |mut job: NewJob, kind: &str| {
        job.kind = Kind::new(kind).unwrap();
        job
    };
    let kinds = ["one", "other", "third"];
    let mixed = |from: u64| {
        let jobs = new_jobs(from, 300).into_iter().zip(kinds.into_iter().cycle());
        jobs.map(|(job, kind)| of_kind(job, kind)).collect::<Vec<_>>()
    };
    let (first, second) = tokio::join!(store.enqueue(mixed(1)), other.enqueue(mixed(1001)));
    for (stored, from) in [(first, 1), (second, 1001)] {
        let all = mixed(from).iter().map(|job| Accepted::New(job.id)).collect();
        assert_eq!(stored.unwrap(), Enqueued::Stored(all));
    }
    let Enqueued::Stored(again) = store.enqueue(mixed(1)).await.unwrap() else { panic!("it was refused") };
    assert!(again.iter().all(|accepted| matches!(accepted, Accepted::Repeated(_))));
    // One of them has the id of another job.
    let mut taken = new_jobs(2001, 200).into_iter().map(|job| of_kind(job, "fourth")).collect::<Vec<_>>();
    taken[150].id = new_job(7).id;
    let refused = store.enqueue(taken).await.unwrap();
    assert!(matches!(refused, Enqueued::Refused { index: 150, .. }), "{refused:?}");
    let held: usize = other.counts().await.unwrap().iter().map(|count| count.jobs as usize).sum();
    assert_eq!(held, 600);
    for store in [store, other] {
        store.close().await.unwrap();
    }
}
