//! Two programs on one file: two stores that share nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Fence, JobId, Limit, QueueName, Rate, Reserved, StateName, Verdict};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Change, Hints, Jobs, ManualClock, Selection, Settled, Store, Views};

use crate::given::{ask, file, host, new_job, new_jobs, open, open_live, runtime, settle};

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

/// A holder answers this hint with a write. If every write of the other were such a hint, two programs
/// would keep each other writing for as long as both run something.
/// Whoever waits for a job that another program ends looks again when that has written, and not before.
#[test]
fn a_store_tells_that_another_program_has_written_and_not_what_it_wrote_itself() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    runtime().block_on(async {
        let mut others = two.others();
        two.enqueue(new_jobs(1, 1)).await.unwrap();
        assert!(others.try_recv().is_err(), "that was its own");
        one.enqueue(new_jobs(2, 1)).await.unwrap();
        two.tend().await.unwrap();
        assert!(others.try_recv().is_ok(), "that was the other's");
    });
}

#[test]
fn only_a_wish_to_cancel_hints_at_one_to_the_other_program() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    runtime().block_on(async {
        one.enqueue(new_jobs(1, 3)).await.unwrap();
        let running = two.reserve(ask(host(2), 2)).await.unwrap().jobs;
        let asked = two.asked();
        one.enqueue(new_jobs(4, 1)).await.unwrap();
        two.tend().await.unwrap();
        assert!(!asked.has_changed().unwrap(), "nobody was asked to stop");
        let wish = Change::Cancel { grace: Duration::from_secs(60), reason: "enough".into() };
        one.change(wish, Selection::Ids(vec![running[0].job().id])).await.unwrap();
        two.tend().await.unwrap();
        assert!(asked.has_changed().unwrap(), "one was asked to stop");
        let asked = two.asked();
        one.enqueue(new_jobs(5, 1)).await.unwrap();
        two.tend().await.unwrap();
        assert!(!asked.has_changed().unwrap(), "that has been told");
    });
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
fn starts_in_one_store_count_toward_the_rate_of_a_queue_in_the_other() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    let rate = Limit::default().at_rate(Rate::new(1, Duration::from_secs(60)));
    runtime().block_on(async {
        one.set_queue_limit(&QueueName::default(), rate).await.unwrap();
        one.enqueue(new_jobs(1, 3)).await.unwrap();
        assert_eq!(two.reserve(ask(host(2), 10)).await.unwrap().jobs.len(), 1);
        assert!(one.reserve(ask(host(1), 10)).await.unwrap().jobs.is_empty(), "the other store had it");
    });
}

/// The store that granted a job remembers the grant, and knows nothing of what the other has granted since.
#[test]
fn a_success_is_refused_by_the_store_that_granted_the_job_once_the_other_has_granted_it_again() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let [one, two] =
        [0, 1].map(|_| SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap());
    runtime().block_on(async {
        one.enqueue(new_jobs(1, 1)).await.unwrap();
        let old = one.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
        clock.advance(Duration::from_secs(61));
        let new = two.reserve(ask(host(2), 1)).await.unwrap().jobs.remove(0);
        let late = one.settle(vec![settle(old, Verdict::Succeeded(None))], None).await.unwrap();
        assert_eq!(late.settled, [Settled::Fenced]);
        let done = two.settle(vec![settle(new, Verdict::Succeeded(None))], None).await.unwrap();
        assert_eq!(done.settled, [Settled::Done(StateName::Succeeded)]);
    });
}

/// One statement writes many successes, so it must check the fence of each.
#[test]
fn many_successes_are_refused_by_the_store_that_granted_the_jobs_once_the_other_has_taken_them_back() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let [one, two] =
        [0, 1].map(|_| SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap());
    runtime().block_on(async {
        one.enqueue(new_jobs(1, 8)).await.unwrap();
        let old = one.reserve(ask(host(1), 8)).await.unwrap().jobs;
        clock.advance(Duration::from_secs(61));
        let new = two.reserve(ask(host(2), 8)).await.unwrap().jobs;
        let end =
            |jobs: Vec<Reserved>| jobs.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
        let late = one.settle(end(old), None).await.unwrap();
        assert_eq!(late.settled, [Settled::Fenced; 8]);
        let done = two.settle(end(new), None).await.unwrap();
        assert_eq!(done.settled, [Settled::Done(StateName::Succeeded); 8]);
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
        tokio::time::timeout(Duration::from_secs(60), due.changed()).await.unwrap().unwrap();
    });
}

/// A worker answers this hint by renewing all that it holds. Two workers that took each other's renewals
/// for it would renew for ever, ten times a second, each time with a wait for the disk.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the watch looks at the file by real time; this bounds a failure"
)]
fn a_store_calls_its_holders_only_if_another_one_asked_somebody_to_stop() {
    let (_directory, file) = file();
    let soon = Duration::from_secs(60);
    runtime().block_on(async {
        let (one, two) = (open(&file), open(&file));
        let (mut due, mut asked) = (two.due(), two.asked());
        // When the second is heard, all that the first brought has been called out.
        for number in [1, 2] {
            one.enqueue(new_jobs(number, 1)).await.unwrap();
            tokio::time::timeout(soon, due.changed()).await.unwrap().unwrap();
        }
        assert!(!asked.has_changed().unwrap());

        let held = two.reserve(ask(host(2), 1)).await.unwrap().jobs;
        let cancel = tenure_store::Change::Cancel { grace: soon, reason: "enough".to_owned() };
        let of = tenure_store::Selection::Ids(vec![held[0].job().id]);
        one.change(cancel, of).await.unwrap();
        tokio::time::timeout(soon, asked.changed()).await.unwrap().unwrap();
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
