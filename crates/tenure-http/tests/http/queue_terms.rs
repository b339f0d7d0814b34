//! What a queue says for jobs that say nothing of their own, and how many may wait in it.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::{Limit, QueueEdit};

use crate::asking::Service;

async fn put(service: &Service, spec: &Value) -> Value {
    let told = service.ask("PUT", "/v1/queues/mail", &[], &spec.to_string()).await;
    assert!(told.status.is_success(), "{told:?}");
    told.json()
}

async fn send(service: &Service, body: &Value) -> Value {
    let told = service.post("/v1/jobs", &body.to_string()).await;
    assert_eq!(told.status, StatusCode::ACCEPTED, "{told:?}");
    told.json()
}

#[tokio::test]
async fn what_a_queue_says_is_told_and_holds_for_jobs_that_do_not_say_it() {
    let service = Service::new();
    let said = json!({
        "max_depth": 9,
        "default_retry": { "max_attempts": 2, "waits_seconds": [7.0] },
        "retain_seconds": { "succeeded": 60.0, "failed": 3600.0 },
        "lease_seconds": 120.0,
    });
    let told = put(&service, &said).await;
    assert_eq!(told["retain_seconds"], said["retain_seconds"]);
    assert_eq!((&told["max_depth"], &told["lease_seconds"]), (&json!(9), &json!(120.0)));
    let retry =
        json!({ "max_attempts": 2, "waits_seconds": [7.0], "first_seconds": null, "ceiling_seconds": null });
    assert_eq!(told["default_retry"], retry);
    let job = send(&service, &json!({ "kind": "letter", "queue": "mail" })).await;
    assert_eq!(job["max_attempts"], 2);
    let own = send(&service, &json!({ "kind": "letter", "queue": "mail", "max_attempts": 5 })).await;
    assert_eq!(own["max_attempts"], 5);
    let told = service.post("/v1/claim", r#"{"queues":["mail"]}"#).await.json();
    assert_eq!(told["jobs"][0]["expires_in_seconds"], 120.0);
    let id = told["jobs"][0]["id"].as_str().unwrap();
    let body = json!({ "token": told["jobs"][0]["token"] }).to_string();
    assert_eq!(service.post(&format!("/v1/jobs/{id}/complete"), &body).await.status, StatusCode::OK);
    let ended = service.get(&format!("/v1/jobs/{id}")).await.json();
    let at = |field: &str| ended[field].as_str().unwrap().parse::<tenure::Timestamp>().unwrap();
    assert_eq!(at("expires_at").since(at("finished_at")).as_secs(), 60);
    // Of several queues the longest counts, and who says it himself is not overruled.
    let both = service.post("/v1/claim", r#"{"queues":["post","mail"]}"#).await.json();
    assert_eq!(both["jobs"][0]["expires_in_seconds"], 120.0);
    send(&service, &json!({ "kind": "letter", "queue": "mail" })).await;
    let short = service.post("/v1/claim", r#"{"queues":["mail"],"lease_seconds":5}"#).await.json();
    assert_eq!(short["jobs"][0]["expires_in_seconds"], 5.0);
}

#[tokio::test]
async fn a_patch_changes_what_it_says_and_lifts_with_null() {
    let service = Service::new();
    put(&service, &json!({ "max_depth": 9, "lease_seconds": 60, "max_running": 3 })).await;
    let patch = |body: &str| {
        let body = body.to_owned();
        let service = &service;
        async move { service.ask("PATCH", "/v1/queues/mail", &[], &body).await.json() }
    };
    let told = patch(r#"{"max_depth":4,"retain_seconds":{"failed":10}}"#).await;
    assert_eq!(
        (&told["max_depth"], &told["lease_seconds"], &told["max_running"]),
        (&json!(4), &json!(60.0), &json!(3))
    );
    assert_eq!(told["retain_seconds"], json!({ "succeeded": 86400.0, "failed": 10.0 }));
    let told = patch(r#"{"retain_seconds":{"succeeded":20}}"#).await;
    assert_eq!(told["retain_seconds"], json!({ "succeeded": 20.0, "failed": 10.0 }), "the other one stays");
    let told = patch(r#"{"max_depth":null,"lease_seconds":null,"retain_seconds":null}"#).await;
    let none =
        ["max_depth", "lease_seconds", "retain_seconds", "default_retry"].map(|field| told[field].is_null());
    assert_eq!((none, &told["max_running"]), ([true; 4], &json!(3)));
}

#[tokio::test]
async fn who_enqueues_into_a_full_queue_is_told_when_to_come_again() {
    let service = Service::new();
    put(&service, &json!({ "max_depth": 2 })).await;
    let letter = json!({ "kind": "letter", "queue": "mail" });
    for _ in 0..2 {
        send(&service, &letter).await;
    }
    let told = service.post("/v1/jobs", &letter.to_string()).await;
    assert_eq!(told.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!((told.header("retry-after"), &told.json()["max_depth"]), ("5", &json!(2)));
    assert_eq!(told.json()["type"], "urn:tenure:problem:queue-full");
    let batch = json!({ "jobs": [{ "kind": "letter", "queue": "post" }, letter] });
    let told = service.post("/v1/jobs/batch", &batch.to_string()).await;
    assert_eq!((told.status.as_u16(), &told.json()["index"]), (429, &json!(1)));
    assert_eq!(
        service.get("/v1/queues/post").await.status,
        StatusCode::NOT_FOUND,
        "nothing of it was stored"
    );
    service.post("/v1/claim", r#"{"queues":["mail"]}"#).await;
    send(&service, &letter).await;
}

#[tokio::test]
async fn of_a_batch_that_takes_what_it_can_get_each_job_is_told_of_by_itself() {
    let service = Service::new();
    put(&service, &json!({ "max_depth": 2 })).await;
    let letter = json!({ "kind": "letter", "queue": "mail" });
    let jobs = [
        json!({ "kind": "no kind" }),
        letter.clone(),
        json!({ "kind": "letter", "queue": "mail", "priority": 999 }),
        letter.clone(),
        letter.clone(),
        json!({ "kind": "letter", "queue": "post" }),
    ];
    let body = json!({ "jobs": jobs, "atomic": false }).to_string();
    let ask = |key: &str| {
        let (key, body) = (format!("idempotency-key: \"{key}\""), body.clone());
        let service = &service;
        async move { service.ask("POST", "/v1/jobs/batch", &[&key], &body).await }
    };
    let told = ask("one").await;
    assert_eq!(told.status, StatusCode::OK);
    let items = told.json()["items"].as_array().unwrap().clone();
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [422, 202, 422, 202, 429, 202]);
    assert_eq!(items[4]["problem"]["type"], "urn:tenure:problem:queue-full");
    assert_eq!((&items[0]["id"], items[1]["created"].as_bool()), (&Value::Null, Some(true)));
    // Once more: what was taken is not taken twice, and what was refused is tried again.
    service.post("/v1/claim", r#"{"queues":["mail"]}"#).await;
    let again = ask("one").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = again.json()["items"].as_array().unwrap().clone();
    let statuses: Vec<_> = again.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [422, 202, 422, 202, 202, 202]);
    for index in [1, 3, 5] {
        assert_eq!((&again[index]["id"], &again[index]["created"]), (&items[index]["id"], &json!(false)));
    }
    assert_eq!(service.get("/v1/jobs?kind=letter").await.json()["items"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_queue_is_removed_once_no_job_is_in_it() {
    let service = Service::new();
    assert_eq!(service.ask("DELETE", "/v1/queues/mail", &[], "").await.status, StatusCode::NOT_FOUND);
    put(&service, &json!({ "max_running": 1 })).await;
    let id = send(&service, &json!({ "kind": "letter", "queue": "mail" })).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let told = service.ask("DELETE", "/v1/queues/mail", &[], "").await;
    assert_eq!(
        (told.status, &told.json()["type"]),
        (StatusCode::CONFLICT, &json!("urn:tenure:problem:state-conflict"))
    );
    for _ in 0..2 {
        service.ask("DELETE", &format!("/v1/jobs/{id}"), &[], "").await;
    }
    let other = "if-match: \"0000\"";
    let told = service.ask("DELETE", "/v1/queues/mail", &[other], "").await;
    assert_eq!(told.status, StatusCode::PRECONDITION_FAILED);
    let tag = service.get("/v1/queues/mail").await.header("etag").to_owned();
    let told = service.ask("DELETE", "/v1/queues/mail", &[&format!("if-match: {tag}")], "").await;
    assert_eq!(told.status, StatusCode::NO_CONTENT);
    assert_eq!(service.get("/v1/queues/mail").await.status, StatusCode::NOT_FOUND);
    send(&service, &json!({ "kind": "letter", "queue": "mail" })).await;
    assert_eq!(service.get("/v1/queues/mail").await.json()["max_running"], Value::Null);
}

#[tokio::test]
async fn of_two_who_change_a_queue_as_they_saw_it_one_does_and_of_others_both() {
    let service = Service::new();
    put(&service, &json!({ "max_running": 1 })).await;
    for round in 2..20 {
        let tag = service.get("/v1/queues/mail").await.header("etag").to_owned();
        let only = format!("if-match: {tag}");
        let (one, other) = (format!("{{\"max_depth\":{round}}}"), format!("{{\"max_running\":{round}}}"));
        let (headers, none): ([&str; 1], [&str; 0]) = ([&only], []);
        let (first, second) = tokio::join!(
            service.ask("PATCH", "/v1/queues/mail", &headers, &one),
            service.ask("PATCH", "/v1/queues/mail", &headers, &other),
        );
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "{round}");
        let (first, second) = tokio::join!(
            service.ask("PATCH", "/v1/queues/mail", &none, &one),
            service.ask("PATCH", "/v1/queues/mail", &none, &other),
        );
        assert_eq!((first.status, second.status), (StatusCode::OK, StatusCode::OK));
        let queue = service.get("/v1/queues/mail").await.json();
        assert_eq!((&queue["max_depth"], &queue["max_running"]), (&json!(round), &json!(round)));
    }
    let edit = QueueEdit { limit: Some(Limit::of(77)), ..QueueEdit::default() };
    service.tenure().queues().agree("mail", edit).await.unwrap();
    assert_eq!(service.get("/v1/queues/mail").await.json()["max_running"], 77);
}
