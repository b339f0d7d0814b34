//! The threads of a store end with it. Alone in its program, so that it can count them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use crate::given;

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

/// Ends when there are that many threads: one that was just started has no name yet, one that was
/// told to end may still run. Fails when it stays otherwise.
fn come_to(wanted: usize, which: &str) {
    let came = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        threads() == wanted
    });
    assert!(came, "{} threads instead of {wanted}: {which}", threads());
}

#[test]
fn no_thread_outlives_its_store() {
    let (_directory, file) = file();
    let runtime = runtime();
    runtime.block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 10)).await.unwrap();
        come_to(6, "a writer, four readers and a watch");
        store.close().await.unwrap();
        come_to(0, "all have ended");
        assert_eq!(store.counts().await, Err(Fault::Closed));
        assert_eq!(store.close().await, Err(Fault::Closed));
    });
    runtime.block_on(async {
        let store = open(&file);
        assert_eq!(store.counts().await.unwrap()[0].jobs, 10);
        drop(store);
    });
    come_to(0, "all have ended");
}
