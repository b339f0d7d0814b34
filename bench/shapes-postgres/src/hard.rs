//! The hard cases: how long a claim takes beside much that waits, much that is done, and a pinned horizon.

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::Cluster;
use crate::driver::Driver;
use crate::life::lay_out;
use crate::meter::Meter;
use crate::report::tenths;
use crate::shape::Shape;

type Outcome = Result<(), Box<dyn Error>>;

/// Where a claimer begins to look.
///
/// What was claimed leaves dead entries at the head of the line, and they stay as long as somebody's snapshot might
/// see them. So a claimer begins where its last jobs were, a little before, and looks at the whole line so rarely
/// that this costs it half a percent.
pub struct Mark {
    is_used: bool,
    at: (i64, i64),
    usual: Duration,
    next: Instant,
}

/// Half a percent of the time goes into looks at the whole line.
const RARELY: u32 = 200;
/// Microseconds: what commits late may be due this much before what was claimed last.
const SLACK: i64 = 200_000;
const BATCH: usize = 500;

impl Mark {
    pub fn new(is_used: bool) -> Mark {
        Mark { is_used, at: (0, 0), usual: Duration::MAX, next: Instant::now() }
    }

    /// Claims; answers how many, how long it took, and whether the whole line was looked at.
    async fn claim(
        &mut self,
        driver: &Driver<'_>,
    ) -> Result<(crate::driver::Claimed, f64, bool), Box<dyn Error>> {
        let is_whole = !self.is_used || Instant::now() >= self.next;
        let from = if is_whole { (0, 0) } else { self.at };
        let begun = Instant::now();
        let claimed = driver.claim(BATCH, from).await?;
        let took = begun.elapsed();
        if is_whole {
            self.next = Instant::now() + took.saturating_sub(self.usual) * RARELY;
        } else {
            self.usual = took;
        }
        if self.usual == Duration::MAX {
            self.usual = took;
        }
        self.at = (claimed.last.0 - SLACK, 0);
        Ok((claimed, took.as_secs_f64() * 1e3, is_whole))
    }
}

/// What is there before the measurement.
#[derive(Clone, Copy)]
pub struct Load {
    pub name: &'static str,
    pub waiting: usize,
    pub finished: usize,
    pub pinned: bool,
    pub seconds: u64,
}

/// Enqueues, claims and settles 500 at a time, and tells how long the claims took.
pub async fn sustain(shape: &Shape, cluster: &Cluster, meter: &Meter, load: Load, marks: bool) -> Outcome {
    lay_out(shape, cluster).await?;
    let mut driver = Driver::open(shape, cluster.connect().await?, 1).await?;
    let mut mark = Mark::new(marks);
    for _ in 0..load.finished / 10_000 {
        for _ in 0..10 {
            driver.enqueue(1000).await?;
        }
        for _ in 0..20 {
            let (claimed, ..) = mark.claim(&driver).await?;
            driver.settle(&claimed).await?;
        }
    }
    for _ in 0..load.waiting / 1000 {
        driver.enqueue(1000).await?;
    }
    driver.client.batch_execute("VACUUM ANALYZE").await?;
    driver.client.batch_execute("CHECKPOINT").await?;
    let pin = cluster.connect().await?;
    if load.pinned {
        pin.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await?;
    }
    measure(&mut driver, &mut mark, meter, shape, load).await?;
    drop(pin);
    Ok(())
}

async fn measure(
    driver: &mut Driver<'_>,
    mark: &mut Mark,
    meter: &Meter,
    shape: &Shape,
    load: Load,
) -> Outcome {
    let (before, begun) = (meter.read().await?, Instant::now());
    let (mut took, mut whole, mut jobs) = (Vec::new(), Vec::new(), 0);
    while begun.elapsed() < Duration::from_secs(load.seconds) {
        driver.enqueue(BATCH).await?;
        let (claimed, milliseconds, is_whole) = mark.claim(driver).await?;
        took.push(milliseconds);
        if is_whole {
            whole.push(milliseconds);
        }
        jobs += driver.settle(&claimed).await?;
    }
    let cost = meter.since(before).await?;
    // A pinned horizon does its harm with time: the last third tells.
    let late = took.split_off(took.len() * 2 / 3);
    let per_job = 1e6 / jobs as f64;
    println!(
        "{}",
        json!({
            "plan": "hard", "load": load.name, "shape": shape.name, "marks": mark.is_used, "seconds": load.seconds,
            "jobs": jobs, "jobs_per_s": (jobs as f64 / cost.wall).round(),
            "database_us": tenths(cost.database * per_job), "wal_bytes": (cost.log * per_job / 1e6).round(),
            "claim_p50_ms": percentile(&took, 0.5), "claim_p99_ms": percentile(&took, 0.99),
            "late_p50_ms": percentile(&late, 0.5), "late_p99_ms": percentile(&late, 0.99),
            "whole_looks": whole.len(), "longest_whole_ms": percentile(&whole, 1.0),
        })
    );
    Ok(())
}

/// Several claimers drain one line. CPU and jobs per second.
pub async fn processes(
    shape: &Shape,
    cluster: &Cluster,
    meter: &Meter,
    jobs: usize,
    claimers: usize,
) -> Outcome {
    lay_out(shape, cluster).await?;
    let mut driver = Driver::open(shape, cluster.connect().await?, 1).await?;
    for _ in 0..jobs / 1000 {
        driver.enqueue(1000).await?;
    }
    driver.client.batch_execute("VACUUM ANALYZE").await?;
    driver.client.batch_execute("CHECKPOINT").await?;
    let mut drivers = Vec::new();
    for number in 0..claimers {
        drivers.push(Driver::open(shape, cluster.connect().await?, number as u64 + 2).await?);
    }
    let before = meter.read().await?;
    let drained = futures_util::future::join_all(drivers.iter().map(drain)).await;
    let cost = meter.since(before).await?;
    let mut done = 0;
    for drained in drained {
        done += drained?;
    }
    if done != jobs {
        return Err(format!("{done} of {jobs} jobs were done").into());
    }
    let per_job = 1e6 / jobs as f64;
    println!(
        "{}",
        json!({
            "plan": "processes", "shape": shape.name, "claimers": claimers, "jobs": jobs,
            "jobs_per_s": (jobs as f64 / cost.wall).round(), "database_us": tenths(cost.database * per_job),
            "client_us": tenths(cost.client * per_job), "wal_bytes": (cost.log * per_job / 1e6).round(),
        })
    );
    Ok(())
}

async fn drain(driver: &Driver<'_>) -> Result<usize, tokio_postgres::Error> {
    let (mut done, mut empty) = (0, 0);
    // Others may hold what is left, or have taken what this one saw.
    while empty < 3 {
        let claimed = driver.claim(BATCH, (0, 0)).await?;
        if claimed.seqs.is_empty() {
            empty += 1;
            continue;
        }
        done += driver.settle(&claimed).await?;
    }
    Ok(done)
}

fn percentile(figures: &[f64], part: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |figure| (figure * 100.0).round() / 100.0)
}
