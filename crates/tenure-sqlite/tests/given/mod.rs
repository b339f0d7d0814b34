//! What the tests of this crate start from.

// Not every test needs all of it, and one that unwraps fails where it stands.
#![allow(dead_code, clippy::unwrap_used)]

pub mod agree;
pub mod leases;
pub mod timers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure_core::{
    Args, Due, HostId, JobId, Kind, NewJob, Priority, QueueName, Reserved, RetryPolicy, Settlement, Terms,
    Timestamp, Verdict,
};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Kinds, ManualClock, Reserve, SystemClock, Want};

/// A directory that goes with the test, and a file in it.
pub fn file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tenure.db");
    (directory, file)
}

/// A store whose clock stands still.
pub fn open(file: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(file, Options::default(), Arc::new(ManualClock::new())).unwrap()
}

/// A store on the real clock.
pub fn open_live(file: &Path, options: Options) -> Arc<SqliteStore> {
    SqliteStore::open(file, options, Arc::new(SystemClock)).unwrap()
}

/// A runtime on several threads.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// A job to be done at once, told apart by its number.
pub fn new_job(number: u64) -> NewJob {
    NewJob {
        id: JobId::new(Timestamp::from_micros(1_700_000_000_000_000).unwrap(), number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::default(),
        args: Args::new(format!("{{\"number\":{number}}}").into_bytes()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(Terms::default()),
    }
}

/// So many jobs, from this number on.
pub fn new_jobs(from: u64, count: u64) -> Vec<NewJob> {
    (from..from + count).map(new_job).collect()
}

pub fn host(number: u64) -> HostId {
    HostId::new(Timestamp::EPOCH, number)
}

/// A wish for jobs of the default queue, for a minute.
pub fn ask(holder: HostId, at_most: usize) -> Reserve {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
    Reserve { holder, ttl: Duration::from_secs(60), wants: vec![want], at_most }
}

pub fn settle(reserved: Reserved, verdict: Verdict) -> Settlement {
    reserved.settle(verdict, &RetryPolicy::default(), 0.5)
}
