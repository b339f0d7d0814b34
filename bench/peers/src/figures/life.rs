//! The whole life of a job: enqueued in bulk, then drained.

use serde_json::Value;

use super::{Stage, long};
use crate::Outcome;
use crate::line::Line;
use crate::meter::{Cost, Reading};

const BULK: &str = "bulk";
const DRAIN: &str = "drain";
const DRAIN_BY_FOUR: &str = "drain by 4";
const DRAIN_BY_MANY: &str = "drain by 16";

pub fn measure(stage: &mut Stage, processes: usize) -> Outcome<Vec<Line>> {
    let jobs = stage.jobs();
    let bulk = put(stage, jobs)?;
    let figure = match processes {
        1 => DRAIN,
        4 => DRAIN_BY_FOUR,
        _ => DRAIN_BY_MANY,
    };
    let mut drained = drain(stage, figure, Drain { there: jobs, jobs, processes })?;
    if let (Some(bulk), Some(end)) = (bulk.get("wal_bytes"), drained.get("wal_bytes")) {
        drained = drained.with("life_wal_bytes", bulk + end);
    }
    // Enqueueing is the same for however many processes drain.
    Ok(if processes == 1 { vec![bulk, drained] } else { vec![drained] })
}

fn put(stage: &mut Stage, jobs: u64) -> Outcome<Line> {
    let mut producer = stage.producer(1)?;
    let clients = [producer.process()];
    stage.database.rest()?;
    let before = Reading::take(stage.database.as_mut(), &clients)?;
    let put = producer.ask(&format!("put {jobs} {}", stage.contestant.bulk), long(jobs))?;
    let cost = before.spent(stage.database.as_mut(), &clients)?;
    stage.database.tell_statements(BULK)?;
    stage.line(BULK).with_all(&put).with_cost(cost)
}

/// What is there, how much of it is drained, and by how many processes.
pub struct Drain {
    pub there: u64,
    pub jobs: u64,
    pub processes: usize,
}

pub fn drain(stage: &mut Stage, figure: &'static str, drain: Drain) -> Outcome<Line> {
    let (seen, cost) = drained(stage, &drain)?;
    stage.database.tell_statements(figure)?;
    let line = stage.line(figure).with_all(&seen).with_cost(cost)?;
    let Some(unfinished) = stage.contestant.unfinished else { return Ok(line) };
    let begun = line.get("jobs").unwrap_or(0.0);
    let left = stage.database.count(unfinished)? as f64 - (drain.there as f64 - begun);
    Ok(line.with("left", left))
}

fn drained(stage: &mut Stage, drain: &Drain) -> Outcome<(Value, Cost)> {
    let mut workers = stage.workers(drain.processes)?;
    let clients = workers.processes();
    stage.database.rest()?;
    let before = Reading::take(stage.database.as_mut(), &clients)?;
    workers.start()?;
    workers.reach(drain.jobs)?;
    let seen = workers.stop()?;
    Ok((seen, before.spent(stage.database.as_mut(), &clients)?))
}
