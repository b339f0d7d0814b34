//! Jobs that others depend on: in a database that an older version wrote, and in transactions of users.

use std::sync::Arc;
use std::time::Duration;

use crate::common::agree::assert_schema_agrees;
use crate::given;

use given::jobs::{ask, new_job, settle};
use given::{host, number, open, schema, server, user};
use tenure_core::{AfterJobs, IfFailed, Keep, NewJob, Retention, Terms, Verdict, limits};
use tenure_store::{Clock, Jobs, ManualClock, Store, Views};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn after(number: u64, other: u64) -> NewJob {
    let after = AfterJobs { jobs: vec![new_job(other).id], if_failed: IfFailed::Cancel };
    NewJob { terms: Arc::new(Terms { after: Some(after), ..Terms::default() }), ..new_job(number) }
}

fn kept_shortly(number: u64) -> NewJob {
    let retention = Retention::always(Keep::For(Duration::ZERO));
    NewJob { terms: Arc::new(Terms { retention, ..Terms::default() }), ..new_job(number) }
}

/// Enqueues so many jobs that are kept for no time, and lets them succeed without an output.
async fn succeed(store: &impl Jobs, numbers: &[u64]) {
    store.enqueue(numbers.iter().map(|number| kept_shortly(*number)).collect()).await.unwrap();
    let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    let ends = granted.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
    store.settle(ends, None).await.unwrap();
}

/// Jobs that end together share a row; those that are needed have to leave it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_an_older_version_keeps_the_jobs_that_others_depend_on() {
    let (s, clock) = (schema(), ManualClock::new());
    let store = open(&s, &clock).await;
    succeed(&*store, &[1, 2, 3]).await;
    store.enqueue(vec![after(4, 1), after(5, 2)]).await.unwrap();
    store.close().await.unwrap();
    let client = user(&server().url()).await;
    // As if step 0016 had never run: it runs now.
    let older = format!(
        "SET search_path = {s}; DROP TABLE needed_by; UPDATE job SET terms = '{{\"after\"' WHERE seq = 5"
    );
    client.batch_execute(&older).await.unwrap();
    let step = client.query_one("SELECT sql FROM migration WHERE number = 16", &[]).await.unwrap();
    client.batch_execute(step.get(0)).await.unwrap();
    let store = open(&s, &clock).await;
    clock.advance(DAY);
    assert_eq!(store.tend().await.unwrap().pruned, 2);
    assert!(store.job(new_job(1).id).await.unwrap().is_some());
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    assert_eq!(reserved.job().id, new_job(4).id);
    store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
    clock.advance(limits::NEEDED_LEAST);
    assert_eq!(store.tend().await.unwrap().pruned, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM needed_by").await, 0);
    store.close().await.unwrap();
    assert_schema_agrees(&server().url(), &s).await;
}

/// Until a store has let it in, nothing else tells of its dependencies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_users_transaction_keeps_those_that_it_depends_on() {
    let (s, clock) = (schema(), ManualClock::new());
    let store = open(&s, &clock).await;
    succeed(&*store, &[1]).await;
    let client = user(&server().url()).await;
    let enqueue = format!(
        "SELECT {s}.accept(jsonb_build_object('id', '{}', 'kind', 'echo', 'after', jsonb_build_array('{}'),
             'terms', jsonb_build_object('after', jsonb_build_object('jobs', jsonb_build_array('{}')))::text,
             'gated', true), '{{}}', {})",
        new_job(2).id,
        new_job(1).id,
        new_job(1).id,
        clock.now().as_micros()
    );
    client.batch_execute(&enqueue).await.unwrap();
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {s}.needed_by")).await, 1);
    clock.advance(DAY);
    assert_eq!(store.tend().await.unwrap().pruned, 0);
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    assert_eq!(reserved.job().id, new_job(2).id);
    assert!(store.job(new_job(1).id).await.unwrap().is_some());
    // A transaction of the user ends the job, too.
    let (seq, fence) = (reserved.job().seq, reserved.fence().number());
    let (id, at) = (new_job(2).id, clock.now().as_micros());
    let complete = format!("SELECT {s}.complete_job({seq}, '{id}', {fence}, 0, NULL, NULL, {at})");
    client.batch_execute(&complete).await.unwrap();
    store.tend().await.unwrap();
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {s}.needed_by")).await, 0);
    store.close().await.unwrap();
}
