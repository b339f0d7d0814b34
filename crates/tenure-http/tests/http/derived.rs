//! IDs that the server derives: clients can compute them, and gain nothing by it.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tenure::{Draft, JobId, Name, Origin, Timestamp};
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

use crate::asking::{Asker, Service};
use crate::receiving::{Place, Receiver, settled, until};
use crate::rights::token;

const EACH_MINUTE: &str =
    r#"{"spec":{"every_seconds":60},"job":{"kind":"backup","args":{"db":"all"},"queue":"backups"}}"#;

/// A schedule in a queue of others, and the ID of its next job.
async fn scheduled(service: &Service) -> JobId {
    let told = service.ask("PUT", "/v1/schedules/backup", &[], EACH_MINUTE).await;
    assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
    let next: Timestamp = told.json()["next_run_at"].as_str().unwrap().parse().unwrap();
    JobId::of_slot(&Name::new("timer", "backup").unwrap(), next, Origin::Schedule)
}

fn delivery_of(webhook: &str, event: &str) -> JobId {
    let digest = Sha256::digest(format!("tenure delivery\0{webhook}\0{event}"));
    JobId::derived(std::array::from_fn(|at| digest[at]))
}

/// The run of a schedule whose ID a client took would have been the client's job.
#[tokio::test]
async fn a_client_takes_no_id_of_a_scheduled_run() {
    let mut service = Service::new();
    let id = scheduled(&service).await;
    let asker = service.guarded();
    let reach = Reach::new(&["mail".to_owned()], &[]).unwrap();
    let new = NewAccessToken {
        name: "mailer".to_owned(),
        scopes: vec![Scope::Enqueue],
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let header =
        format!("authorization: Bearer {}", Tokens::of(service.tenure()).create(new).await.unwrap().1);
    let job = json!({ "kind": "nothing", "queue": "mail" });
    let with_id = json!({ "kind": "nothing", "queue": "mail", "id": id.to_string() });
    let told = json!({ "kind": "nothing", "queue": "mail", "id": id.to_string(),
        "callback": { "url": "https://example.com/" } });
    let (path, batch) = (format!("/v1/jobs/{id}"), |each: &Value| json!({ "jobs": [each] }));
    for (method, path, body, field) in [
        ("PUT", path.as_str(), &job, "id"),
        ("PUT", path.as_str(), &with_id, "id"),
        ("POST", "/v1/jobs", &with_id, "id"),
        ("POST", "/v1/jobs", &told, "id"),
        ("POST", "/v1/jobs/batch", &batch(&with_id), "jobs[0].id"),
    ] {
        for key in [None, Some("idempotency-key: one")] {
            let headers: Vec<&str> = [header.as_str()].into_iter().chain(key).collect();
            let told = asker.ask(method, path, &headers, &body.to_string()).await;
            assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{method} {path} {body}: {told:?}");
            assert_eq!(told.json()["field"], field, "{told:?}");
            assert!(told.text.contains("version 8 is reserved"), "{told:?}");
        }
    }
    let each = json!({ "atomic": false, "jobs": [with_id, job] }).to_string();
    let told = asker.ask("POST", "/v1/jobs/batch", &[&header], &each).await.json();
    assert_eq!(
        (&told["items"][0]["status"], &told["items"][1]["status"]),
        (&json!(422), &json!(202)),
        "{told}"
    );
    // Nor do those that may ask for runs.
    let run = json!({ "id": id.to_string() }).to_string();
    for path in ["/v1/schedules/backup/trigger", "/v1/apps/triggered/report/run"] {
        let told = service.post(path, &run).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("id")), "{told:?}");
    }
    service.advance(Duration::from_secs(61));
    service.work().await;
    let job = service.get(&format!("/v1/jobs/{id}")).await.json();
    assert_eq!((&job["kind"], &job["queue"]), (&json!("backup"), &json!("backups")), "{job}");
    let run = service.get("/v1/schedules/backup/runs").await.json()["items"][0].clone();
    assert_eq!((&run["outcome"], &run["job_id"]), (&json!("ran"), &json!(id.to_string())), "{run}");
}

/// A token that may only enqueue reaches the jobs of its own name. A computed ID gives no access.
#[tokio::test]
async fn a_token_that_only_enqueues_does_not_reach_jobs_by_ids_that_it_computed() {
    let mut service = Service::new();
    let id = scheduled(&service).await;
    service.advance(Duration::from_secs(61));
    service.work().await;
    let asker = service.guarded();
    let status = async |scopes: &[Scope], method: &str, id: &str, suffix: &str| {
        let header = format!("authorization: Bearer {}", token(&service, scopes).await);
        let body = if method == "POST" { "{}" } else { "" };
        asker.ask(method, &format!("/v1/jobs/{id}{suffix}"), &[&header], body).await.status.as_u16()
    };
    let id = id.to_string();
    for (method, suffix) in [
        ("GET", ""),
        ("GET", "/result"),
        ("GET", "/attempts"),
        ("GET", "/attempts/1"),
        ("GET", "/logs"),
        ("GET", "/explain"),
        ("GET", "/events"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("POST", "/run-now"),
        ("DELETE", ""),
    ] {
        let told = status(&[Scope::Enqueue], method, &id, suffix).await;
        assert!(matches!(told, 403 | 404), "{method} {suffix}: {told}");
    }
    for scopes in [&[Scope::Read][..], &[Scope::Manage], &[Scope::Admin]] {
        assert_eq!(status(scopes, "GET", &id, "").await, 200, "{scopes:?}");
    }
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["state"], "queued");
}

#[tokio::test]
async fn a_client_takes_no_id_of_a_delivery() {
    let place = Place::new();
    let delivery = delivery_of("oncall", "slot.1767225600000000.schedule.backup");
    let told =
        Asker::on(&place.tenure).ask("PUT", &format!("/v1/jobs/{delivery}"), &[], r#"{"kind":"k"}"#).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("id")), "{told:?}");
}

/// A delivery that could not be enqueued held up all webhooks.
#[tokio::test]
async fn a_delivery_whose_id_is_taken_is_skipped_and_holds_up_no_other() {
    let (place, mine, other) = (Place::new(), Receiver::new().await, Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, _) = serving.webhook(&mine.url, &["job.*"]).await;
    serving.webhook(&other.url, &["job.*"]).await;
    settled().await;
    let job = place.tenure.enqueue_draft(Draft::raw("bill", &Value::Null)).await.unwrap().id();
    let event = format!("job.{job}.0.{}", place.tenure.now().as_micros());
    // A client could do that before derived IDs were refused.
    let foreign = Draft::raw("nothing", &Value::Null).queue("q").derived_id(delivery_of(&webhook, &event));
    place.tenure.enqueue_draft(foreign).await.unwrap();
    place.tenure.jobs().cancel(job, Duration::from_secs(1), "not wanted").await.unwrap();
    let got = other.has(1).await;
    assert_eq!(got[0].json()["id"], event, "the taken ID was that of this event");
    let path = format!("/v1/webhooks/{webhook}");
    until(|| async { serving.ask("GET", &path, "").await.1["last_skipped_at"].is_string() }).await;
    let told = serving.ask("GET", &path, "").await.1;
    assert_eq!(told["last_skipped_at"], json!(place.tenure.now().to_string()), "{told}");
    let why = told["last_skipped_because"].as_str().unwrap();
    assert!(why.contains(&event) && told["enabled"] == true, "{told}");
    assert!(mine.got().is_empty());
    let next = place.ended("bill").await;
    assert_eq!(mine.has(1).await[0].json()["subject"], next);
    other.has(2).await;
}
