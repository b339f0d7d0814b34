//! Limit keys and share keys, as clients set them with a job and as operators set them.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::{Service, Told};

async fn enqueue(service: &Service, terms: Value) -> String {
    let mut body = json!({ "kind": "send", "queue": "mail" });
    body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
    let told = service.post("/v1/jobs", &body.to_string()).await;
    assert_eq!(told.status, StatusCode::ACCEPTED, "{told:?}");
    told.id()
}

async fn claimed(service: &Service, limit: usize) -> Vec<Value> {
    let body = json!({ "queues": ["mail"], "limit": limit }).to_string();
    service.post("/v1/claim", &body).await.json()["jobs"].as_array().unwrap().clone()
}

async fn put(service: &Service, key: &str, spec: Value) -> Told {
    service.ask("PUT", &format!("/v1/limits/{key}"), &[], &spec.to_string()).await
}

#[tokio::test]
async fn of_five_jobs_of_one_limit_key_as_many_run_as_the_last_one_allows() {
    let service = Service::new();
    let id = enqueue(&service, json!({ "limit_key": "smtp", "limit_max_running": 4 })).await;
    for _ in 0..4 {
        enqueue(&service, json!({ "limit_key": "smtp", "limit_max_running": 2 })).await;
    }
    assert_eq!(claimed(&service, 10).await.len(), 2);
    let job = service.get(&format!("/v1/jobs/{id}")).await.json();
    assert_eq!((&job["limit_key"], &job["limit_max_running"]), (&json!("smtp"), &json!(4)));
    let limit = service.get("/v1/limits/smtp").await.json();
    let expected = json!({ "key": "smtp", "max_running": 2, "rate": null, "is_set": false, "running": 2,
        "queued": 0, "blocked": 3 });
    assert_eq!(limit, expected);
}

#[tokio::test]
async fn jobs_of_different_share_keys_take_turns() {
    let service = Service::new();
    for customer in ["ada", "ada", "ada", "bob"] {
        enqueue(&service, json!({ "share_key": customer })).await;
    }
    let turns: Vec<_> = claimed(&service, 4).await.iter().map(|job| job["share_key"].clone()).collect();
    assert_eq!(turns, ["ada", "bob", "ada", "ada"]);
}

#[tokio::test]
async fn a_batch_and_a_job_under_an_id_of_the_client_have_the_same_fields() {
    let service = Service::new();
    let job = json!({ "kind": "send", "queue": "mail", "limit_key": "smtp", "limit_max_running": 1, "share_key": "ada" });
    let path = "/v1/jobs/01a20591-ffdb-7f3f-9bb1-823fa734668e";
    assert_eq!(service.ask("PUT", path, &[], &job.to_string()).await.status, StatusCode::CREATED);
    let batch = json!({ "jobs": [job, job] }).to_string();
    assert_eq!(service.post("/v1/jobs/batch", &batch).await.status, StatusCode::ACCEPTED);
    assert_eq!(claimed(&service, 10).await.len(), 1);
    let wrong = json!({ "jobs": [job, { "kind": "send", "limit_max_running": 1 }] }).to_string();
    let told = service.post("/v1/jobs/batch", &wrong).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("jobs[1].limit_max_running")));
}

#[tokio::test]
async fn what_is_wrong_with_a_limit_is_refused_by_field() {
    let service = Service::new();
    for (terms, status, field) in [
        (json!({ "limit_max_running": 2 }), 422, "limit_max_running"),
        (json!({ "limit_key": "smtp", "limit_max_running": 0 }), 422, "limit_max_running"),
        (json!({ "limit_key": "smtp", "limit_max_running": 1_000_001 }), 422, "limit_max_running"),
        (json!({ "limit_key": "smtp", "limit_max_running": "2" }), 400, "limit_max_running"),
        (json!({ "limit_key": "" }), 422, "limit_key"),
        (json!({ "limit_key": "singleton/report" }), 422, "limit_key"),
        (json!({ "share_key": "a\nb" }), 422, "share_key"),
        (json!({ "share_key": "x".repeat(257) }), 422, "share_key"),
    ] {
        let mut body = json!({ "kind": "send" });
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let told = service.post("/v1/jobs", &body.to_string()).await;
        assert_eq!(
            (told.status.as_u16(), &told.json()["field"]),
            (status, &json!(field)),
            "{body}: {told:?}"
        );
    }
    for (key, spec, status, field) in [
        ("smtp", json!({ "max_running": 0 }), 422, "max_running"),
        ("smtp", json!({ "rate": { "limit": 0, "per_seconds": 1 } }), 422, "rate.limit"),
        ("smtp", json!({ "rate": { "limit": 1, "per_seconds": 0 } }), 422, "rate.per_seconds"),
        ("smtp", json!({ "burst": 1 }), 400, "burst"),
        ("singleton%2Freport", json!({ "max_running": 2 }), 422, "limit_key"),
        ("a%0Ab", json!({ "max_running": 2 }), 422, "limit_key"),
    ] {
        let told = put(&service, key, spec.clone()).await;
        assert_eq!(
            (told.status.as_u16(), &told.json()["field"]),
            (status, &json!(field)),
            "{spec}: {told:?}"
        );
    }
    assert_eq!(service.get("/v1/limits").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_limit_that_is_set_overrides_the_numbers_of_jobs_until_it_is_removed() {
    let mut service = Service::new();
    let rate = json!({ "limit": 20, "per_seconds": 1.0, "burst": 1 });
    let told = put(&service, "smtp", json!({ "rate": rate })).await;
    assert_eq!((told.status, &told.json()["rate"]), (StatusCode::OK, &rate));
    for _ in 0..5 {
        enqueue(&service, json!({ "limit_key": "smtp", "limit_max_running": 3 })).await;
    }
    assert_eq!(claimed(&service, 10).await.len(), 1);
    service.advance(Duration::from_millis(50));
    assert_eq!(claimed(&service, 10).await.len(), 1);
    let limit = service.get("/v1/limits/smtp").await.json();
    assert_eq!(
        (&limit["is_set"], &limit["max_running"], &limit["running"]),
        (&json!(true), &Value::Null, &json!(2))
    );
    let removed = service.ask("DELETE", "/v1/limits/smtp", &[], "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(claimed(&service, 10).await.len(), 1, "the number of the jobs counts again");
    let again = service.ask("DELETE", "/v1/limits/smtp", &[], "").await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn limits_are_listed_by_key_page_by_page() {
    let service = Service::new();
    assert_eq!(service.get("/v1/limits/smtp").await.status, StatusCode::NOT_FOUND);
    for key in ["b", "tenant%2F7%20x", "a"] {
        assert_eq!(put(&service, key, json!({ "max_running": 1 })).await.status, StatusCode::OK);
    }
    let page = service.get("/v1/limits?limit=2").await.json();
    let keys: Vec<_> = page["items"].as_array().unwrap().iter().map(|limit| limit["key"].clone()).collect();
    assert_eq!((keys, &page["next_cursor"]), (vec![json!("a"), json!("b")], &json!("b")));
    let rest = service.get("/v1/limits?limit=2&cursor=b").await.json();
    assert_eq!(rest["items"][0]["key"], "tenant/7 x");
    assert_eq!(service.get("/v1/limits/tenant%2F7%20x").await.json()["max_running"], 1);
    assert_eq!(service.get("/v1/limits?cursor=").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
