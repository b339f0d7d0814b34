//! Jobs to try transitions on.
#![allow(dead_code, reason = "every test program uses a part of this")]

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Backoff, Due, Epoch, HostId, Job, JobId, Keep, Kind, NewJob, Priority, QueueName, Retention,
    RetryPolicy, Terms, Timestamp,
};

/// The instant at which every table takes place.
pub const NOW: u64 = 1_000;
/// When the job had been due.
pub const DUE: u64 = 100;
/// Attempts that the terms of the tables allow.
pub const ATTEMPTS: u32 = 3;
/// Grants that the terms of the tables allow.
pub const DELIVERIES: u32 = 7;
/// How long a job that succeeded is kept.
pub const KEEP_SUCCEEDED: u64 = 60;
/// How long any other ended job is kept.
pub const KEEP_FAILED: u64 = 600;

pub fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.after(seconds(second))
}

pub fn host() -> HostId {
    HostId::from_bytes([7; 16])
}

pub fn policy() -> RetryPolicy {
    RetryPolicy { backoff: Backoff::Fixed(seconds(5)), max_attempts: ATTEMPTS, max_deliveries: DELIVERIES }
}

pub fn terms() -> Terms {
    Terms {
        retry: Some(policy()),
        retention: Retention {
            succeeded: Keep::For(seconds(KEEP_SUCCEEDED)),
            failed: Keep::For(seconds(KEEP_FAILED)),
        },
        ..Terms::default()
    }
}

pub fn new_job(terms: Terms) -> NewJob {
    NewJob {
        id: JobId::from_bytes([1; 16]),
        kind: Kind::new("mail").expect("a name"),
        queue: QueueName::new("out").expect("a name"),
        args: Args::new(*b"{}").expect("small"),
        priority: Priority::default(),
        due: Due::At(at(DUE)),
        terms: Arc::new(terms),
    }
}

/// A job that waits, due at [`DUE`].
pub fn waiting() -> Job {
    new_job(terms()).accepted(1, at(DUE))
}

/// The job, running until `until` in this attempt and delivery.
pub fn running(attempt: u32, delivery: u32, until: u64) -> Job {
    let mut job = waiting();
    job.attempt = attempt - 1;
    job.delivery = delivery - 1;
    job.granted(host(), Epoch::default(), at(500), at(until))
}
