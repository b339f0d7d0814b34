//! Requests that are sent again.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::Name;
use tenure::records::{Document, NewValue, Only, Put, RecordsAsk, Writes};

use crate::asking::{Service, Told};

const JOB: &str = r#"{"kind":"build_star","args":{"name":"Sol"}}"#;

async fn post(service: &Service, path: &str, key: &str, body: &str) -> Told {
    let key = format!("idempotency-key: {key}");
    service.ask("POST", path, &[&key], body).await
}

async fn jobs(service: &Service) -> usize {
    service.get("/v1/jobs?limit=1000").await.json()["items"].as_array().unwrap().len()
}

/// T131.
#[tokio::test]
async fn what_is_sent_again_under_its_key_is_done_once() {
    let mut service = Service::new();
    let first = post(&service, "/v1/jobs", "\"order-7\"", JOB).await;
    assert!(first.status == StatusCode::ACCEPTED && !first.headers.contains_key("idempotency-replayed"));
    service.work().await;
    // Also without quotation marks, as many clients write it.
    let again = post(&service, "/v1/jobs", "order-7", JOB).await;
    assert_eq!((again.status, again.id()), (StatusCode::ACCEPTED, first.id()));
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json()["state"], "succeeded", "it is told how it stands now");
    assert_eq!(jobs(&service).await, 1);
    for lone in ["\"order-7", "order-7\"", "\""] {
        assert_eq!(post(&service, "/v1/jobs", lone, JOB).await.status, StatusCode::BAD_REQUEST, "{lone}");
    }
    let other = post(&service, "/v1/jobs", "order-8", JOB).await;
    assert!(other.id() != first.id() && jobs(&service).await == 2);
    service.advance(Duration::from_secs(25 * 3600));
    assert_ne!(post(&service, "/v1/jobs", "order-7", JOB).await.id(), first.id(), "a day is over");
}

