//! A copy of a file in use.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_sqlite::Options;
use tenure_store::{Fault, Jobs, Store, Views};

use crate::given::{file, new_job, new_jobs, open, open_live, runtime};

#[test]
fn a_copy_made_while_jobs_come_in_holds_all_that_was_acknowledged_before() {
    let (directory, file) = file();
    let copy = directory.path().join("copy.db");
    let runtime = runtime();
    runtime.block_on(async {
        let store = open_live(&file, Options::default());
        let acknowledged = Arc::new(AtomicU64::new(0));
        let enqueueing = {
            let (store, acknowledged) = (store.clone(), acknowledged.clone());
            tokio::spawn(async move {
                for number in 1.. {
                    if store.enqueue(vec![new_job(number)]).await.is_err() {
                        return;
                    }
                    acknowledged.store(number, Ordering::Release);
                }
            })
        };
        while acknowledged.load(Ordering::Acquire) < 50 {
            tokio::task::yield_now().await;
        }
        let before = acknowledged.load(Ordering::Acquire);
        store.backup(&copy).await.unwrap();
        let after = acknowledged.load(Ordering::Acquire) + 1;
        store.close().await.unwrap();
        enqueueing.await.unwrap();

        let restored = open(&copy);
        let jobs = restored.counts().await.unwrap()[0].jobs;
        assert!((before..=after).contains(&jobs), "{before} <= {jobs} <= {after}");
    });
    assert!(!directory.path().join("copy.db.partial").exists());
}

#[test]
fn a_copy_onto_the_file_itself_or_one_in_use_is_refused() {
    let (directory, file) = file();
    let other = directory.path().join("other.db");
    runtime().block_on(async {
        let (store, _in_use) = (open(&file), open(&other));
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        _in_use.enqueue(new_jobs(1, 1)).await.unwrap();
        for to in [&file, &other] {
            assert!(matches!(store.backup(to).await, Err(Fault::Broken(text)) if text.contains("in use")));
        }
        assert!(matches!(
            store.backup(&directory.path().join("nowhere/copy.db")).await,
            Err(Fault::Broken(_))
        ));
        assert_eq!(store.counts().await.unwrap()[0].jobs, 1);
    });
}

#[test]
fn a_newer_copy_takes_the_place_of_an_older_one() {
    let (directory, file) = file();
    let copy = directory.path().join("copy.db");
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        store.backup(&copy).await.unwrap();
        let first = fs::read(&copy).unwrap();
        store.enqueue(new_jobs(2, 1)).await.unwrap();
        store.backup(&copy).await.unwrap();
        assert!(fs::read(&copy).unwrap() != first);
        assert_eq!(open(&copy).counts().await.unwrap()[0].jobs, 2);
    });
}
