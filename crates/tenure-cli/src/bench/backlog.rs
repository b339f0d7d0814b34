//! Whether claiming costs more when a great many jobs wait and have finished.

use std::time::Duration;

use tenure::{HostId, Job, Kind, Kinds, QueueName, Reserve, RetryPolicy, Tenure, Verdict, Want, limits};

use super::figure::{Figure, Round, median, rounded};
use super::ground::Ground;
use super::meter::{Meter, Spent, bounded};
use super::noop::{BATCH, NoOp, drain, enqueue};
use super::sizes::Sizes;
use crate::exit::Failure;
use crate::screen::tell;

const NAME: &str = "backlog";
const LOAD: usize = 10_000;
/// Longer than any measurement: nothing lapses meanwhile.
const TTL: Duration = Duration::from_secs(3_600);

/// What a claim costs in an empty store and in a full one, in turn.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    tell(&format!("{NAME}: preparing {} finished jobs and as many waiting ones", sizes.backlog));
    let full = bounded(NAME, fill(ground, sizes)).await?;
    let facts = ground.facts()?;
    let (mut in_empty, mut in_full) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let empty = ground.open(None).await?;
        enqueue(&empty, sizes.claims, LOAD).await?;
        in_empty.push(bounded(NAME, claims(&empty, sizes.claims)).await?);
        empty.close().await?;
        in_full.push(bounded(NAME, claims(&full, sizes.claims)).await?);
    }
    full.close().await?;
    let ratio = median(
        in_full.iter().zip(&in_empty).map(|(full, empty)| full.cpu_us_per_job() / empty.cpu_us_per_job()),
    );
    let empty = median(in_empty.iter().map(Round::cpu_us_per_job));
    let figure = Figure::of(NAME, &in_full)
        .with("empty_cpu_us_per_job", empty.map(rounded))
        .with("ratio_to_empty", ratio.map(rounded))
        .with("waiting", sizes.backlog)
        .with("finished", sizes.backlog);
    Ok(vec![figure.with_all(&facts)])
}

/// A store with many finished jobs and as many that wait.
async fn fill(ground: &Ground, sizes: &Sizes) -> Result<Tenure, Failure> {
    let tenure = ground.open(None).await?;
    enqueue(&tenure, sizes.backlog, LOAD).await?;
    drain(&tenure, sizes.backlog, sizes.slots).await?;
    enqueue(&tenure, sizes.backlog, LOAD).await?;
    Ok(tenure)
}

/// Claims so many jobs, in batches; only the claims are measured. What was claimed is finished after
/// that, so that running jobs do not add up.
async fn claims(tenure: &Tenure, jobs: usize) -> Result<Round, Failure> {
    let holder = HostId::new(tenure.store().clock().now(), jobs as u64);
    let mut spent = Spent { seconds: 0.0, cpu_us: 0.0, written: Some(0.0) };
    let mut claimed = Vec::with_capacity(jobs);
    while claimed.len() < jobs {
        let ask = ask(holder, (jobs - claimed.len()).min(BATCH))?;
        let meter = Meter::start();
        let granted = tenure.store().reserve(ask).await.map_err(tenure::Error::from)?.jobs;
        spent = spent + meter.spent();
        if granted.is_empty() {
            let why = format!("only {} of {jobs} jobs could be claimed", claimed.len());
            return Err(Failure::Measurement { figure: NAME, why });
        }
        claimed.extend(granted);
    }
    let policy = RetryPolicy::default();
    let mut ends = claimed.into_iter().map(|held| held.settle(Verdict::Succeeded(None), &policy, 0.5));
    loop {
        let some: Vec<_> = ends.by_ref().take(limits::RESERVE_JOBS).collect();
        if some.is_empty() {
            return Ok(Round { jobs, spent, more: Vec::new() });
        }
        tenure.store().settle(some, None).await.map_err(tenure::Error::from)?;
    }
}

fn ask(holder: HostId, at_most: usize) -> Result<Reserve, tenure::Error> {
    let kinds = Kinds::Only([Kind::new(NoOp::KIND)?].into());
    let wants = vec![Want { queue: QueueName::default(), kinds, at_most }];
    Ok(Reserve { holder, ttl: TTL, wants, at_most })
}
