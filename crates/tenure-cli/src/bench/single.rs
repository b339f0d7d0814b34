//! Enqueueing one by one: each call waits until its own job is durable.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tenure::{Error, Tenure};
use tokio::task::JoinSet;

use super::figure::{Figure, Round, median, rounded, share};
use super::ground::Ground;
use super::meter::{Meter, bounded, now};
use super::noop::NoOp;
use super::sizes::Sizes;
use crate::exit::Failure;

const CROWD: usize = 16;

/// One client and sixteen, in turn; then the same on a disk that is held back.
pub(crate) async fn measure(
    ground: &Ground,
    sizes: &Sizes,
    fsync_rate: NonZeroU32,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = pair(ground, sizes, ["enqueue_single_1", "enqueue_single_16"], None).await?;
    if ground.is_durable() {
        let names = ["enqueue_single_1_capped", "enqueue_single_16_capped"];
        let capped = pair(ground, sizes, names, Some(fsync_rate)).await?;
        figures.extend(capped.into_iter().map(|figure| figure.with("fsyncs_per_s_cap", fsync_rate)));
    }
    Ok(figures)
}

async fn pair(
    ground: &Ground,
    sizes: &Sizes,
    names: [&'static str; 2],
    fsync_rate: Option<NonZeroU32>,
) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let commit = fsync_rate.map(|rate| Duration::from_secs(1) / rate.get());
    let (mut alone, mut crowd) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        alone.push(bounded(names[0], round(ground, sizes, 1, commit)).await?);
        crowd.push(bounded(names[1], round(ground, sizes, CROWD, commit)).await?);
        ground.clear();
    }
    let rate = |round: &Round| round.jobs as f64 / round.spent.seconds;
    let ratio = median(alone.iter().zip(&crowd).map(|(one, many)| rate(many) / rate(one)));
    Ok(vec![
        Figure::of(names[0], &alone).with("clients", 1).with_all(&facts),
        Figure::of(names[1], &crowd)
            .with("clients", CROWD)
            .with("ratio_16_to_1", ratio.map(rounded))
            .with_all(&facts),
    ])
}

async fn round(
    ground: &Ground,
    sizes: &Sizes,
    clients: usize,
    commit: Option<Duration>,
) -> Result<Round, Failure> {
    let tenure = ground.open(commit).await?;
    let meter = Meter::start();
    let until = now() + sizes.single_limit;
    let mut all = JoinSet::new();
    for _ in 0..clients {
        all.spawn(client(tenure.clone(), sizes.single_jobs / clients, until));
    }
    let mut waits_ms = Vec::new();
    while let Some(waits) = all.join_next().await {
        waits_ms.extend(waits.map_err(|end| gone(&end.to_string()))??);
    }
    let spent = meter.spent();
    tenure.close().await?;
    let more = vec![("p50_ms", share(&mut waits_ms, 0.5)), ("p99_ms", share(&mut waits_ms, 0.99))];
    Ok(Round { jobs: waits_ms.len(), spent, more })
}

/// Enqueues until it has had its jobs or its time, and answers how long each call took.
async fn client(tenure: Tenure, jobs: usize, until: Instant) -> Result<Vec<f64>, Error> {
    let mut waits_ms = Vec::new();
    let mut sent = now();
    while waits_ms.len() < jobs.max(1) && sent < until {
        tenure.enqueue(NoOp::sent(0)).await?;
        let answered = now();
        waits_ms.push(answered.duration_since(sent).as_secs_f64() * 1e3);
        sent = answered;
    }
    Ok(waits_ms)
}

fn gone(why: &str) -> Failure {
    Failure::Measurement { figure: "enqueue_single", why: format!("a client ended early: {why}") }
}
