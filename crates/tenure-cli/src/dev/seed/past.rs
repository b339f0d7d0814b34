//! What the shop did in the last hours: asked of the contract, while a clock catches up.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tenure::{Chance, Tenure, limits};

use super::clock::CatchingUp;
use super::contract::Contract;
use super::programs::{self, Programs, Request};
use super::shop::{SCHEDULES, WORK, WORKERS, Work, args, job, of_kind, outcome, takes};
use crate::exit::Failure;

/// Until so long ago it goes in long steps, and then in short ones: the last hour is shown by the minute.
const LONG_UNTIL: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(900);
const SHORT: Duration = Duration::from_secs(60);
/// A lease of the past: nobody renews it while the clock leaps.
const LEASE_SECONDS: u64 = 3_600;

/// Who is at work in the past.
pub(super) struct Past<'p> {
    pub tenure: &'p Tenure,
    pub contract: &'p Contract,
    pub clock: &'p CatchingUp,
    pub chance: &'p Chance,
    pub programs: &'p Programs,
    /// The ids of the workers, in the order of [`WORKERS`].
    pub workers: Vec<String>,
}

impl Past<'_> {
    /// All of it.
    pub(super) async fn happen(&self) -> Result<(), Failure> {
        self.agree().await?;
        self.lease("month-end", "ledger on app-2").await?;
        let mut broken = false;
        while !self.clock.behind().is_zero() {
            let behind = self.clock.behind();
            let step = if behind > LONG_UNTIL { LONG } else { SHORT }.min(behind);
            self.step(step).await?;
            self.clock.pass_until(behind.saturating_sub(step));
            if !broken && self.clock.behind() < LONG_UNTIL * 2 {
                broken = true;
                let why = json!({ "after_seconds": 0.0, "reason": "app-2 was taken out of service" });
                self.contract.post("/v1/leases/month-end/break", why).await?;
            }
        }
        self.leave().await
    }

    /// What was agreed about queues, kinds and schedules.
    async fn agree(&self) -> Result<(), Failure> {
        for work in &WORK {
            let mut about = json!({ "description": work.says, "owner": work.owner });
            if work.queue != programs::SET {
                about["default_queue"] = json!(work.queue);
            }
            if work.kind == "send_email" {
                about["schema"] = json!({
                    "type": "object", "required": ["to"],
                    "properties": { "to": { "type": "string", "format": "email" }, "template": { "type": "string" } },
                });
            }
            self.contract.put(&format!("/v1/kinds/{}", work.kind), about).await?;
        }
        let bounds = [
            ("billing", json!({ "max_running": 12 })),
            ("imports", json!({ "max_running": 8 })),
            ("mail", json!({ "rate": { "limit": 300, "per_seconds": 60.0 } })),
        ];
        for (queue, bounds) in bounds {
            self.contract.put(&format!("/v1/queues/{queue}"), bounds).await?;
        }
        for (name, rule, zone, kind) in SCHEDULES {
            let queue = of_kind(kind).map_or("default", |work| work.queue);
            let args = args(kind, self.chance);
            let schedule = json!({
                "spec": { "text": rule }, "time_zone": zone, "job": { "kind": kind, "queue": queue, "args": args },
            });
            self.contract.put(&format!("/v1/schedules/{name}"), schedule).await?;
        }
        Ok(self.programs.schedule().await?)
    }

    /// So long: jobs come, and those who work take them.
    async fn step(&self, span: Duration) -> Result<(), Failure> {
        let some = 25 + self.chance.below(30);
        let jobs: Vec<Value> = (0..some).map(|_| job(self.chance)).collect();
        let request = Request::drawn(self.chance);
        self.programs.go_on(self.chance).await?;
        if let Some(request) = &request {
            self.programs.run(request).await?;
        }
        self.contract.post("/v1/jobs/batch", json!({ "jobs": jobs })).await?;
        self.tenure.store().fire(limits::FIRE_TIMERS).await.map_err(tenure::Error::from)?;
        for at in 0..WORKERS.len() {
            self.clock.pass(Duration::from_millis(150 + self.chance.below(1_500)));
            self.work(at, span / 24).await?;
        }
        Ok(())
    }

    /// One of them takes what there is, and does it; nothing takes longer than this.
    async fn work(&self, at: usize, longest: Duration) -> Result<(), Failure> {
        let Some(((name, slots, queues), id)) = WORKERS.get(at).zip(self.workers.get(at)) else {
            return Ok(());
        };
        let claim = json!({ "worker_id": id, "name": name, "queues": queues, "limit": slots * 8, "lease_seconds": LEASE_SECONDS });
        let mut granted = self.contract.post("/v1/claim", claim).await?;
        let Value::Array(jobs) = granted["jobs"].take() else { return Ok(()) };
        let mut items = Vec::new();
        for job in &jobs {
            let Some(work) = job["kind"].as_str().and_then(of_kind) else { continue };
            if !work.steps.is_empty() {
                self.log(job, work).await?;
            }
            items.push(settled(job, work, self.chance));
        }
        // They end one after the other, as some are quicker than others.
        let took = jobs.iter().filter_map(|job| job["kind"].as_str().and_then(of_kind));
        let took = took.map(|work| takes(work, self.chance)).fold(0.0, f64::max);
        for some in items.chunks(items.len().div_ceil(2).max(1)) {
            self.clock.pass(Duration::from_secs_f64(took / 2.0).min(longest));
            self.contract.post("/v1/settle", json!({ "items": some })).await?;
        }
        Ok(())
    }

    /// What a job says that takes its time.
    async fn log(&self, job: &Value, work: &Work) -> Result<(), Failure> {
        let id = job["id"].as_str().unwrap_or_default();
        let lines: Vec<String> =
            work.steps.iter().map(|step| format!("\u{1b}[32mok\u{1b}[0m {step}")).collect();
        let said = json!({ "token": job["token"], "first": 1, "lines": lines });
        self.contract.post(&format!("/v1/jobs/{id}/logs"), said).await.map(drop)
    }

    async fn lease(&self, name: &str, owner: &str) -> Result<Value, Failure> {
        let ask = json!({ "owner": owner, "ttl_seconds": 86_400.0 });
        self.contract.post(&format!("/v1/leases/{name}/acquire"), ask).await
    }

    /// What is left for whoever looks: something paused, something blocked, something that waits for its time.
    async fn leave(&self) -> Result<(), Failure> {
        let letter = |at: u64| {
            let to = format!("reader-{at}@example.com");
            json!({ "kind": "send_email", "queue": "newsletter", "args": { "to": to, "template": "news" }, "tags": ["news"] })
        };
        let reminder = |at: u64| {
            let args = json!({ "to": format!("late-{at}@example.com"), "template": "reminder" });
            json!({ "kind": "send_email", "queue": "mail", "args": args, "delay_seconds": 1_800 * (at + 1) })
        };
        let jobs: Vec<Value> = (0..40).map(letter).chain((0..6).map(reminder)).collect();
        self.contract.put("/v1/queues/newsletter", json!({ "paused": true })).await?;
        self.contract.post("/v1/jobs/batch", json!({ "jobs": jobs })).await?;
        let first = json!({ "kind": "build_report", "queue": "reports", "args": { "of": "stock", "day": "today" }, "delay_seconds": 2_400 });
        let first = self.contract.ask(Method::POST, "/v1/jobs", &first, "respond-async").await?;
        let args = json!({ "room": "#stock", "text": "the report of today is there" });
        let told = json!({ "kind": "post_to_chat", "queue": "chat", "args": args, "after": [first["id"]] });
        self.contract.ask(Method::POST, "/v1/jobs", &told, "respond-async").await?;
        let wrong = json!({ "action": "cancel", "filter": { "q": "queue:newsletter args.to:\"reader-3@example.com\"" }, "params": { "reason": "has left" } });
        self.contract.post("/v1/bulk", wrong).await?;
        let again = json!({ "action": "retry", "filter": { "q": "state:failed kind:sync_inventory" } });
        self.contract.post("/v1/bulk", again).await?;
        let why = json!({ "reason": "until the new terms are signed" });
        self.contract.post("/v1/schedules/dunning/pause", why).await.map(drop)
    }
}

/// How a job went, as a worker tells it.
pub(super) fn settled(job: &Value, work: &Work, chance: &Chance) -> Value {
    let mut item = json!({ "job_id": job["id"], "token": job["token"] });
    match outcome(work, chance) {
        Ok(result) => {
            item["outcome"] = json!("complete");
            item["result"] = result;
        }
        Err((says, may_help)) => {
            item["outcome"] = json!("fail");
            item["error"] = json!({ "detail": says });
            item["retryable"] = json!(may_help);
        }
    }
    item
}
