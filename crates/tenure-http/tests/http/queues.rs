//! Queues, as operators and clients look at them and agree about them.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::Service;

async fn enqueue(service: &Service, kind: &str, queue: &str) {
    let body = json!({ "kind": kind, "queue": queue }).to_string();
    assert_eq!(service.post("/v1/jobs", &body).await.status, StatusCode::ACCEPTED);
}

async fn claimed(service: &Service, queue: &str) -> usize {
    let body = json!({ "queues": [queue], "limit": 10 }).to_string();
    service.post("/v1/claim", &body).await.json()["jobs"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_queue_is_there_once_somebody_has_named_it() {
    let service = Service::new();
    assert_eq!(service.get("/v1/queues/mail").await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.post("/v1/queues/mail/pause", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.get("/v1/queues/mail/stats").await.status, StatusCode::NOT_FOUND);
    enqueue(&service, "send", "mail").await;
    let queue = service.get("/v1/queues/mail").await.json();
    assert_eq!(
        (queue["paused"].as_bool(), &queue["max_running"], &queue["rate"]),
        (Some(false), &Value::Null, &Value::Null)
    );
    assert_eq!(queue["links"]["stats"], "/v1/queues/mail/stats");
    let told = service.ask("PUT", "/v1/queues/photos", &[], r#"{"max_running":3}"#).await;
    assert_eq!((told.status, told.json()["max_running"].as_u64()), (StatusCode::CREATED, Some(3)));
    let again = service.ask("PUT", "/v1/queues/photos", &["if-none-match: *"], r#"{"max_running":4}"#).await;
    assert_eq!(again.status, StatusCode::PRECONDITION_FAILED, "it was to be made, and is there");
    assert_eq!(service.get("/v1/queues/photos").await.json()["max_running"], 3);
    let names = service.get("/v1/queues").await.json();
    let names: Vec<_> =
        names["items"].as_array().unwrap().iter().map(|queue| queue["name"].clone()).collect();
    assert_eq!(names, ["mail", "photos"]);
}

#[tokio::test]
async fn pausing_and_resuming_twice_is_no_harm_and_does_what_it_says() {
    let service = Service::new();
    enqueue(&service, "send", "mail").await;
    for _ in 0..2 {
        let told = service.post("/v1/queues/mail/pause", "").await;
        assert_eq!((told.status, told.json()["paused"].as_bool()), (StatusCode::OK, Some(true)));
    }
    assert_eq!(claimed(&service, "mail").await, 0);
    for _ in 0..2 {
        let told = service.post("/v1/queues/mail/resume", "{}").await;
        assert_eq!((told.status, told.json()["paused"].as_bool()), (StatusCode::OK, Some(false)));
    }
    assert_eq!(claimed(&service, "mail").await, 1);
}

#[tokio::test]
async fn a_bound_holds_and_a_patch_changes_only_what_it_says() {
    let service = Service::new();
    for _ in 0..5 {
        enqueue(&service, "send", "mail").await;
    }
    let spec = r#"{"max_running":2,"rate":{"limit":100,"per_seconds":60}}"#;
    let told = service.ask("PUT", "/v1/queues/mail", &[], spec).await;
    assert_eq!(told.status, StatusCode::OK);
    assert_eq!(told.json()["rate"], json!({ "limit": 100, "per_seconds": 60.0, "burst": 100 }));
    assert_eq!(claimed(&service, "mail").await, 2);
    let told = service.ask("PATCH", "/v1/queues/mail", &[], r#"{"max_running":null}"#).await.json();
    assert_eq!((&told["max_running"], told["rate"]["limit"].as_u64()), (&Value::Null, Some(100)));
    assert_eq!(claimed(&service, "mail").await, 3);
    let told = service.ask("PATCH", "/v1/queues/mail", &[], r#"{"paused":true}"#).await.json();
    assert_eq!((told["paused"].as_bool(), told["rate"]["limit"].as_u64()), (Some(true), Some(100)));
    // What a PUT does not say is as for a new one.
    let told = service.ask("PUT", "/v1/queues/mail", &[], "{}").await.json();
    assert_eq!((told["paused"].as_bool(), &told["rate"]), (Some(false), &Value::Null));
}

#[tokio::test]
async fn what_has_changed_since_it_was_looked_at_is_not_changed() {
    let service = Service::new();
    enqueue(&service, "send", "mail").await;
    let tag = service.get("/v1/queues/mail").await.header("etag").to_owned();
    let known = format!("if-none-match: {tag}");
    enqueue(&service, "send", "mail").await;
    assert_eq!(service.ask("GET", "/v1/queues/mail", &[&known], "").await.status, StatusCode::NOT_MODIFIED);
    let only = format!("if-match: {tag}");
    let body = r#"{"max_running":1}"#;
    assert_eq!(service.ask("PATCH", "/v1/queues/mail", &[&only], body).await.status, StatusCode::OK);
    for (method, path, body) in [
        ("PATCH", "/v1/queues/mail", r#"{"max_running":7}"#),
        ("PUT", "/v1/queues/mail", r#"{"max_running":7}"#),
        ("POST", "/v1/queues/mail/pause", ""),
        ("PUT", "/v1/queues/new", "{}"),
    ] {
        let told = service.ask(method, path, &[&only], body).await;
        assert_eq!(told.status, StatusCode::PRECONDITION_FAILED, "{method} {path}");
    }
    let queue = service.get("/v1/queues/mail").await.json();
    assert_eq!((queue["max_running"].as_u64(), queue["paused"].as_bool()), (Some(1), Some(false)));
    assert_eq!(service.get("/v1/queues/new").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_cannot_be_agreed_is_refused_by_name() {
    let service = Service::new();
    for (body, status, field) in [
        (r#"{"max_depth":0}"#, 422, "max_depth"),
        (r#"{"max_depth":1.5}"#, 400, "max_depth"),
        (r#"{"retain_seconds":{"failed":-1}}"#, 422, "retain_seconds.failed"),
        (r#"{"retain_seconds":10}"#, 400, "retain_seconds"),
        (r#"{"lease_seconds":0}"#, 422, "lease_seconds"),
        (r#"{"default_retry":{"max_attempts":0}}"#, 422, "default_retry.max_attempts"),
        (r#"{"default_retry":{"waits_seconds":[1],"first_seconds":1}}"#, 422, "default_retry.waits_seconds"),
        (r#"{"rate":{"limit":1,"per_seconds":1,"per":1}}"#, 400, "rate.per"),
        (r#"{"rate":[1,1]}"#, 400, "rate"),
        (r#"{"max_running":1.5}"#, 400, "max_running"),
        (r#"{"max_running":0}"#, 422, "max_running"),
        (r#"{"rate":{"limit":0,"per_seconds":1}}"#, 422, "rate.limit"),
        (r#"{"rate":{"limit":1,"per_seconds":-1}}"#, 422, "rate.per_seconds"),
        (r#"{"rate":{"limit":1,"per_seconds":0}}"#, 422, "rate.per_seconds"),
        (r#"{"rate":{"limit":1,"per_seconds":1,"burst":0}}"#, 422, "rate.burst"),
    ] {
        for (method, path) in [("PUT", "/v1/queues/mail"), ("PATCH", "/v1/queues/there")] {
            service.ask("PUT", "/v1/queues/there", &[], "{}").await;
            let told = service.ask(method, path, &[], body).await;
            let found = (told.status.as_u16(), told.json()["field"].as_str().map(str::to_owned));
            assert_eq!(found, (status, Some(field.to_owned())), "{method} {body}");
        }
    }
    assert_eq!(service.get("/v1/queues/mail").await.status, StatusCode::NOT_FOUND, "nothing was stored");
    assert_eq!(service.get("/v1/queues/a%20b").await.json()["field"], "queue");
    // What is Tenure's own is made by Tenure.
    let own = service.ask("PUT", "/v1/queues/tenure.x", &[], "{}").await;
    assert_eq!((own.status.as_u16(), &own.json()["field"]), (422, &json!("queue")));
}

#[tokio::test]
async fn how_many_jobs_there_are_is_told_by_queue_kind_and_state() {
    let mut service = Service::new();
    for (kind, queue) in [("send", "mail"), ("send", "mail"), ("sort", "mail"), ("send", "photos")] {
        enqueue(&service, kind, queue).await;
    }
    service.advance(Duration::from_secs(7));
    service.post("/v1/claim", r#"{"queues":["photos"]}"#).await;
    let stats = service.get("/v1/queues/mail/stats").await.json();
    assert_eq!(stats["jobs"], json!({ "queued": 3 }));
    let lanes =
        json!([{ "kind": "send", "jobs": { "queued": 2 } }, { "kind": "sort", "jobs": { "queued": 1 } }]);
    assert_eq!((&stats["lanes"], stats["oldest_due_seconds"].as_f64()), (&lanes, Some(7.0)));
    let all = service.get("/v1/stats").await.json();
    assert_eq!(all["items"][1]["jobs"], json!({ "running": 1 }));
    assert!(all["items"][1]["oldest_due_at"].is_null());
    let kinds = service.get("/v1/kinds").await.json();
    let send = json!({ "kind": "send", "queues": ["mail", "photos"], "jobs": { "queued": 2, "running": 1 },
        "description": null, "owner": null, "has_schema": false });
    assert_eq!((&kinds["items"][0], kinds["items"].as_array().unwrap().len()), (&send, 2));
}

#[tokio::test]
async fn how_things_went_is_told_step_by_step() {
    let mut service = Service::new();
    for _ in 0..3 {
        service.post("/v1/jobs", r#"{"kind":"build_star","args":{"name":"Sol"}}"#).await;
    }
    service.post("/v1/jobs", r#"{"kind":"fall","args":null}"#).await;
    let claimed = service.post("/v1/claim", r#"{"limit":4}"#).await.json();
    for job in claimed["jobs"].as_array().unwrap() {
        let (id, token) = (job["id"].as_str().unwrap(), job["token"].as_str().unwrap());
        let what = if job["kind"] == "fall" { "fail" } else { "complete" };
        let body = serde_json::json!({ "token": token, "retryable": false });
        let body = if what == "fail" { body } else { serde_json::json!({ "token": token }) };
        assert_eq!(service.post(&format!("/v1/jobs/{id}/{what}"), &body.to_string()).await.status, 200);
    }
    service.advance(Duration::from_secs(61));
    for path in ["/v1/queues/default/stats", "/v1/stats"] {
        assert!(service.get(path).await.json().get("series").is_none());
        let told = service.get(&format!("{path}?window_seconds=300&step_seconds=60")).await.json();
        let series = told["series"].as_array().unwrap();
        assert_eq!(series.len(), 5);
        let sum = |name: &str| series.iter().map(|step| step[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(["enqueued", "succeeded", "failed", "retried"].map(sum), [4, 3, 1, 0], "{told}");
        let went = series.iter().find(|step| step["succeeded"] == 3).unwrap();
        assert!(went["run_p95_seconds"].as_f64().unwrap() < 0.001 && went["wait_p50_seconds"].is_f64());
        assert!(series[0]["run_p50_seconds"].is_null());
    }
    for (query, status) in
        [("window_seconds=59", 400), ("step_seconds=x", 400), ("window_seconds=604800", 422)]
    {
        assert_eq!(service.get(&format!("/v1/stats?{query}")).await.status.as_u16(), status, "{query}");
    }
}

#[tokio::test]
async fn what_waits_in_a_queue_is_removed_by_whoever_says_its_name_twice() {
    let mut service = Service::new();
    for queue in ["mail", "mail", "post"] {
        service.post("/v1/jobs", &format!(r#"{{"kind":"k","queue":"{queue}"}}"#)).await;
    }
    let slip = service.post("/v1/queues/mail/purge", r#"{"confirm":"post"}"#).await;
    assert_eq!((slip.status.as_u16(), slip.json()["field"].as_str()), (422, Some("confirm")));
    assert_eq!(service.post("/v1/queues/none/purge", r#"{"confirm":"none"}"#).await.status, 404);
    let none = service.post("/v1/queues/mail/purge", r#"{"confirm":"mail","states":[]}"#).await;
    assert_eq!(none.status, 422);
    assert_eq!(
        service.post("/v1/queues/mail/purge", r#"{"confirm":"mail","states":["running"]}"#).await.status,
        400
    );
    let told = service.post("/v1/queues/mail/purge", r#"{"confirm":"mail"}"#).await;
    assert_eq!(told.status, 202, "{told:?}");
    service.work().await;
    let left = service.get("/v1/jobs?kind=k").await.json();
    assert_eq!(
        left["items"].as_array().unwrap().iter().map(|job| &job["queue"]).collect::<Vec<_>>(),
        ["post"]
    );
}
