//! From enqueueing to the start of the handler, with little to do.

use std::time::Duration;

use super::{Stage, long};
use crate::Outcome;
use crate::line::Line;
use crate::meter::Reading;
use crate::program::Program;

const RATE: u64 = 20;
const WARM: u64 = 20;
/// A worker that has just started is not yet at rest.
const SETTLES_IN: Duration = Duration::from_secs(2);

fn warm(producer: &mut Program) -> Outcome {
    producer.ask(&format!("warm {WARM}"), long(WARM))?;
    std::thread::sleep(SETTLES_IN);
    Ok(())
}

pub fn measure(stage: &mut Stage) -> Outcome<Vec<Line>> {
    let jobs = RATE * stage.seconds().as_secs();
    let mut workers = stage.workers(1)?;
    workers.start()?;
    let mut producer = stage.producer(2)?;
    warm(&mut producer)?;
    stage.database.rest()?;
    // Whatever was planned is planned anew after that.
    warm(&mut producer)?;
    let processes = [workers.processes(), vec![producer.process()]].concat();
    let before = Reading::take(stage.database.as_mut(), &processes)?;
    producer.ask(&format!("pace {RATE} {} 1", stage.seconds().as_secs()), long(jobs) + stage.seconds())?;
    workers.reach(jobs)?;
    let cost = before.spent(stage.database.as_mut(), &processes)?;
    let seen = workers.stop()?;
    stage.database.tell_statements("latency")?;
    Ok(vec![stage.line("latency").with_all(&seen).with_cost(cost)?])
}
