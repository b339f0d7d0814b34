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

/// A check of one such job would take seconds, and a request can have sixteen of them.
#[tokio::test]
async fn args_whose_check_would_take_too_long_are_refused() {
    let service = Service::new();
    let values: Vec<u32> = (10..1_500).chain([7]).collect();
    say(&service, "many", json!({ "schema": { "items": { "enum": values } } })).await;
    let job = |count: usize| json!({ "kind": "many", "args": vec![7; count] }).to_string();
    assert_eq!(service.post("/v1/jobs", &job(10_000)).await.status, StatusCode::ACCEPTED);
    let told = service.post("/v1/jobs", &job(100_000)).await;
    assert_eq!((told.status, &told.json()["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("args")));
    assert!(told.text.contains("at most 50000000 checks"), "{told:?}");
    assert_broken(&service.post("/v1/jobs", &job(10_000).replace("[7,", "[9,")).await, "", "schema");
}

/// The validator would make an error in memory for each of millions of missing fields.
#[tokio::test]
async fn many_broken_rules_take_no_memory() {
    let service = Service::new();
    let item = json!({ "type": "object", "required": ["sku", "qty", "price"] });
    say(&service, "order", json!({ "schema": { "type": "array", "items": item } })).await;
    let job = |count: usize| json!({ "kind": "order", "args": vec![json!({}); count] });
    let told = service.post("/v1/jobs", &job(80_000).to_string()).await;
    assert_broken(&told, "", "schema");
    let told = service.post("/v1/jobs/batch", &json!({ "jobs": [job(1_000_000)] }).to_string()).await;
    assert_eq!(
        (told.status, told.json()["field"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("args"))
    );
    assert!(told.text.contains("at most 262144 bytes"), "{told:?}");
    assert_broken(&service.post("/v1/jobs", &job(2).to_string()).await, "/0", "required");
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
    let new = NewAccessToken {
        name: "bound".to_owned(),
        scopes: vec![Scope::Enqueue],
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
    let header = format!("authorization: Bearer {token}");
    let told = service.guarded().ask("POST", "/v1/jobs", &[&header], r#"{"kind":"bill"}"#).await;
    assert_eq!(told.status, StatusCode::FORBIDDEN, "{told:?}");
}

/// A refusal told the default queue of each kind to clients that may not know the kind.
#[tokio::test]
async fn a_refusal_names_only_the_queue_that_the_client_named() {
    let service = Service::new();
    say(&service, "bill", json!({ "default_queue": "q-canary" })).await;
    let new = NewAccessToken {
        name: "bound".to_owned(),
        scopes: vec![Scope::Enqueue, Scope::Manage],
        reach: Reach::new(&["default".to_owned()], &["mail".to_owned()]).unwrap(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
    let (guarded, header) = (service.guarded(), format!("authorization: Bearer {token}"));
    let job = r#"{"kind":"bill"}"#;
    let schedule = format!(r#"{{"spec":{{"cron":"0 2 * * *"}},"job":{job}}}"#);
    let mut refusals = Vec::new();
    for (method, path, body) in [
        ("POST", "/v1/jobs", job),
        ("POST", "/v1/jobs/batch", &format!(r#"{{"jobs":[{job}]}}"#)),
        ("POST", "/v1/kinds/bill/jobs", "{}"),
        ("PUT", "/v1/schedules/nightly", &schedule),
    ] {
        let told = guarded.ask(method, path, &[&header], body).await;
        assert!(!told.text.contains("q-canary"), "{method} {path}: {told:?}");
        assert!([403, 404].contains(&told.status.as_u16()), "{method} {path}: {told:?}");
        refusals.push(told);
    }
    let of_other = guarded.ask("POST", "/v1/jobs", &[&header], r#"{"kind":"sail"}"#).await;
    let (bill, sail) = (refusals[0].json()["detail"].clone(), of_other.json()["detail"].clone());
    assert_eq!(
        bill.as_str().unwrap().replace("bill", "sail"),
        sail.as_str().unwrap(),
        "a kind without rules"
    );
    let named = guarded.ask("POST", "/v1/jobs", &[&header], r#"{"kind":"bill","queue":"own"}"#).await;
    assert!(named.status == StatusCode::FORBIDDEN && named.text.contains("own"), "{named:?}");
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
    let new = NewAccessToken {
        name: "bound".to_owned(),
        scopes: vec![Scope::Read],
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
    let (guarded, header) = (service.guarded(), format!("authorization: Bearer {token}"));
    assert_eq!(guarded.ask("GET", "/v1/kinds/bill", &[&header], "").await.status, StatusCode::NOT_FOUND);
    assert!(!guarded.ask("GET", "/v1/kinds", &[&header], "").await.text.contains("bill"));
}

#[tokio::test]
async fn a_job_of_a_kind_is_enqueued_without_naming_the_kind_again() {
    let service = Service::new();
    say(&service, "bill", json!({ "default_queue": "bills", "schema": month() })).await;
    let path = "/v1/kinds/bill/jobs";
    let key = ["idempotency-key: one"];
    let body = r#"{"args":{"month": 5},"priority":-1}"#;
    let told = service.ask("POST", path, &key, body).await;
    assert_eq!(told.status, StatusCode::ACCEPTED, "{told:?}");
    let job = told.json();
    assert_eq!(
        (&job["kind"], &job["queue"], &job["priority"]),
        (&json!("bill"), &json!("bills"), &json!(-1))
    );
    assert!(told.text.contains(r#"{"month": 5}"#), "args stay as they were written: {told:?}");
    assert_eq!(service.ask("POST", path, &key, body).await.id(), told.id());
    assert_broken(&service.post(path, r#"{"args":{"month":"x"}}"#).await, "/month", "type");
    for (path, body, status, field) in [
        (path, r#"{"kind":"bill","args":{"month":5}}"#, 422, "kind"),
        (path, r#"{"arg":{"month":5}}"#, 400, "arg"),
        ("/v1/kinds/two%20words/jobs", "{}", 422, "kind"),
        ("/v1/kinds/tenure.bulk/jobs", "{}", 422, "kind"),
    ] {
        let told = service.post(path, body).await;
        assert_eq!(
            (told.status.as_u16(), &told.json()["field"]),
            (status, &json!(field)),
            "{body}: {told:?}"
        );
    }
    for body in ["", "{}"] {
        let told = service.ask("POST", "/v1/kinds/other/jobs", &[], body).await;
        assert_eq!((&told.json()["kind"], &told.json()["args"]), (&json!("other"), &Value::Null), "{told:?}");
    }
}

#[tokio::test]
async fn the_description_has_the_kinds_that_the_client_may_read() {
    let service = Service::new();
    for kind in ["bill", "mail"] {
        say(&service, kind, json!({ "schema": month() })).await;
    }
    say(&service, "plain", json!({ "owner": "ops" })).await;
    let kinds = |told: Told| -> Vec<String> {
        let document = told.json();
        let paths = document["paths"].as_object().unwrap().keys();
        let of_kinds = paths.filter_map(|path| path.strip_prefix("/v1/kinds/")?.strip_suffix("/jobs"));
        of_kinds.filter(|kind| *kind != "{name}").map(str::to_owned).collect()
    };
    assert_eq!(kinds(service.get("/openapi.json").await), ["bill", "mail"]);
    assert!(kinds(service.get("/openapi-3.0.json").await).is_empty());
    let tag = service.get("/openapi.json").await.header("etag").to_owned();
    say(&service, "mail", json!({})).await;
    let known = format!("if-none-match: {tag}");
    let changed = service.ask("GET", "/openapi.json", &[&known], "").await;
    assert_eq!(kinds(changed), ["bill"], "at once where it was said");
    let guarded = service.guarded();
    assert!(kinds(guarded.get("/openapi.json").await).is_empty());
    let as_token = async |scope: Scope, reach: Reach| {
        let new = NewAccessToken {
            name: "bound".to_owned(),
            scopes: vec![scope],
            reach,
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        let token = Tokens::of(service.tenure()).create(new).await.unwrap().1;
        guarded.ask("GET", "/openapi.json", &[&format!("authorization: Bearer {token}")], "").await
    };
    let only = |kind: &str| Reach::new(&[], &[kind.to_owned()]).unwrap();
    assert_eq!(kinds(as_token(Scope::Read, Reach::default()).await), ["bill"]);
    assert_eq!(kinds(as_token(Scope::Read, only("bill")).await), ["bill"]);
    assert!(kinds(as_token(Scope::Read, only("mail")).await).is_empty());
    assert!(kinds(as_token(Scope::Work, Reach::default()).await).is_empty());
    let wrong = guarded.ask("GET", "/openapi.json", &["authorization: Bearer tenure_x"], "").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}
