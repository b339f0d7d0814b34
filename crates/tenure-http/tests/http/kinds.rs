//! What is said about kinds: args that break the schema of theirs are not taken, however they come.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

use crate::asking::{Asker, Service, Told};

async fn say(service: &Service, kind: &str, said: Value) -> Told {
    service.ask("PUT", &format!("/v1/kinds/{kind}"), &[], &said.to_string()).await
}

fn month() -> Value {
    json!({ "type": "object", "required": ["month"], "properties": { "month": { "type": "integer" } } })
}

fn assert_broken(told: &Told, pointer: &str, rule: &str) {
    assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{told:?}");
    let broken = &told.json()["errors"][0];
    assert_eq!((&broken["pointer"], &broken["rule"]), (&json!(pointer), &json!(rule)), "{told:?}");
}

#[tokio::test]
async fn what_is_said_about_a_kind_is_shown_changed_and_taken_back() {
    let service = Service::new();
    assert_eq!(service.get("/v1/kinds/bill").await.status, StatusCode::NOT_FOUND);
    let said = json!({ "description": "Bills a month", "owner": "billing", "docs_url": "https://example.com/bill",
        "default_queue": "bills", "schema": month() });
    assert_eq!(say(&service, "bill", said.clone()).await.status, StatusCode::CREATED);
    let shown = service.get("/v1/kinds/bill").await.json();
    for (name, value) in said.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{shown}");
    }
    let listed = service.get("/v1/kinds").await.json();
    let expected = json!({ "kind": "bill", "queues": [], "jobs": {}, "description": "Bills a month",
        "owner": "billing", "has_schema": true });
    assert_eq!(listed["items"], json!([expected]));
    let changed = say(&service, "bill", json!({ "owner": "sales" })).await;
    assert_eq!((changed.status, &changed.json()["schema"]), (StatusCode::OK, &Value::Null));
    assert_eq!(service.ask("DELETE", "/v1/kinds/bill", &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.ask("DELETE", "/v1/kinds/bill", &[], "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.get("/v1/kinds").await.json()["items"], json!([]));
}

#[tokio::test]
async fn what_makes_no_sense_is_not_said() {
    let service = Service::new();
    for (kind, said, field) in [
        ("tenure.bulk", json!({}), "kind"),
        ("bill", json!({ "docs_url": "javascript:alert(1)" }), "docs_url"),
        ("bill", json!({ "default_queue": "two words" }), "default_queue"),
        ("bill", json!({ "default_queue": "tenure.own" }), "default_queue"),
        ("bill", json!({ "owner": "x".repeat(501) }), "owner"),
        ("bill", json!({ "schema": { "$ref": "http://169.254.169.254/" } }), "schema.$ref"),
        ("bill", json!({ "schema": { "type": "star" } }), "schema/type"),
        ("bill", json!({ "schema": { "description": "x".repeat(33_000) } }), "schema"),
    ] {
        let told = say(&service, kind, said.clone()).await;
        assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{said}: {told:?}");
        assert_eq!(told.json()["field"], field, "{told:?}");
    }
    assert_eq!(service.get("/v1/kinds").await.json()["items"], json!([]));
}

#[tokio::test]
async fn args_that_break_the_schema_are_refused_however_they_come() {
    let service = Service::new();
    say(&service, "bill", json!({ "schema": month() })).await;
    let (good, bad) = (json!({ "month": 5 }), json!({ "month": "hunter2" }));
    let job = |args: &Value| json!({ "kind": "bill", "args": args }).to_string();
    assert_eq!(service.post("/v1/jobs", &job(&good)).await.status, StatusCode::ACCEPTED);
    let told = service.post("/v1/jobs", &job(&bad)).await;
    assert_broken(&told, "/month", "type");
    assert!(!told.text.contains("hunter2"), "a value may be a secret: {told:?}");
    assert_broken(&service.post("/v1/jobs", r#"{"kind":"bill"}"#).await, "", "type");
    let path = "/v1/jobs/01a20591-ffdb-7f3f-9bb1-823fa734668e";
    assert_broken(&service.ask("PUT", path, &[], &job(&bad)).await, "/month", "type");
    let batch = format!("{{\"jobs\":[{},{}]}}", job(&good), job(&bad));
    let told = service.post("/v1/jobs/batch", &batch).await;
    assert_broken(&told, "/month", "type");
    assert_eq!(told.json()["index"], 1);
    let lines = format!("{}\n{}\n", job(&good), job(&bad));
    assert_broken(&service.lines("/v1/jobs/batch", &lines).await, "/month", "type");
    let schedule = |args: &Value| {
        json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": "bill", "args": args } }).to_string()
    };
    let at = "/v1/schedules/bills";
    assert_broken(&service.ask("PUT", at, &[], &schedule(&bad)).await, "/month", "type");
    assert_eq!(service.ask("PUT", at, &[], &schedule(&good)).await.status, StatusCode::CREATED);
    let patch = json!({ "job": { "args": bad } }).to_string();
    let told = service.ask("PATCH", at, &[], &patch).await;
    assert_broken(&told, "/month", "type");
    assert_eq!(told.json()["field"], "job.args");
    let trigger = json!({ "args": bad }).to_string();
    assert_broken(&service.post("/v1/schedules/bills/trigger", &trigger).await, "/month", "type");
    let counted = service.get("/v1/kinds").await.json();
    assert_eq!(counted["items"][0]["jobs"], json!({ "queued": 1 }), "nothing of what was refused is there");
}

#[tokio::test]
async fn a_job_that_does_not_say_its_queue_waits_where_its_kind_does() {
    let service = Service::new();
    say(&service, "bill", json!({ "default_queue": "bills" })).await;
    let queue = |told: Told| told.json()["queue"].clone();
    assert_eq!(queue(service.post("/v1/jobs", r#"{"kind":"bill"}"#).await), "bills");
    assert_eq!(queue(service.post("/v1/jobs", r#"{"kind":"bill","queue":"other"}"#).await), "other");
    assert_eq!(queue(service.post("/v1/jobs", r#"{"kind":"other"}"#).await), "default");
    // Who does not reach that queue does not get there by leaving it out.
    let reach = Reach::new(&["default".to_owned()], &[]).unwrap();
    let new = NewAccessToken { name: "bound".to_owned(), scopes: vec![Scope::Enqueue], reach, keep: None };
    let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
    let header = format!("authorization: Bearer {token}");
    let told = service.guarded().ask("POST", "/v1/jobs", &[&header], r#"{"kind":"bill"}"#).await;
    assert_eq!(told.status, StatusCode::FORBIDDEN, "{told:?}");
}

#[tokio::test]
async fn another_server_goes_by_what_is_said_within_five_seconds() {
    let mut service = Service::new();
    let other: Asker = service.other_server();
    let submit = r#"{"kind":"bill","args":{}}"#;
    let status = async |asker: &Asker| asker.ask("POST", "/v1/jobs", &[], submit).await.status;
    assert_eq!(status(&other).await, StatusCode::ACCEPTED);
    say(&service, "bill", json!({ "schema": month() })).await;
    assert_eq!(status(&service.asker()).await, StatusCode::UNPROCESSABLE_ENTITY, "at once where it was said");
    service.advance(Duration::from_secs(5));
    assert_eq!(status(&other).await, StatusCode::UNPROCESSABLE_ENTITY);
    service.ask("DELETE", "/v1/kinds/bill", &[], "").await;
    assert_eq!(status(&service.asker()).await, StatusCode::ACCEPTED);
    service.advance(Duration::from_secs(5));
    assert_eq!(status(&other).await, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn who_does_not_reach_a_kind_is_told_nothing_of_it() {
    let service = Service::new();
    say(&service, "bill", json!({ "owner": "billing" })).await;
    let reach = Reach::new(&[], &["mail".to_owned()]).unwrap();
    let new = NewAccessToken { name: "bound".to_owned(), scopes: vec![Scope::Read], reach, keep: None };
    let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
    let (guarded, header) = (service.guarded(), format!("authorization: Bearer {token}"));
    assert_eq!(guarded.ask("GET", "/v1/kinds/bill", &[&header], "").await.status, StatusCode::NOT_FOUND);
    assert!(!guarded.ask("GET", "/v1/kinds", &[&header], "").await.text.contains("bill"));
}
