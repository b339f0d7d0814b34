//! What runs once in the cluster: a singleton that stands by on every host, and the single writer.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Duty, Failed, Message, Pass, Tenure, Worker};
use tenure::{RetryPolicy, Singleton, Writer};
use tenure_core::{Backoff, JobId};
use tenure_store::Chance;

use crate::handlers::App;
use crate::history::What;
use crate::holders::{Task, write_to};
use crate::plan::Plan;
use crate::world::World;

/// The app that all hosts of a cluster are instances of.
pub(crate) const APP: &str = "sim";
const WRITER: &str = "ledger";
/// Work says at least so often how it stands.
const SLICE: Duration = Duration::from_millis(400);

/// The queue in which messages to the writer wait.
pub(crate) fn mailbox() -> String {
    format!("writer.{APP}.{WRITER}")
}

/// What is sent to the writer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) ask: u64,
    ms: u64,
    fails: u32,
    for_good: bool,
}

impl Letter {
    pub(crate) fn draw(ask: u64, chance: &Chance) -> Self {
        let one_in = |n: u64| chance.below(n) == 0;
        let ms = if one_in(3) { chance.below(3_000) } else { 0 };
        let fails = if one_in(6) { u32::try_from(1 + chance.below(3)).unwrap_or(1) } else { 0 };
        Self { ask, ms, fails, for_good: one_in(20) }
    }
}

/// Sends letters, all or none.
pub(crate) async fn send(tenure: &Tenure, letters: &[Letter]) -> Result<Vec<JobId>, tenure::Error> {
    let app = APP.parse().expect("three letters are an app id");
    tenure.writer_of(&app, WRITER)?.send_all(letters).await
}

/// The worker with the services that the plan has.
pub(crate) fn with_services(mut worker: Worker<App>, plan: &Plan) -> Worker<App> {
    if plan.services.singleton {
        let singleton = Singleton::function().lease(plan.ttl);
        worker = worker.singleton_with("compactor", singleton, compact);
    }
    if let Some(batch) = plan.services.writer {
        let backoff = Backoff::Fixed(Duration::from_millis(700));
        let retry = RetryPolicy { backoff, max_attempts: 3, ..RetryPolicy::default() };
        worker = worker.writer(Writer::new(WRITER).batch(batch).retry(retry), write);
    }
    worker
}

/// Works until it is told to stop, until it fails, or until it has done.
async fn compact(duty: Duty<App>) -> Result<(), Failed> {
    let app = duty.app();
    let chance = &app.chance;
    let task = Task::begin(app.who, &app.world, &app.gate, duty.pass());
    for _ in 0..chance.below(40) {
        task.go_on(duty.pass());
        if chance.below(2) == 0 {
            write_to(&app.world, app.who, chance, duty.pass());
        }
        if duty.sleep(SLICE).await.is_err() {
            break;
        }
    }
    task.go_on(duty.pass());
    if chance.below(4) == 0 { Err(Failed::retry("as the dice say")) } else { Ok(()) }
}

/// Writes letters in the order in which they came.
async fn write(duty: Duty<App>, letters: Vec<Message<Letter>>) -> Result<(), Failed> {
    let app = duty.app();
    let task = Task::begin(app.who, &app.world, &app.gate, duty.pass());
    let seqs: Vec<u64> = letters.iter().map(|letter| letter.seq).collect();
    note_writes(&app.world, app, duty.pass(), seqs).await;
    for Message { body, attempt, .. } in &letters {
        let mut left = Duration::from_millis(body.ms);
        while !left.is_zero() {
            task.go_on(duty.pass());
            let slice = left.min(SLICE);
            duty.sleep(slice).await?;
            left -= slice;
        }
        if body.for_good {
            return Err(Failed::for_good("as the letter says"));
        }
        if *attempt <= body.fails {
            return Err(Failed::retry("as the letter says"));
        }
        write_to(&app.world, app.who, &app.chance, duty.pass());
    }
    Ok(())
}

/// Looks at the mailbox at this very instant: what of it came before these letters and has not ended.
async fn note_writes(world: &Arc<World>, app: &App, pass: &Pass, seqs: Vec<u64>) {
    if !app.gate.is_open() {
        return;
    }
    let first = seqs.first().copied().unwrap_or(0);
    let Ok(before) = world.letters_before(first).await else { return };
    world.book.note(app.who, What::Writes { name: pass.name().clone(), fence: pass.fence(), seqs, before });
}
