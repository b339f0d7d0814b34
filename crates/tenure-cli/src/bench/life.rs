//! The whole life of a job: enqueued, reserved, run, settled, and kept.

use super::figure::{Figure, Round, median, rounded};
use super::floor;
use super::ground::Ground;
use super::meter::{Meter, bounded};
use super::noop::{BATCH, drain, enqueue};
use super::sizes::Sizes;
use crate::exit::Failure;

const NAME: &str = "life";

/// What a life costs in the library and, in turn with it, in the bare driver.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes, floor: bool) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let (mut lives, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        if floor {
            floors.extend(floor_round(ground, sizes.jobs).await?);
        }
        lives.push(bounded(NAME, round(ground, sizes)).await?);
        ground.clear();
    }
    let mut life = Figure::of(NAME, &lives).with("slots", sizes.slots).with("batch", BATCH).with_all(&facts);
    if floors.is_empty() {
        return Ok(vec![life]);
    }
    // Each round is compared with the floor beside it: what the machine does meanwhile meets both.
    let pairs = || lives.iter().zip(&floors);
    let ratio = median(pairs().map(|(life, floor)| life.cpu_us_per_job() / floor.cpu_us_per_job()));
    life = life.with("cpu_ratio_to_floor", ratio.map(rounded));
    Ok(vec![Figure::of("floor_life", &floors).with("batch", BATCH).with_all(&facts), life])
}

async fn round(ground: &Ground, sizes: &Sizes) -> Result<Round, Failure> {
    let tenure = ground.open(None).await?;
    let meter = Meter::start();
    enqueue(&tenure, sizes.jobs, BATCH).await?;
    let enqueued = meter.spent();
    let meter = Meter::start();
    drain(&tenure, sizes.jobs, sizes.slots).await?;
    let drained = meter.spent();
    tenure.close().await?;
    Ok(Round::in_parts(sizes.jobs, enqueued, drained))
}

/// On a thread of its own, so that an interruption is heard.
async fn floor_round(ground: &Ground, jobs: usize) -> Result<Option<Round>, Failure> {
    let Some(file) = ground.fresh_file() else { return Ok(None) };
    let work = tokio::task::spawn_blocking(move || floor::life(&file, jobs, BATCH));
    let [inserted, worked] =
        work.await.map_err(|end| Failure::Measurement { figure: "floor_life", why: end.to_string() })??;
    Ok(Some(Round::in_parts(jobs, inserted, worked)))
}

impl Round {
    /// A round in two parts, with what each of them cost.
    fn in_parts(jobs: usize, enqueued: super::meter::Spent, drained: super::meter::Spent) -> Self {
        let each = jobs as f64;
        let more = vec![
            ("enqueue_cpu_us_per_job", enqueued.cpu_us / each),
            ("drain_cpu_us_per_job", drained.cpu_us / each),
            ("enqueue_jobs_per_s", each / enqueued.seconds),
            ("drain_jobs_per_s", each / drained.seconds),
        ];
        Self { jobs, spent: enqueued + drained, more }
    }
}
