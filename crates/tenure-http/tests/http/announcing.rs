//! Announcements of workers to the store.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::{Chance, HostId, ManualClock, MeasuredStore, MemoryStore, Tenure};

use crate::asking::Asker;

struct Announcing {
    clock: ManualClock,
    tenure: Tenure,
    server: Asker,
}

impl Announcing {
    fn new() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::new(Arc::new(clock.clone()));
        let tenure = Tenure::on(Arc::new(MeasuredStore::new(Arc::new(memory))), Chance::seeded(1));
        Self { clock, server: Asker::of(&tenure), tenure }
    }

    async fn claim(&self, worker: HostId, queues: &[&str]) {
        let kinds: Vec<String> = (0..100).map(|number| format!("{number:>0128}")).collect();
        let claim = json!({ "worker_id": worker.to_string(), "queues": queues, "kinds": kinds }).to_string();
        let told = self.server.ask("POST", "/v1/claim", &[], &claim).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
    }

    /// Lets the tasks of the server run.
    async fn rest(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    fn announcements(&self) -> u64 {
        let calls = self.tenure.store().extras().measures.unwrap().calls();
        calls.iter().filter(|call| call.operation == "announce").map(|call| call.took.count()).sum()
    }

    async fn queues(&self, worker: HostId) -> Vec<String> {
        let told = self.server.ask("GET", &format!("/v1/workers/{worker}"), &[], "").await.json();
        let serves = told["serves"].as_array().unwrap_or_else(|| panic!("{told}"));
        serves.iter().map(|serves| Value::as_str(&serves["queue"]).unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn claims_that_change_a_worker_each_time_write_it_once_a_second() {
    let at = Announcing::new();
    let worker = at.tenure.remote().draw_worker();
    at.claim(worker, &["mail"]).await;
    at.rest().await;
    assert_eq!((at.announcements(), at.queues(worker).await), (1, vec!["mail".to_owned()]));
    for second in 2..=4 {
        for _ in 0..20 {
            at.claim(worker, &["mail", "chat", "x0"]).await;
            at.claim(worker, &["mail", "chat", "x1"]).await;
            at.rest().await;
        }
        at.clock.advance(Duration::from_secs(1));
        at.rest().await;
        assert_eq!(at.announcements(), second);
        assert_eq!(at.queues(worker).await, ["chat", "mail", "x1"]);
    }
    // Without changes, nothing is written.
    for _ in 0..5 {
        at.clock.advance(Duration::from_secs(1));
        at.rest().await;
    }
    assert_eq!(at.announcements(), 4);
    at.claim(worker, &["news"]).await;
    at.rest().await;
    assert_eq!(at.announcements(), 5);
}

#[tokio::test]
async fn workers_that_claim_and_leave_at_once_are_not_announced_again() {
    let at = Announcing::new();
    for _ in 0..20 {
        let worker = at.tenure.remote().draw_worker();
        at.claim(worker, &["mail"]).await;
        let path = format!("/v1/workers/{worker}");
        assert_eq!(at.server.ask("DELETE", &path, &[], "").await.status, StatusCode::NO_CONTENT);
    }
    at.rest().await;
    at.clock.advance(Duration::from_secs(1));
    at.rest().await;
    let listed = at.server.ask("GET", "/v1/workers", &[], "").await.json();
    assert_eq!(listed["items"], json!([]), "{listed}");
}
