//! The job that is measured: nothing to do, with about as much to say as a usual one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Failed, Job, Run, StateName, Tenure, Worker};
use tokio::sync::Notify;

use crate::exit::Failure;

/// Args of a hundred bytes. The bare driver stores the same ones.
pub(crate) const ARGS: &str = concat!(
    r#"{"sent_us":0,"pad":""#,
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    r#""}"#
);
/// Jobs of one call where they come in batches.
pub(crate) const BATCH: usize = 100;

/// Nothing to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct NoOp {
    /// When it was sent, in microseconds since the measurement began; 0 where that does not matter.
    pub(crate) sent_us: u64,
    pub(crate) pad: String,
}

impl Job for NoOp {
    const KIND: &'static str = "noop";
    type Output = ();
}

impl NoOp {
    pub(crate) fn sent(sent_us: u64) -> Self {
        Self { sent_us, pad: "x".repeat(78) }
    }
}

/// So many drafts.
pub(crate) fn drafts(jobs: usize) -> impl Iterator<Item = Draft> {
    (0..jobs).map(|_| Draft::of(&NoOp::sent(0)))
}

/// Enqueues so many jobs in batches.
pub(crate) async fn enqueue(tenure: &Tenure, jobs: usize, batch: usize) -> Result<(), Error> {
    let mut left = jobs;
    while left > 0 {
        let now = left.min(batch);
        tenure.enqueue_all(drafts(now)).await?;
        left -= now;
    }
    Ok(())
}

struct Left {
    jobs: AtomicUsize,
    none: Notify,
}

/// Lets a real worker run until so many handlers have run, and stops it. What they did is settled
/// when this answers.
pub(crate) async fn drain(tenure: &Tenure, jobs: usize, slots: usize) -> Result<(), Failure> {
    let left = Arc::new(Left { jobs: AtomicUsize::new(jobs), none: Notify::new() });
    let none = Arc::clone(&left);
    let worker = Worker::new(tenure, left).queue("default", slots).job(noop);
    let stopped = worker.run(async move { none.none.notified().await }).await?;
    let settled = usize::try_from(stopped.settled).unwrap_or(usize::MAX);
    if settled != jobs || succeeded(tenure).await? < jobs as u64 {
        let why = format!("{settled} of {jobs} jobs were settled");
        return Err(Failure::Measurement { figure: "draining", why });
    }
    Ok(())
}

async fn noop(run: Run<Arc<Left>>, _job: NoOp) -> Result<(), Failed> {
    if run.app().jobs.fetch_sub(1, Ordering::Relaxed) == 1 {
        run.app().none.notify_one();
    }
    Ok(())
}

async fn succeeded(tenure: &Tenure) -> Result<u64, Error> {
    let counts = tenure.counts().await?;
    Ok(counts.iter().filter(|count| count.state == StateName::Succeeded).map(|count| count.jobs).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_and_the_floor_store_the_same_hundred_bytes() {
        assert_eq!(serde_json::to_string(&NoOp::sent(0)).unwrap(), ARGS);
        assert_eq!(ARGS.len(), 100);
    }
}
