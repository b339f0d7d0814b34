//! The threads of a store end with it. Alone in its program, so that it can count them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod given;

use std::fs;

use tenure_store::{Fault, Jobs, Store, Views};

use given::{file, new_jobs, open, runtime};

/// Threads of this program that belong to a store.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("tenure-"))
        .count()
}

/// Ends when no thread is left; a thread that stays makes this fail.
fn all_end() {
    let gone = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        threads() == 0
    });
    assert!(gone, "{} threads stay", threads());
}

#[test]
fn no_thread_outlives_its_store() {
    let (_directory, file) = file();
    let runtime = runtime();
    runtime.block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 10)).await.unwrap();
        assert_eq!(threads(), 6, "a writer, four readers and a watch");
        store.close().await.unwrap();
        all_end();
        assert_eq!(store.counts().await, Err(Fault::Closed));
        assert_eq!(store.close().await, Err(Fault::Closed));
    });
    runtime.block_on(async {
        let store = open(&file);
        assert_eq!(store.counts().await.unwrap()[0].jobs, 10);
        drop(store);
    });
    all_end();
}
