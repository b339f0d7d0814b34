//! Jobs that others depend on, in a file that an older version wrote.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{AfterJobs, IfFailed, Keep, NewJob, Retention, Terms, Verdict};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Jobs, ManualClock, Store, Views};

use crate::given::agree::assert_agrees;
use crate::given::{ask, file, host, new_job, runtime, settle};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn after(number: u64, other: u64) -> NewJob {
    let after = AfterJobs { jobs: vec![new_job(other).id], if_failed: IfFailed::Cancel };
    NewJob {
        terms: Arc::new(Terms { after: Some(after), ..Terms::default() }),
        priority: tenure_core::Priority::new(9).unwrap(),
        ..new_job(number)
    }
}

fn kept_shortly(number: u64) -> NewJob {
    let retention = Retention::always(Keep::For(Duration::ZERO));
    NewJob { terms: Arc::new(Terms { retention, ..Terms::default() }), ..new_job(number) }
}

/// Jobs 1 and 2 have ended and are kept for no time. Job 3 waits behind job 1, job 4 runs behind job 2, and the terms of
/// job 5, which is behind job 2, cannot be read.
async fn fill(path: &Path, clock: &ManualClock) {
    let store = SqliteStore::open(path, Options::default(), Arc::new(clock.clone())).unwrap();
    store.enqueue(vec![kept_shortly(1), kept_shortly(2)]).await.unwrap();
    let granted = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    let ends = granted.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
    store.settle(ends, None).await.unwrap();
    store.enqueue(vec![after(3, 1), after(4, 2), after(5, 2)]).await.unwrap();
    store.close().await.unwrap();
}

/// As if step 0010 had never run.
const OLDER: &str = "DROP TABLE needed_by; DELETE FROM migration WHERE number >= 10; PRAGMA user_version = 9;
    UPDATE job SET terms = '{torn' WHERE seq = 5";

#[test]
fn a_file_of_an_older_version_keeps_the_jobs_that_others_depend_on() {
    let (_directory, path) = file();
    let clock = ManualClock::new();
    runtime().block_on(async {
        fill(&path, &clock).await;
        Connection::open(&path).unwrap().execute_batch(OLDER).unwrap();
        let store = SqliteStore::open(&path, Options::default(), Arc::new(clock.clone())).unwrap();
        clock.advance(DAY);
        assert_eq!(store.tend().await.unwrap().pruned, 0);
        let granted = store.reserve(ask(host(1), 2)).await.unwrap().jobs;
        assert_eq!(granted.iter().map(|job| job.job().seq).collect::<Vec<_>>(), [3, 4]);
        for reserved in granted {
            assert!(store.job(new_job(reserved.job().seq - 2).id).await.unwrap().is_some());
            store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
        }
        clock.advance(tenure_core::limits::NEEDED_LEAST);
        assert_eq!(store.tend().await.unwrap().pruned, 2);
        store.close().await.unwrap();
    });
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE job SET terms = NULL WHERE seq = 5", []).unwrap();
    assert_agrees(&conn);
}
