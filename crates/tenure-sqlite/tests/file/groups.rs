//! Many callers, few commits.

use std::time::Duration;

use tenure_core::{NewJob, QueueName};
use tenure_sqlite::Options;
use tenure_store::{Accepted, Enqueued, Jobs, Store, Views};

use crate::given::{file, new_job, new_jobs, open, open_live, runtime};

#[test]
fn callers_who_wait_at_the_same_time_share_a_commit() {
    const CALLERS: u64 = 16;
    let (_directory, file) = file();
    let slow = Options { commit_takes_at_least: Some(Duration::from_millis(5)), ..Options::default() };
    let runtime = runtime();
    let store = open_live(&file, slow);
    let calls: Vec<_> = (1..=CALLERS)
        .map(|number| {
            let store = store.clone();
            runtime.spawn(async move { store.enqueue(vec![new_job(number)]).await.unwrap() })
        })
        .collect();
    runtime.block_on(async {
        for call in calls {
            assert!(matches!(call.await.unwrap(), Enqueued::Stored(_)));
        }
        assert_eq!(store.counts().await.unwrap()[0].jobs, CALLERS);
    });
    // The first goes alone, the rest while it is on its way to the disk; some may come too late for that.
    assert!(store.commits() <= CALLERS / 2, "{} commits", store.commits());
}

#[test]
fn a_call_that_writes_nothing_costs_no_commit() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        let commits = store.commits();
        store.tend().await.unwrap();
        store.settle(vec![], None).await.unwrap();
        assert_eq!(store.commits(), commits);
    });
}

#[test]
fn a_repetition_names_no_queue() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        let elsewhere = NewJob { queue: QueueName::new("elsewhere").unwrap(), ..new_job(1) };
        let answer = store.enqueue(vec![elsewhere, new_job(2)]).await.unwrap();
        let expected = vec![Accepted::Repeated(new_job(1).id), Accepted::New(new_job(2).id)];
        assert_eq!(answer, Enqueued::Stored(expected));
        assert_eq!(store.queues().await.unwrap().len(), 1);
    });
}

#[test]
fn what_was_asked_before_closing_is_written() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        let (enqueued, closed) = tokio::join!(store.enqueue(new_jobs(1, 1000)), store.close());
        assert!(matches!(enqueued.unwrap(), Enqueued::Stored(_)));
        closed.unwrap();
        assert_eq!(open(&file).counts().await.unwrap()[0].jobs, 1000);
    });
}
