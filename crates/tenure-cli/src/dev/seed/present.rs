//! The shop as it goes on: jobs come, workers take them, say how far they are, and hold their leases.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tenure::{Chance, Clock, Moment, SystemClock};

use super::contract::Contract;
use super::past::settled;
use super::programs::{Programs, Request};
use super::shop::{LEASES, WORKERS, job, of_kind, takes};
use crate::exit::Failure;

const TURN: Duration = Duration::from_secs(1);
const LEASE_SECONDS: f64 = 30.0;
const TTL_SECONDS: f64 = 20.0;
/// Whoever has lost its turn waits so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Turns between two renewals of what is held.
const RENEW_EVERY: u64 = 5;
/// Turns after which somebody may ask for a run of a program.
const ASKED_EVERY: u64 = 30;

/// A job that somebody does.
struct Running {
    job: Value,
    worker: usize,
    since: Moment,
    takes: f64,
    said: usize,
}

/// The shop.
pub(super) struct Present {
    pub contract: Contract,
    pub chance: Chance,
    pub workers: Vec<String>,
    programs: Programs,
    running: Vec<Running>,
    held: Vec<(&'static str, Value)>,
}

impl Present {
    pub(super) fn new(contract: Contract, chance: Chance, workers: Vec<String>, programs: Programs) -> Self {
        Self { contract, chance, workers, programs, running: Vec::new(), held: Vec::new() }
    }

    /// Goes on until it is stopped. What is refused once is asked again with the next turn.
    pub(super) async fn go_on(mut self) {
        for turn in 0_u64.. {
            if let Err(error) = self.turn(turn).await {
                tracing::debug!(%error, "a turn of the example");
            }
            SystemClock.sleep(TURN).await;
        }
    }

    async fn turn(&mut self, turn: u64) -> Result<(), Failure> {
        if turn.is_multiple_of(RENEW_EVERY) {
            self.hold().await?;
            self.programs.go_on(&self.chance).await?;
        }
        // One in two seconds, and now and then some at once.
        let some = [0, 1, 0, 2][usize::try_from(self.chance.below(4)).unwrap_or(0)];
        let jobs: Vec<Value> = (0..some).map(|_| job(&self.chance)).collect();
        let request = if turn.is_multiple_of(ASKED_EVERY) { Request::drawn(&self.chance) } else { None };
        // Only one run is active at a time. A person who looks at the pages can start those that people requested before.
        if let Some(request) = request.filter(|request| request.by == "HTTP") {
            self.programs.run(&request).await?;
        }
        if !jobs.is_empty() {
            self.contract.post("/v1/jobs/batch", json!({ "jobs": jobs })).await?;
        }
        self.advance().await?;
        for at in 0..WORKERS.len() {
            self.take(at).await?;
        }
        Ok(())
    }

    /// Somebody with room takes what there is.
    async fn take(&mut self, at: usize) -> Result<(), Failure> {
        let Some(((name, slots, queues), id)) = WORKERS.get(at).zip(self.workers.get(at)) else {
            return Ok(());
        };
        let busy = self.running.iter().filter(|running| running.worker == at).count() as u64;
        if busy >= *slots {
            return Ok(());
        }
        let claim = json!({ "worker_id": id, "name": name, "queues": queues, "limit": slots - busy, "slots": slots, "lease_seconds": LEASE_SECONDS });
        let mut granted = self.contract.post("/v1/claim", claim).await?;
        let Value::Array(jobs) = granted["jobs"].take() else { return Ok(()) };
        for job in jobs {
            let takes = job["kind"].as_str().and_then(of_kind).map_or(1.0, |work| takes(work, &self.chance));
            self.running.push(Running { job, worker: at, since: SystemClock.moment(), takes, said: 0 });
        }
        Ok(())
    }

    /// Whoever works says how far he is; what is done is settled.
    async fn advance(&mut self) -> Result<(), Failure> {
        let now = SystemClock.moment();
        let mut items = Vec::new();
        for mut running in std::mem::take(&mut self.running) {
            let Some(work) = running.job["kind"].as_str().and_then(of_kind) else { continue };
            let fraction = now.since(running.since).as_secs_f64() / running.takes;
            if fraction >= 1.0 {
                items.push(settled(&running.job, work, &self.chance));
                continue;
            }
            let at = (fraction * work.steps.len() as f64) as usize;
            let step = work.steps.get(at).copied().unwrap_or("at it");
            if !self.beat(&running, fraction, step).await {
                continue;
            }
            if running.said <= at && !work.steps.is_empty() {
                running.said += 1;
                let line = format!("\u{1b}[32mok\u{1b}[0m {step}");
                let path = format!("/v1/jobs/{}/logs", running.job["id"].as_str().unwrap_or_default());
                let lines = json!({ "token": running.job["token"], "first": running.said, "lines": [line] });
                self.contract.post(&path, lines).await?;
            }
            self.running.push(running);
        }
        if !items.is_empty() {
            self.contract.post("/v1/settle", json!({ "items": items })).await?;
        }
        Ok(())
    }

    /// Whether it goes on: somebody may want it to stop, or it is lost.
    async fn beat(&self, running: &Running, fraction: f64, step: &str) -> bool {
        let path = format!("/v1/jobs/{}/heartbeat", running.job["id"].as_str().unwrap_or_default());
        let progress = json!({ "fraction": fraction, "message": step });
        let beat = json!({ "token": running.job["token"], "progress": progress });
        let answer = self.contract.post(&path, beat).await;
        answer.is_ok_and(|answer| answer["cancel_requested"] != true)
    }

    /// Takes what is free, and holds what it has; somebody else waits for the last one.
    async fn hold(&mut self) -> Result<(), Failure> {
        for (name, owner) in LEASES {
            let mine = self.held.iter().find(|(held, _)| *held == name).map(|(_, token)| token.clone());
            let renewed = match mine {
                Some(token) => {
                    let renew = json!({ "token": token });
                    self.contract.post(&format!("/v1/leases/{name}/renew"), renew).await.is_ok()
                }
                None => false,
            };
            if renewed {
                continue;
            }
            self.held.retain(|(held, _)| *held != name);
            let ask = json!({ "owner": owner, "ttl_seconds": TTL_SECONDS });
            let granted = self.contract.post(&format!("/v1/leases/{name}/acquire"), ask).await;
            if let Ok(granted) = granted {
                self.held.push((name, granted["token"].clone()));
            }
        }
        Ok(())
    }
}

/// Waits in line for what somebody else has, for as long as it is let.
pub(super) async fn wait_in_line(contract: Contract) {
    loop {
        // Whoever has it goes first, and is given time to take it back.
        SystemClock.sleep(PATIENCE).await;
        let ask = json!({ "owner": "ledger on app-3", "ttl_seconds": TTL_SECONDS });
        let path = "/v1/leases/month-end/acquire";
        while contract.ask(Method::POST, path, &ask, "wait=30").await.is_err() {
            SystemClock.sleep(TURN).await;
        }
    }
}
