//! What many ask costs the store no more than what few ask: reads are shared, and hints are answered in turn.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Chance, Draft, Faults, FaultyStore, ManualClock, MeasuredStore, MemoryStore, Store, Tenure};

use crate::asking::Asker;

/// Jobs that a worker runs at once.
const MANY: usize = 300;

fn measured() -> (Tenure, ManualClock) {
    let clock = ManualClock::new();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    (Tenure::on(Arc::new(MeasuredStore::new(memory)), Chance::seeded(1)), clock)
}

/// How often the store was asked for this.
fn asked(tenure: &Tenure, operations: &[&str]) -> u64 {
    let calls = tenure.store().extras().measures.unwrap().calls();
    calls.iter().filter(|call| operations.contains(&call.operation)).map(|call| call.took.count()).sum()
}

async fn let_others_go_on() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn jobs_that_another_server_has_granted_are_read_together_and_once() {
    let (tenure, clock) = measured();
    let (granting, other) = (Asker::on(&tenure), Asker::on(&tenure));
    let batch = json!({ "jobs": vec![json!({ "kind": "k" }); MANY] }).to_string();
    granting.ask("POST", "/v1/jobs/batch", &[], &batch).await;
    let claim = json!({ "limit": MANY }).to_string();
    let granted = granting.ask("POST", "/v1/claim", &[], &claim).await.json();
    let jobs = granted["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), MANY);
    let held = |job: &Value| json!({ "job_id": job["id"], "token": job["token"] });
    let beat = json!({ "running": jobs.iter().map(held).collect::<Vec<_>>() }).to_string();
    let path = format!("/v1/workers/{}/heartbeat", granted["worker_id"].as_str().unwrap());
    let before = asked(&tenure, &["job", "jobs"]);
    for _ in 0..2 {
        let told = other.ask("POST", &path, &[], &beat).await.json();
        assert_eq!(told["extended"].as_array().unwrap().len(), MANY);
        assert_eq!(asked(&tenure, &["job", "jobs"]) - before, 1);
        clock.advance(Duration::from_secs(5));
    }
    let done = |job: &Value| json!({ "job_id": job["id"], "token": job["token"], "outcome": "complete" });
    let mut items: Vec<Value> = jobs.iter().map(done).collect();
    let unknown = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    items.insert(1, json!({ "job_id": unknown, "token": "x", "outcome": "complete" }));
    items[2]["token"] = json!("1.1.00000000000000000000000000000000");
    let settle = json!({ "items": items }).to_string();
    let third = Asker::on(&tenure);
    let before = asked(&tenure, &["job", "jobs"]);
    let told = third.ask("POST", "/v1/settle", &[], &settle).await.json();
    let told = told["items"].as_array().unwrap();
    // What is wrong with one of them is told in its place.
    let statuses: Vec<u64> = told.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    assert_eq!((statuses[0], statuses[1], statuses[2], statuses[3]), (200, 422, 409, 200));
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), MANY - 1);
    assert_eq!(asked(&tenure, &["job", "jobs"]) - before, 1);
}

/// A page of logs can have 4 MB, and the workers of a large installation as much.
#[tokio::test]
async fn a_server_reads_a_bounded_number_of_large_pages_at_once() {
    let clock = ManualClock::new();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let draft = Draft::raw("k", &json!({}));
    let id = Tenure::on(Arc::clone(&memory), Chance::seeded(1)).enqueue_draft(draft).await.unwrap().id();
    let second = Duration::from_secs(1);
    let slow = Arc::new(FaultyStore::new(memory, Faults { reply_takes: second, ..Faults::none(1) }));
    let asker = Asker::on(&Tenure::on(Arc::clone(&slow) as Arc<dyn Store>, Chance::seeded(2)));
    for path in ["/v1/workers".to_owned(), format!("/v1/jobs/{id}/logs?limit=1000")] {
        let mut before = slow.tally().calls;
        let asked: Vec<_> = (0..40)
            .map(|_| {
                let (asker, path) = (asker.clone(), path.clone());
                tokio::spawn(async move { asker.get(&path).await })
            })
            .collect();
        let_others_go_on().await;
        if path.ends_with("1000") {
            // Each request has asked for the job, and reads its log next.
            before = slow.tally().calls;
            clock.advance(second);
            let_others_go_on().await;
        }
        assert_eq!(slow.tally().calls - before, 16, "{path}");
        asked.iter().for_each(tokio::task::JoinHandle::abort);
        let_others_go_on().await;
    }
}

/// The clock stands: a line that has just looked because it was called does not look again until it moves.
#[tokio::test]
async fn however_many_wish_for_different_jobs_calls_are_answered_in_turn() {
    let (tenure, clock) = measured();
    let app = Arc::new(Asker::on(&tenure));
    let mut waiting = Vec::new();
    for number in 0..MANY {
        let (app, claim) = (Arc::clone(&app), json!({ "kinds": [format!("k{number}")] }).to_string());
        waiting.push(tokio::spawn(async move {
            app.ask("POST", "/v1/claim", &["prefer: wait=50"], &claim).await.json()
        }));
    }
    let_others_go_on().await;
    let looks = || asked(&tenure, &["settle", "reserve"]);
    let before = looks();
    for _ in 0..20 {
        app.ask("POST", "/v1/jobs", &[], r#"{"kind":"nobodys"}"#).await;
        let_others_go_on().await;
    }
    let spent = usize::try_from(looks() - before).unwrap();
    assert!((MANY..=MANY * 2).contains(&spent), "{spent} looks");
    // Whoever has a job waiting for him is given it once the clock goes on.
    app.ask("POST", "/v1/jobs", &[], r#"{"kind":"k7"}"#).await;
    clock.advance(Duration::from_secs(1));
    let_others_go_on().await;
    assert!(waiting[7].is_finished());
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}
