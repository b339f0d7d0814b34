//! What tables look like in real life: much that waits, much that has ended, an old snapshot.

use std::time::Duration;

use super::life::{Drain, drain};
use super::{Stage, long};
use crate::Outcome;
use crate::line::Line;
use crate::meter::Reading;

const WAITING: &str = "waiting";
const FINISHED: &str = "finished";
const UNPINNED: &str = "unpinned";
const PINNED: &str = "pinned";
const TOGETHER: &str = "together, paced";
const TOGETHER_DRAINED: &str = "together, drained";

/// Jobs that are enqueued and drained in one go until enough have ended.
const LAP: u64 = 100_000;
/// Jobs a second, in batches, while the horizon is pinned.
const RATE: u64 = 2_000;
const LEAST_RATE: u64 = 20;
const BATCH: u64 = 100;

/// A drain of the usual number of jobs out of very many.
pub fn waiting(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let jobs = stage.jobs();
    let there = stage.contestant.part_of(stage.ground.options.waiting).max(jobs);
    stage.fill(there)?;
    Ok(vec![drain(stage, WAITING, Drain { there, jobs, processes: 1 })?])
}

/// A drain of the usual number of jobs beside very many that have ended, by the contestant's own hand.
pub fn finished(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let jobs = stage.jobs();
    finish_many(stage)?;
    stage.fill(jobs)?;
    Ok(vec![drain(stage, FINISHED, Drain { there: jobs, jobs, processes: 1 })?])
}

/// Works off very many.
fn finish_many(stage: &mut Stage) -> Outcome {
    let mut left = stage.contestant.part_of(stage.ground.options.finished);
    while left > 0 {
        let lap = left.min(LAP);
        stage.fill(lap)?;
        stage.database.rest()?;
        let mut workers = stage.workers(1)?;
        workers.start()?;
        workers.reach(lap)?;
        workers.stop()?;
        left -= lap;
    }
    Ok(())
}

/// Beside very many that have ended: a steady pace for long with the snapshot, and with that still open a drain of the usual
/// number of jobs out of very many that wait.
pub fn together(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let jobs = stage.jobs();
    let unpinned = paced(stage, UNPINNED, stage.seconds())?;
    finish_many(stage)?;
    let pin = stage.database.pin()?;
    let paced = paced(stage, TOGETHER, Duration::from_secs(stage.ground.options.pinned))?;
    let there = stage.contestant.part_of(stage.ground.options.waiting).max(jobs);
    stage.fill(there)?;
    let drained = drain(stage, TOGETHER_DRAINED, Drain { there, jobs, processes: 1 })?;
    drop(pin);
    Ok(vec![unpinned, paced, drained])
}

/// A pace that leaves time to spare, first for a while without the snapshot, then for long with it.
pub fn pinned(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let unpinned = paced(stage, UNPINNED, stage.seconds())?;
    let pin = stage.database.pin()?;
    let pinned = paced(stage, PINNED, Duration::from_secs(stage.ground.options.pinned))?;
    drop(pin);
    Ok(vec![unpinned, pinned])
}

fn paced(stage: &mut Stage, figure: &'static str, span: Duration) -> Outcome<Line> {
    let rate = stage.contestant.part_of(RATE).max(LEAST_RATE);
    let jobs = rate * span.as_secs();
    let mut workers = stage.workers(1)?;
    workers.start()?;
    let mut producer = stage.producer(1)?;
    stage.database.rest()?;
    let processes = [workers.processes(), vec![producer.process()]].concat();
    let before = Reading::take(stage.database.as_mut(), &processes)?;
    let pace = format!("pace {rate} {} {}", span.as_secs(), BATCH.min(rate / LEAST_RATE).max(1));
    producer.ask(&pace, long(jobs) + span)?;
    workers.reach(jobs)?;
    let cost = before.spent(stage.database.as_mut(), &processes)?;
    let seen = workers.stop()?;
    stage.database.tell_statements(figure)?;
    stage.line(figure).with_all(&seen).with_cost(cost)
}
