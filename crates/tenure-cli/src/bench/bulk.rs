//! Enqueueing many at once.

use super::figure::{Figure, Round};
use super::ground::Ground;
use super::meter::{Meter, bounded};
use super::noop::enqueue;
use super::sizes::Sizes;
use crate::exit::Failure;

const NAME: &str = "enqueue_bulk";
const BATCHES: [usize; 2] = [100, 10_000];

/// How fast batches of two sizes are accepted.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for batch in BATCHES.map(|batch| batch.min(sizes.jobs)) {
        let facts = ground.facts()?;
        let mut rounds = Vec::new();
        for _ in 0..sizes.rounds {
            rounds.push(bounded(NAME, round(ground, sizes.jobs, batch)).await?);
            ground.clear();
        }
        figures.push(Figure::of(NAME, &rounds).with("batch", batch).with_all(&facts));
    }
    Ok(figures)
}

async fn round(ground: &Ground, jobs: usize, batch: usize) -> Result<Round, Failure> {
    let tenure = ground.open(None).await?;
    let meter = Meter::start();
    enqueue(&tenure, jobs, batch).await?;
    let spent = meter.spent();
    tenure.close().await?;
    Ok(Round { jobs, spent, more: Vec::new() })
}
