//! What a server tells of itself, and why things do not go on.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::Service;
use crate::metrics::Watched;

fn reasons(told: &Value) -> Vec<&str> {
    told["items"].as_array().unwrap().iter().map(|item| item["reason"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn it_is_ready_and_tells_each_check_to_whoever_wants_to_know() {
    let service = Service::new();
    for path in ["/readyz", "/healthz"] {
        let ready = service.get(path).await;
        assert_eq!((ready.status, ready.json()), (StatusCode::OK, json!({ "status": "ready" })), "{path}");
        let verbose = service.get(&format!("{path}?verbose")).await.json();
        let checks = verbose["checks"].as_array().unwrap();
        let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["server", "store"]);
        assert!(checks.iter().all(|check| check["ok"] == true), "{verbose}");
        assert_eq!(service.get(&format!("{path}?verbos")).await.status, StatusCode::BAD_REQUEST);
    }
}

/// Whoever starts it waits for its store; whoever watches it later is not to kill it because that is away.
#[tokio::test]
async fn a_server_has_started_once_its_store_has_answered_whatever_comes_later() {
    let watched = Watched::new();
    let status = async || watched.asker.ask("GET", "/startupz", &[], "").await.status;
    watched.faulty.down(true);
    assert_eq!(status().await, StatusCode::SERVICE_UNAVAILABLE);
    watched.faulty.down(false);
    assert_eq!(status().await, StatusCode::OK);
    watched.faulty.down(true);
    assert_eq!(status().await, StatusCode::OK);
    let ready = watched.asker.ask("GET", "/readyz", &[], "").await.status;
    assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_probe_of_a_store_that_says_nothing_is_answered_within_five_seconds() {
    let watched = Watched::new();
    watched.faulty.silent(true);
    for path in ["/startupz", "/readyz"] {
        let six_seconds = async {
            for _ in 0..60 {
                tokio::task::yield_now().await;
                watched.clock.advance(Duration::from_millis(100));
            }
        };
        let answer = tokio::select! {
            answer = watched.asker.ask("GET", path, &[], "") => answer,
            () = six_seconds => panic!("{path} waits for the store"),
        };
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        let cause = "store unavailable: the database did not answer in time";
        assert!(path == "/startupz" || answer.json()["status"] == cause, "{}", answer.text);
    }
}

#[tokio::test]
async fn it_tells_what_it_can_do_and_in_which_bounds() {
    let service = Service::new();
    let told = service.get("/v1/capabilities").await.json();
    assert_eq!(told["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["limits"]["batch_jobs"], 1_000);
    assert_eq!(told["limits"]["wait_seconds"], 55);
    assert_eq!(
        (&told["features"]["access_tokens"], &told["features"]["changes"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(told["retention"]["idempotency_key_seconds"], 24 * 3600);
    assert!(told["retention"]["succeeded_seconds"].as_u64().unwrap() > 0, "{told}");
    // What it says of batches is so.
    let jobs: Vec<Value> = (0..1_001).map(|_| json!({ "kind": "k" })).collect();
    let told = service.post("/v1/jobs/batch", &json!({ "jobs": jobs }).to_string()).await;
    assert_eq!(told.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_queue_says_why_its_jobs_do_not_run() {
    let service = Service::new();
    let path = "/v1/queues/mail/explain";
    assert_eq!(service.get(path).await.status, StatusCode::NOT_FOUND);
    let spec = json!({ "max_running": 1 }).to_string();
    service.ask("PUT", "/v1/queues/mail", &[], &spec).await;
    let told = service.get(path).await.json();
    assert_eq!(reasons(&told), ["not_served", "nothing_waits"], "{told}");
    for _ in 0..2 {
        service.post("/v1/jobs", &json!({ "kind": "send", "queue": "mail" }).to_string()).await;
    }
    service.post("/v1/queues/mail/pause", "").await;
    let told = service.get(path).await.json();
    assert_eq!(reasons(&told)[..2], ["paused", "not_served"], "{told}");
    service.post("/v1/queues/mail/resume", "").await;
    let worker = service.post("/v1/claim", "{}").await.json()["worker_id"].clone();
    let claim = json!({ "worker_id": worker, "queues": ["mail"] }).to_string();
    service.post("/v1/claim", &claim).await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let told = service.get(path).await.json();
    assert!(reasons(&told).contains(&"limit_full"), "{told}");
    assert!(!reasons(&told).contains(&"not_served"), "{told}");
    assert!(told["items"][0]["detail"].as_str().unwrap().contains("mail"), "{told}");
}

#[tokio::test]
async fn a_queue_says_which_kinds_nobody_takes() {
    let service = Service::new();
    service.post("/v1/jobs", &json!({ "kind": "send", "queue": "mail" }).to_string()).await;
    let worker = service.post("/v1/claim", "{}").await.json()["worker_id"].clone();
    let claim = json!({ "worker_id": worker, "queues": ["mail"], "kinds": ["other"] }).to_string();
    service.post("/v1/claim", &claim).await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let told = service.get("/v1/queues/mail/explain").await.json();
    assert_eq!(reasons(&told), ["kind_not_served"], "{told}");
    assert!(told["items"][0]["detail"].as_str().unwrap().ends_with("kind send"), "{told}");
}

#[tokio::test]
async fn a_schedule_says_why_it_does_not_fire() {
    let service = Service::new();
    let path = "/v1/schedules/nightly/explain";
    assert_eq!(service.get(path).await.status, StatusCode::NOT_FOUND);
    let spec = json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": "k" } }).to_string();
    service.ask("PUT", "/v1/schedules/nightly", &[], &spec).await;
    let told = service.get(path).await.json();
    assert!(reasons(&told).contains(&"not_yet"), "{told}");
    service.post("/v1/schedules/nightly/pause", &json!({ "reason": "vacation" }).to_string()).await;
    let told = service.get(path).await.json();
    let paused = told["items"].as_array().unwrap().iter().find(|item| item["reason"] == "paused").unwrap();
    assert!(paused["detail"].as_str().unwrap().contains("vacation"), "{told}");
}
