//! Enqueueing in batches and working at once, as fast as both go.

use std::time::{Duration, Instant};

use super::Stage;
use crate::Outcome;
use crate::line::Line;
use crate::meter::Reading;
use crate::program::{PATIENCE, Program};
use crate::workers::Workers;

const BATCH: u64 = 100;
const CLIENTS: u64 = 2;
/// Who enqueues faster than the worker works waits when it is so many jobs ahead.
const AHEAD: u64 = 4_000;
const TELLS_EVERY: Duration = Duration::from_millis(5);

pub fn measure(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let seconds = stage.seconds().as_secs();
    let mut workers = stage.workers(1)?;
    workers.start()?;
    let mut producer = stage.producer(CLIENTS)?;
    stage.database.rest()?;
    let processes = [workers.processes(), vec![producer.process()]].concat();
    let before = Reading::take(stage.database.as_mut(), &processes)?;
    producer.say(&format!("flow {seconds} {BATCH} {AHEAD}"))?;
    let sent = until_sent(&mut producer, &mut workers, Duration::from_secs(seconds))?;
    workers.reach(sent)?;
    let cost = before.spent(stage.database.as_mut(), &processes)?;
    let seen = workers.stop()?;
    stage.database.tell_statements("steady")?;
    Ok(vec![stage.line("steady").with_all(&seen).with_cost(cost)?])
}

/// Tells the producer how far the workers are until it has sent all; answers how many.
fn until_sent(producer: &mut Program, workers: &mut Workers, span: Duration) -> Outcome<u64> {
    let (start, mut told) = (Instant::now(), 0);
    while start.elapsed() < span + PATIENCE {
        let begun = workers.begun()?;
        if begun != told {
            told = begun;
            producer.say(&format!("done {begun}"))?;
        }
        if let Some(answer) = producer.hear(TELLS_EVERY)? {
            return Ok(answer["jobs"].as_u64().ok_or("it did not say how many it has sent")?);
        }
    }
    Err("it did not end to enqueue".into())
}