/// A client could otherwise fill the store with records of requests that are never accepted.
#[tokio::test]
async fn a_request_that_is_invalid_leaves_no_record() {
    let service = Service::new();
    let jobs = format!(r#"{{"jobs":[{JOB},{{"kind":"k","args":[1e400]}}]}}"#);
    for _ in 0..2 {
        let told = post(&service, "/v1/jobs/batch", "k", &jobs).await;
        assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", told.text);
    }
    let each = r#"{"atomic":false,"jobs":[{"kind":"tenure.bulk"},{"kind":"k","queue":"apps"}]}"#;
    let told = post(&service, "/v1/jobs/batch", "each", each).await.json();
    assert_eq!((&told["items"][0]["status"], &told["items"][1]["status"]), (&json!(422), &json!(422)));
    let wrong = r#"{"atomic":false,"jobs":[{"kind":"k","args":[1e400]},{"kind":"k","args":{"a":1,"a":2}}]}"#;
    let told = post(&service, "/v1/jobs/batch", "wrong", wrong).await.json();
    assert_eq!((&told["items"][0]["status"], &told["items"][1]["status"]), (&json!(422), &json!(422)));
    let shelf = Name::new("shelf", "idempotency").unwrap();
    let page = service.tenure().store().records(RecordsAsk::of(shelf)).await.unwrap();
    assert_eq!(page.records.len(), 0);
    let good = post(&service, "/v1/jobs/batch", "k", &format!(r#"{{"jobs":[{JOB}]}}"#)).await;
    assert_eq!(good.status, StatusCode::ACCEPTED, "{}", good.text);
}

#[tokio::test]
async fn a_key_is_for_one_request() {
    let service = Service::new();
    post(&service, "/v1/jobs", "k", JOB).await;
    let other = post(&service, "/v1/jobs", "k", r#"{"kind":"build_star","args":{"name":"Vega"}}"#).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(other.json()["type"], "urn:tenure:problem:idempotency-key-reused");
    let elsewhere = post(&service, "/v1/jobs/batch", "k", &format!(r#"{{"jobs":[{JOB}]}}"#)).await;
    assert_eq!(elsewhere.json()["type"], "urn:tenure:problem:idempotency-key-reused");
    assert_eq!(jobs(&service).await, 1);
    for bad in ["", "\"\"", &"k".repeat(201)] {
        let told = post(&service, "/v1/jobs", bad, JOB).await;
        assert_eq!(
            (told.status, told.json()["field"].as_str()),
            (StatusCode::BAD_REQUEST, Some("Idempotency-Key"))
        );
    }
    let headers = ["idempotency-key: a", "idempotency-key: b"];
    assert_eq!(service.ask("POST", "/v1/jobs", &headers, JOB).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_batch_is_accepted_once_with_the_same_ids() {
    let service = Service::new();
    let body = json!({ "jobs": vec![json!({ "kind": "k" }); 1_000] }).to_string();
    let (first, again) = (
        post(&service, "/v1/jobs/batch", "many", &body).await,
        post(&service, "/v1/jobs/batch", "many", &body).await,
    );
    assert_eq!(again.header("idempotency-replayed"), "true");
    let ids = |told: &Told| -> Vec<Value> {
        told.json()["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
    };
    assert_eq!((ids(&first), jobs(&service).await), (ids(&again), 1_000));
    assert_eq!(again.json()["items"][0]["created"], false);
    // An id of the client's own counts beside a key, too.
    let own = service.tenure().new_id().to_string();
    let body = json!({ "jobs": [{ "kind": "k", "id": own }] }).to_string();
    assert_eq!(post(&service, "/v1/jobs/batch", "one", &body).await.json()["items"][0]["id"], own.as_str());
}

#[tokio::test]
async fn a_job_that_was_removed_is_not_made_again_under_its_key() {
    let mut service = Service::new();
    let id = post(&service, "/v1/jobs", "k", JOB).await.id();
    service.work().await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        service.ask("DELETE", &format!("/v1/jobs/{id}"), &[], "").await.status,
        StatusCode::NO_CONTENT
    );
    let again = post(&service, "/v1/jobs", "k", JOB).await;
    assert_eq!((again.status, again.id(), jobs(&service).await), (StatusCode::ACCEPTED, id, 0));
}

async fn say_of_kind(service: &Service, kind: &str, schema: &Value) {
    let body = json!({ "schema": schema }).to_string();
    let told = service.ask("PUT", &format!("/v1/kinds/{kind}"), &[], &body).await;
    assert!(told.status.is_success(), "{told:?}");
}

/// Between the two requests the rules have changed: what was refused is admitted, and what was admitted is not.
#[tokio::test]
async fn each_job_of_a_batch_keeps_its_place_when_other_jobs_are_admitted_than_before() {
    let service = Service::new();
    let (strict, lax) = (json!({ "required": ["amount"] }), json!({}));
    say_of_kind(&service, "bill", &strict).await;
    let body =
        json!({ "jobs": [{ "kind": "bill", "args": {} }, { "kind": "mail", "args": {} }], "atomic": false });
    let items = |told: Told| -> Vec<(u64, Value)> {
        let items = told.json()["items"].as_array().unwrap().clone();
        items.iter().map(|item| (item["status"].as_u64().unwrap(), item["id"].clone())).collect()
    };
    let first = items(post(&service, "/v1/jobs/batch", "k", &body.to_string()).await);
    assert_eq!((first[0].clone(), first[1].0), ((422, Value::Null), 202));
    say_of_kind(&service, "bill", &lax).await;
    say_of_kind(&service, "mail", &strict).await;
    let again = items(post(&service, "/v1/jobs/batch", "k", &body.to_string()).await);
    assert_eq!(again[1], first[1], "what was made is told as it was");
    assert!(again[0].0 == 202 && again[0].1 != first[1].1, "what was refused is tried again: {again:?}");
    assert_eq!(items(post(&service, "/v1/jobs/batch", "k", &body.to_string()).await), again);
    assert_eq!(jobs(&service).await, 2);
}

#[tokio::test]
async fn what_was_done_is_told_when_it_would_not_be_admitted_any_more() {
    let service = Service::new();
    let batch = format!(r#"{{"jobs":[{JOB},{JOB}]}}"#);
    let (first, many) = (
        post(&service, "/v1/jobs", "one", JOB).await,
        post(&service, "/v1/jobs/batch", "many", &batch).await,
    );
    say_of_kind(&service, "build_star", &json!({ "required": ["mass"] })).await;
    let again = post(&service, "/v1/jobs", "one", JOB).await;
    assert_eq!((again.status, again.id()), (StatusCode::ACCEPTED, first.id()));
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = post(&service, "/v1/jobs/batch", "many", &batch).await;
    assert_eq!(again.json()["items"][1]["id"], many.json()["items"][1]["id"]);
    let other = post(&service, "/v1/jobs", "another", JOB).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "what was not done is not admitted");
    let other = post(&service, "/v1/jobs", "one", r#"{"kind":"build_star","args":{}}"#).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(jobs(&service).await, 3);
}

/// The server was killed when it had written the key down and nothing else: whoever comes makes the job under the id that
/// was meant for it.
#[tokio::test]
async fn what_was_cut_off_is_done_when_it_is_sent_again() {
    let service = Service::new();
    // A key whose request was refused by the store is as one that was cut off behind its first step.
    let after = service.tenure().new_id();
    let body = json!({ "kind": "k", "after": [after.to_string()] }).to_string();
    let refused = post(&service, "/v1/jobs", "k", &body).await;
    assert_eq!((refused.status, jobs(&service).await), (StatusCode::UNPROCESSABLE_ENTITY, 0));
    let waited_for = service.ask("PUT", &format!("/v1/jobs/{after}"), &[], r#"{"kind":"k"}"#).await;
    assert_eq!(waited_for.status, StatusCode::CREATED);
    let done = post(&service, "/v1/jobs", "k", &body).await;
    assert_eq!((done.status, done.header("idempotency-replayed")), (StatusCode::ACCEPTED, "true"));
    assert_eq!(post(&service, "/v1/jobs", "k", &body).await.id(), done.id());
    assert_eq!(jobs(&service).await, 2);
}

/// Two servers on one store: what one has granted is told to the other.
#[tokio::test]
async fn a_token_is_good_at_every_server_of_the_store() {
    let service = Service::new();
    let other = service.other_server();
    let id = service.post("/v1/jobs", r#"{"kind":"k"}"#).await.id();
    let job = service.post("/v1/claim", "{}").await.json()["jobs"][0].clone();
    let body = json!({ "token": job["token"] }).to_string();
    let done = other.ask("POST", &format!("/v1/jobs/{id}/complete"), &[], &body).await;
    assert_eq!((done.status, done.json()["state"].as_str()), (StatusCode::OK, Some("succeeded")), "{done:?}");
}

/// Two customers may both have an order 7.
#[tokio::test]
async fn a_service_that_has_enqueued_by_itself_tells_its_client_in_the_same_way() {
    let mut service = Service::new();
    let own = service.own();
    let told = own.ask("POST", "/comets", &[], r#"{"name":"Halley"}"#).await;
    assert_eq!(told.status, 202, "{told:?}");
    let place = told.header("location").to_owned();
    assert!(place.contains("/queue/") && !told.header("retry-after").is_empty(), "{told:?}");
    assert!(told.header("operation-location").ends_with("?redirect=false"), "{told:?}");
    assert!(!told.header("etag").is_empty(), "{told:?}");
    service.work().await;
    let path = place.find("/queue/").map(|at| place[at..].to_owned()).unwrap();
    assert_ne!(service.get(&path).await.json()["status"], "NotStarted");
}

#[tokio::test]
async fn a_key_is_whose_access_token_is_shown() {
    let service = Service::new();
    let mut ids = Vec::new();
    for whose in ["one", "other"] {
        let token = format!("authorization: Bearer {whose}");
        let told = service.ask("POST", "/v1/jobs", &["idempotency-key: order-7", &token], JOB).await;
        assert!(!told.headers.contains_key("idempotency-replayed"));
        ids.push(told.id());
    }
    assert!(ids[0] != ids[1] && jobs(&service).await == 2);
}

/// A key that another client of the same service has used neither blocks a request nor swallows it.
#[tokio::test]
async fn clients_of_a_service_that_authenticates_by_cookie_share_no_keys() {
    let service = Service::new();
    let own = service.own();
    let (mut ids, star) = (Vec::new(), r#"{"name":"Sol"}"#);
    let key = "idempotency-key: order-7";
    for headers in [
        &[key, "cookie: session=one"][..],
        &[key, "cookie: session=other"],
        &[key, "x-user: one"],
        &[key, "x-user: other"],
        &[key, "authorization: Bearer one"],
        &[key, "authorization: Bearer other"],
    ] {
        let told = own.ask("POST", "/stars", headers, star).await;
        assert!(told.status == StatusCode::ACCEPTED && !ids.contains(&told.id()), "{headers:?}: {told:?}");
        ids.push(told.id());
    }
    let again = own.ask("POST", "/stars", &[key, "x-user: one"], star).await;
    assert_eq!((again.id(), again.header("idempotency-replayed")), (ids[2].clone(), "true"));
}

/// In a service of somebody's own the same holds: another star under the same key is refused, and the same one is not built
/// twice.
#[tokio::test]
async fn a_key_is_for_one_request_in_a_service_of_ones_own_too() {
    let mut service = Service::new();
    let own = service.own();
    let ask = |path: &'static str, name: &'static str| {
        let body = format!(r#"{{"name":"{name}"}}"#);
        let own = &own;
        async move { own.ask("POST", path, &["idempotency-key: k", "x-user: 7"], &body).await }
    };
    let first = ask("/stars", "Sol").await;
    let again = ask("/stars", "Sol").await;
    assert_eq!((first.id(), again.header("idempotency-replayed")), (again.id(), "true"));
    service.work().await;
    assert_eq!(ask("/stars", "Vega").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(ask("/suns", "Sol").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(jobs(&service).await, 1);
}

/// The server was killed when the operation was accepted and that was not yet written down. What the search means has changed
/// since, and the one who sends it again is told of the operation that he has begun.
#[tokio::test]
async fn an_operation_on_many_jobs_that_was_cut_off_is_the_same_when_it_is_sent_again() {
    let mut service = Service::new();
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let body = r#"{"action":"cancel","filter":{"q":"created:>-1h"}}"#;
    let first = post(&service, "/v1/bulk", "k", body).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    forget_that_it_was_done(&service).await;
    service.advance(Duration::from_secs(60));
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let again = post(&service, "/v1/bulk", "k", body).await;
    assert_eq!((again.status, again.id()), (StatusCode::ACCEPTED, first.id()), "{again:?}");
    assert_eq!(again.header("idempotency-replayed"), "true");
}

async fn forget_that_it_was_done(service: &Service) {
    let store = service.tenure().store();
    let shelf = tenure::Name::new("shelf", "idempotency").unwrap();
    let there = store.records(RecordsAsk::of(shelf.clone())).await.unwrap().records.remove(0);
    let mut note: Value = serde_json::from_slice(there.value.as_bytes()).unwrap();
    assert_eq!(note["done"], true);
    note["done"] = json!(false);
    let value = Document::new(note.to_string().into_bytes()).unwrap();
    let to = Some(NewValue { value, keep: Some(Duration::from_secs(3600)) });
    let put = Put { shelf, key: there.key, only: Only::Any, to };
    store.write_records(Writes { records: vec![put], ..Writes::default() }).await.unwrap();
}

/// Maps without order are written anew with each try.
#[tokio::test]
async fn the_same_fields_in_another_order_are_the_same_request() {
    let service = Service::new();
    let key = ["idempotency-key: \"order-7\""];
    let first = service.ask("POST", "/v1/jobs", &key, r#"{"kind":"k","args":{"a":1,"b":2}}"#).await;
    let again = service.ask("POST", "/v1/jobs", &key, r#"{ "args": {"b": 2, "a": 1}, "kind": "k" }"#).await;
    assert_eq!((again.status, again.id()), (StatusCode::ACCEPTED, first.id()));
    assert_eq!(again.header("idempotency-replayed"), "true");
    let other = service.ask("POST", "/v1/jobs", &key, r#"{"kind":"k","args":{"a":2,"b":1}}"#).await;
    assert_eq!(other.json()["type"], "urn:tenure:problem:idempotency-key-reused");
}
