//! A claim looks for jobs that have come due only when one may have: whoever asks once is granted them all the same. Time is the
//! server's.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(dead_code, reason = "it uses a part of what the tests of a store share")]

mod given;

use std::sync::Arc;
use std::time::Duration;

use given::jobs::{ask, new_job, new_jobs};
use given::{host, options, schema, server, user};
use tenure_core::Due;
use tenure_postgres::PostgresStore;
use tenure_store::{Jobs, Store};

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
