//! Searching, and something done with all that a search means.

use serde_json::{Value, json};

use crate::asking::{Service, Told};

async fn given() -> Service {
    let mut service = Service::new();
    for kind in ["build_star", "fall"] {
        for number in 0..4 {
            let args = if kind == "fall" { json!(null) } else { json!({ "name": format!("star {number}") }) };
            let body =
                json!({ "kind": kind, "args": args, "tags": [format!("n{number}")], "max_attempts": 1 });
            service.post("/v1/jobs", &body.to_string()).await;
        }
    }
    service.work().await;
    service
}

async fn found(service: &Service, words: &str) -> usize {
    let words = percent_encoding::utf8_percent_encode(words, percent_encoding::NON_ALPHANUMERIC);
    let told = service.get(&format!("/v1/jobs?q={words}")).await;
    assert_eq!(told.status, 200, "{told:?}");
    told.json()["items"].as_array().unwrap().len()
}

async fn bulk(service: &Service, body: Value) -> Told {
    service.post("/v1/bulk", &body.to_string()).await
}

#[tokio::test]
async fn jobs_are_searched_for_by_what_they_hold() {
    let service = given().await;
    for (words, jobs) in [
        ("", 8),
        ("state:failed", 4),
        ("state:succeeded args.name:\"star 2\"", 1),
        ("error:fell -tag:n1", 3),
        ("star", 4),
        ("tag:n0,n1", 4),
        ("attempt:>1", 0),
        ("created:-1h", 8),
    ] {
        assert_eq!(found(&service, words).await, jobs, "{words}");
    }
    let both = service.get("/v1/jobs?q=state:failed,succeeded&state=failed&tag=n3").await;
    assert_eq!(both.json()["items"].as_array().unwrap().len(), 1);
    let bad = service.get("/v1/jobs?q=state:failed%20quue:x").await;
    let told = bad.json();
    assert_eq!((bad.status.as_u16(), &told["field"], &told["at"]), (422, &json!("q"), &json!(14)), "{told}");
    assert!(told["allowed"].as_str().unwrap().contains("did you mean queue:?"));
}

#[tokio::test]
async fn how_many_are_meant_is_told_without_doing_anything() {
    let service = given().await;
    let told =
        bulk(&service, json!({"action": "retry", "filter": {"q": "state:failed"}, "dry_run": true})).await;
    let preview = told.json();
    assert_eq!(
        (told.status.as_u16(), &preview["matched"], &preview["capped"]),
        (200, &json!(4), &json!(false))
    );
    assert_eq!(preview["sample"].as_array().unwrap().len(), 4);
    assert_eq!(found(&service, "state:failed").await, 4);
    assert_eq!(found(&service, "kind:tenure.bulk").await, 0);
}

#[tokio::test]
async fn an_operation_is_a_job_that_does_it_and_tells_how_it_went() {
    let mut service = given().await;
    let ask = json!({"action": "retry", "filter": {"q": "state:failed -tag:n0"}});
    let told = service.ask("POST", "/v1/bulk", &["Idempotency-Key: \"a\""], &ask.to_string()).await;
    assert_eq!(told.status, 202, "{told:?}");
    assert!(told.header("operation-location").ends_with(&format!("/v1/jobs/{}", told.id())));
    let again = service.ask("POST", "/v1/bulk", &["Idempotency-Key: \"a\""], &ask.to_string()).await;
    assert_eq!((again.id(), again.header("idempotency-replayed")), (told.id(), "true"));
    service.work().await;
    let job = service.get(&format!("/v1/jobs/{}", told.id())).await.json();
    assert_eq!((&job["state"], &job["kind"]), (&json!("succeeded"), &json!("tenure.bulk")), "{job}");
    assert_eq!(job["result"], json!({"done": 3, "asked": 0, "already": 0, "refused": 0}));
    let ids: Vec<Value> = service.get("/v1/jobs?tag=n0").await.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["id"].clone())
        .collect();
    let told = bulk(&service, json!({"action": "delete", "ids": ids})).await;
    assert_eq!(told.status, 202);
    service.work().await;
    assert_eq!(found(&service, "tag:n0").await, 0);
}

#[tokio::test]
async fn what_is_not_said_clearly_is_refused_by_field() {
    let service = given().await;
    let id = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    for (body, status, field) in [
        (json!({"action": "cancel"}), 422, "filter"),
        (json!({"action": "cancel", "filter": {"q": " "}}), 422, "filter"),
        (json!({"action": "cancel", "filter": {"q": "x:1"}}), 422, "q"),
        (json!({"action": "cancel", "filter": {"q": "x"}, "ids": [id]}), 422, "ids"),
        (json!({"action": "cancel", "all": true, "params": {"queue": "q"}}), 422, "params.queue"),
        (json!({"action": "move", "all": true}), 422, "params.queue"),
        (json!({"action": "reprioritize", "all": true}), 422, "params.priority"),
        (
            json!({"action": "cancel", "all": true, "params": {"grace_seconds": -1}}),
            422,
            "params.grace_seconds",
        ),
        (json!({"action": "retry", "ids": ["7"]}), 422, "job id"),
    ] {
        let told = bulk(&service, body.clone()).await;
        assert_eq!(
            (told.status.as_u16(), told.json()["field"].as_str()),
            (status, Some(field)),
            "{body}: {told:?}"
        );
    }
    assert_eq!(bulk(&service, json!({"action": "drop", "all": true})).await.status, 400);
}

#[tokio::test]
async fn what_is_tenures_own_is_nobody_elses() {
    let service = given().await;
    let own = service.post("/v1/jobs", r#"{"kind":"tenure.bulk","args":{}}"#).await;
    assert_eq!((own.status.as_u16(), own.json()["field"].as_str()), (422, Some("kind")));
    let batch = service.post("/v1/jobs/batch", r#"{"jobs":[{"kind":"k","queue":"tenure.bulk"}]}"#).await;
    assert_eq!(batch.status, 422, "{batch:?}");
    let timer = r#"{"spec":{"cron":"0 0 * * * *"},"job":{"kind":"tenure.bulk"}}"#;
    assert_eq!(service.ask("PUT", "/v1/schedules/x", &[], timer).await.status, 422);
    assert_eq!(bulk(&service, json!({"action": "cancel", "all": true})).await.status, 202);
    let claimed = service.post("/v1/claim", r#"{"queues":["tenure.bulk"]}"#).await;
    assert_eq!(claimed.status, 422, "{claimed:?}");
    let claimed = service.post("/v1/claim", r#"{"queues":["*"]}"#).await;
    assert_eq!(claimed.json()["jobs"], json!([]), "{claimed:?}");
}

/// The program's own jobs are done where they are looked for: in another queue nobody would.
#[tokio::test]
async fn a_job_of_the_programs_own_is_not_moved() {
    let service = given().await;
    let id = bulk(&service, json!({"action": "retry", "filter": {"q": "state:failed"}})).await.id();
    let path = format!("/v1/jobs/{id}");
    let told = service.ask("PATCH", &path, &["if-match: *"], r#"{"queue":"other"}"#).await;
    assert_eq!(told.status.as_u16(), 409, "{told:?}");
    let told = service.ask("PATCH", &path, &["if-match: *"], r#"{"priority":7}"#).await;
    assert_eq!(told.status.as_u16(), 200, "{told:?}");
}
