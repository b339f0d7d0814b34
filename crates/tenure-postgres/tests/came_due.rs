//! A claim looks for jobs that have come due only when one may have: whoever asks once is granted them all the same. Time is the
//! server's.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use given::jobs::{ask, new_job, new_jobs};
use given::{host, options, schema, server, user};
use tenure_core::{Due, QueueName};
use tenure_postgres::PostgresStore;
use tenure_store::{Hints, Jobs, Reservation, Store};
use tokio::sync::watch;

async fn opened(schema: &str) -> Arc<PostgresStore> {
    PostgresStore::open(&server().url(), options(schema), None).await.unwrap()
}

/// Grants whatever is due; answers how many jobs that were.
async fn claim(store: &PostgresStore) -> usize {
    store.reserve(ask(host(1), 10)).await.unwrap().jobs.len()
}

#[tokio::test]
async fn a_job_that_has_come_due_is_granted_by_the_first_claim_that_asks() {
    let schema = schema();
    let (store, other) = (opened(&schema).await, opened(&schema).await);
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    assert_eq!(claim(&store).await, 1);
    // It has seen that nothing comes due, and both programs put something there.
    for (number, from) in [(2, &store), (3, &other)] {
        assert_eq!(claim(&store).await, 0);
        let mut job = new_job(number);
        job.due = Due::In(Duration::from_millis(1));
        from.enqueue(vec![job]).await.unwrap();
        user(&server().url()).await.execute("SELECT pg_sleep(0.005)", &[]).await.unwrap();
        assert_eq!(claim(&store).await, 1, "job {number}");
    }
    store.close().await.unwrap();
    other.close().await.unwrap();
}

/// Ends when somebody is called, or when he should have been.
async fn called(store: &PostgresStore, due: &mut watch::Receiver<u64>) {
    tokio::select! {
        called = due.changed() => called.unwrap(),
        () = store.clock().sleep(Duration::from_secs(60)) => panic!("nobody was called"),
    }
}

/// Half of the lease, or 5 s while another transaction of the server, such as that of another test, holds up cleaning.
fn is_answered_before_a_look(reservation: &Reservation) {
    let spans = [5, 30].map(|seconds| Some(Duration::from_secs(seconds)));
    assert!(spans.contains(&reservation.due_in), "{:?}", reservation.due_in);
}

/// Whoever is granted something is told so before it is looked at what comes next.
#[tokio::test]
async fn whoever_was_answered_before_it_was_seen_what_comes_next_is_called() {
    let schema = schema();
    let (store, other) = (opened(&schema).await, opened(&schema).await);
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    assert_eq!(claim(&store).await, 1);
    let mut job = new_job(2);
    job.due = Due::In(Duration::from_secs(20));
    let mut due = store.due();
    due.mark_unchanged();
    other.enqueue(vec![job]).await.unwrap();
    called(&store, &mut due).await;
    store.enqueue(new_jobs(3, 1)).await.unwrap();
    due.mark_unchanged();
    let reservation = store.reserve(ask(host(1), 10)).await.unwrap();
    assert_eq!(reservation.jobs.len(), 1);
    is_answered_before_a_look(&reservation);
    called(&store, &mut due).await;
    let reservation = store.reserve(ask(host(1), 10)).await.unwrap();
    assert!(reservation.due_in.unwrap() <= Duration::from_secs(20), "{:?}", reservation.due_in);
    store.close().await.unwrap();
    other.close().await.unwrap();
}

/// What is agreed about another queue was written by a newer version.
#[tokio::test]
async fn what_is_granted_is_told_though_what_is_around_cannot_be_read() {
    for looks_before in [false, true] {
        let schema = schema();
        let store = opened(&schema).await;
        let mut job = new_job(1);
        job.queue = QueueName::new("other").unwrap();
        store.enqueue(vec![job]).await.unwrap();
        store.enqueue(new_jobs(2, 1)).await.unwrap();
        if looks_before {
            assert_eq!(claim(&store).await, 1);
            store.enqueue(new_jobs(3, 1)).await.unwrap();
        }
        let agreed = "UPDATE SCHEMA.queue SET limit_to = 'newer', bucket = 0 WHERE name = 'other'";
        user(&server().url()).await.execute(&agreed.replace("SCHEMA", &schema), &[]).await.unwrap();
        let mut due = store.due();
        due.mark_unchanged();
        let reservation = store.reserve(ask(host(1), 10)).await.unwrap();
        assert_eq!(reservation.jobs.len(), 1);
        if looks_before {
            is_answered_before_a_look(&reservation);
            called(&store, &mut due).await;
        } else {
            assert_eq!(reservation.due_in, Some(Duration::ZERO), "the next turn does what else there is");
        }
        store.close().await.unwrap();
    }
}
