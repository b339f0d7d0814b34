//! The whole life of a job: enqueued in bulk, then drained.

use serde_json::Value;

use super::{Stage, long};
use crate::Outcome;
use crate::line::Line;
use crate::meter::{Cost, Reading};

const BULK: &str = "bulk";
const DRAIN: &str = "drain";
const DRAIN_BY_FOUR: &str = "drain by 4";

pub fn measure(stage: &mut Stage, processes: usize) -> Outcome<Vec<Line>> {
    let jobs = stage.jobs();
    let bulk = put(stage, jobs)?;
    let figure = if processes == 1 { DRAIN } else { DRAIN_BY_FOUR };
    let life_bytes = bulk.get("wal_bytes").unwrap_or(0.0);
    let drained = drain(stage, figure, jobs, processes)?;
    let life_bytes = life_bytes + drained.get("wal_bytes").unwrap_or(0.0);
    let drained = drained.with("life_wal_bytes", life_bytes);
    // Enqueueing is the same for however many processes drain.
    Ok(if processes == 1 { vec![bulk, drained] } else { vec![drained] })
}

fn put(stage: &mut Stage, jobs: u64) -> Outcome<Line> {
    let mut producer = stage.producer(1)?;
    let clients = [producer.process()];
    stage.database.rest()?;
    let before = Reading::take(&mut stage.database, &clients)?;
    let put = producer.ask(&format!("put {jobs} {}", stage.contestant.bulk), long(jobs))?;
    let cost = before.spent(&mut stage.database, &clients)?;
    stage.database.tell_statements(BULK)?;
    stage.line(BULK).with_all(&put).with_cost(cost)
}

/// Drains what is there until so many jobs have begun.
pub fn drain(stage: &mut Stage, figure: &'static str, jobs: u64, processes: usize) -> Outcome<Line> {
    let (seen, cost) = drained(stage, jobs, processes)?;
    stage.database.tell_statements(figure)?;
    let line = stage.line(figure).with_all(&seen).with_cost(cost)?;
    let left = stage.database.count(stage.contestant.unfinished)?;
    Ok(line.with("left", left as f64))
}

fn drained(stage: &mut Stage, jobs: u64, processes: usize) -> Outcome<(Value, Cost)> {
    let mut workers = stage.workers(processes)?;
    let clients = workers.processes();
    stage.database.rest()?;
    let before = Reading::take(&mut stage.database, &clients)?;
    workers.start()?;
    workers.reach(jobs)?;
    let seen = workers.stop()?;
    Ok((seen, before.spent(&mut stage.database, &clients)?))
}
