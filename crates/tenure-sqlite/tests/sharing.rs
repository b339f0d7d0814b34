//! Two programs on one file: two stores that share nothing else.

#![allow(clippy::unwrap_used)]

mod given;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tenure_core::{Fence, JobId, QueueName, Verdict};
use tenure_sqlite::Options;
use tenure_store::{Hints, Jobs, Settled, Store, Views};

use given::{ask, file, host, new_job, new_jobs, open, open_live, runtime, settle};

/// solid_queue #133, #385: "database is locked" on claim as soon as a second process writes.
#[test]
fn sixteen_tasks_on_each_of_two_stores_never_meet_a_lock_and_share_no_job() {
    const TASKS: u64 = 16;
    const JOBS: u64 = 60;
    let (_directory, file) = file();
    let stores = [0, 1].map(|_| open_live(&file, Options::default()));
    let runtime = runtime();
    let tasks: Vec<_> = (0..2 * TASKS)
        .map(|task| {
            let store = stores[usize::try_from(task % 2).unwrap()].clone();
            runtime.spawn(async move {
                let mut granted: Vec<(JobId, Fence)> = vec![];
                for number in 0..JOBS {
                    store.enqueue(vec![new_job(task * JOBS + number + 1)]).await.unwrap();
                    for reserved in store.reserve(ask(host(task), 3)).await.unwrap().jobs {
                        granted.push((reserved.job().id, reserved.fence()));
                        let settled =
                            store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await;
                        assert!(matches!(settled.unwrap().settled[..], [Settled::Done(_)]));
                    }
                }
                granted
            })
        })
        .collect();
    let mut grants = HashMap::new();
    runtime.block_on(async {
        for task in tasks {
            for (id, fence) in task.await.unwrap() {
                assert!(grants.insert(id, fence).is_none(), "{id} was granted twice");
            }
        }
        let counts = stores[0].counts().await.unwrap();
        assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), 2 * TASKS * JOBS);
        for store in &stores {
            store.close().await.unwrap();
        }
    });
    assert_whole(&file);
}

#[test]
fn what_one_store_keeps_in_mind_is_never_older_than_the_file() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    let queue = QueueName::default();
    runtime().block_on(async {
        one.enqueue(new_jobs(1, 2)).await.unwrap();
        // A lane that the other has made, and its place in the order of acceptance.
        two.enqueue(new_jobs(3, 2)).await.unwrap();
        one.enqueue(new_jobs(5, 1)).await.unwrap();
        let granted = two.reserve(ask(host(2), 10)).await.unwrap().jobs;
        assert_eq!(granted.iter().map(|reserved| reserved.job().seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        // A pause.
        assert!(one.set_paused(&queue, true).await.unwrap());
        two.enqueue(new_jobs(6, 1)).await.unwrap();
        assert!(two.reserve(ask(host(2), 10)).await.unwrap().jobs.is_empty());
        assert!(two.set_paused(&queue, false).await.unwrap());
        assert_eq!(one.reserve(ask(host(1), 10)).await.unwrap().jobs.len(), 1);
    });
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the watch looks at the file by real time; this bounds a failure"
)]
fn a_store_hears_of_what_another_one_enqueues() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let (one, two) = (open(&file), open(&file));
        let mut due = two.due();
        one.enqueue(new_jobs(1, 1)).await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), due.changed()).await.unwrap().unwrap();
    });
}

#[test]
fn places_of_removed_jobs_are_not_given_again_by_another_store() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let (one, two) = (open(&file), open(&file));
        one.enqueue(new_jobs(1, 3)).await.unwrap();
        let all = tenure_store::Selection::Matching { filter: tenure_store::Filter::default(), after: None };
        two.change(tenure_store::Change::Delete, all).await.unwrap();
        one.enqueue(new_jobs(4, 1)).await.unwrap();
        let seqs: HashSet<u64> = two
            .reserve(ask(host(2), 10))
            .await
            .unwrap()
            .jobs
            .iter()
            .map(|reserved| reserved.job().seq)
            .collect();
        assert_eq!(seqs, HashSet::from([4]));
    });
}

fn assert_whole(file: &std::path::Path) {
    let conn = rusqlite::Connection::open(file).unwrap();
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}
