//! Enqueueing one by one.

use super::{Stage, long};
use crate::Outcome;
use crate::line::Line;
use crate::meter::Reading;

/// Of the jobs that are drained. 16 clients enqueue so many that the fastest need a second: what happens once when a
/// program begins is not to be seen in it.
const PART: u64 = 33;
const PART_OF_16: u64 = 4;
const WARM: u64 = 50;

pub fn measure(stage: &mut Stage) -> Outcome<Vec<Line>> {
    // Who drains slowly may enqueue as fast as others.
    let jobs = stage.ground.options.jobs;
    let alone = put(stage, "single", 1, (jobs / PART).max(1))?;
    let together = put(stage, "single, 16 clients", 16, (jobs / PART_OF_16).max(1))?;
    Ok(vec![alone, together])
}

fn put(stage: &mut Stage, figure: &'static str, clients: u64, jobs: u64) -> Outcome<Line> {
    let mut producer = stage.producer(clients)?;
    let processes = [producer.process()];
    producer.ask(&format!("warm {WARM}"), long(WARM))?;
    stage.database.rest()?;
    let before = Reading::take(stage.database.as_mut(), &processes)?;
    let put = producer.ask(&format!("put {jobs} 1"), long(jobs))?;
    let cost = before.spent(stage.database.as_mut(), &processes)?;
    stage.database.tell_statements(figure)?;
    stage.line(figure).with_all(&put).with_cost(cost)
}
