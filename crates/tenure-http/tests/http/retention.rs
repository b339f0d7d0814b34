//! For how long a job can be looked at after its end, and what is told of it then.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::Service;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn enqueued(service: &Service, more: Value) -> String {
    let mut job = json!({ "kind": "build_star", "args": { "name": "Sol" } });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.post("/v1/jobs", &job.to_string()).await.id()
}

/// Time goes by, and what is to be removed is.
async fn later(service: &mut Service, span: Duration) {
    service.advance(span);
    service.tenure().store().tend().await.unwrap();
}

/// What every way of asking for a job answers.
async fn told_everywhere(service: &Service, id: &str) -> Vec<StatusCode> {
    let mut told = Vec::new();
    for (method, path) in [
        ("GET", format!("/queue/{id}")),
        ("GET", format!("/queue/{id}?redirect=false")),
        ("GET", format!("/v1/jobs/{id}")),
        ("GET", format!("/v1/jobs/{id}/result")),
        ("GET", format!("/v1/jobs/{id}/attempts")),
        ("GET", format!("/v1/jobs/{id}/logs")),
        ("GET", format!("/v1/jobs/{id}/events")),
        ("GET", format!("/v1/jobs/{id}/explain")),
        ("POST", format!("/v1/jobs/{id}/cancel")),
        ("POST", format!("/v1/jobs/{id}/retry")),
        ("DELETE", format!("/v1/jobs/{id}")),
        ("DELETE", format!("/queue/{id}")),
    ] {
        told.push(service.ask(method, &path, &[], "").await.status);
    }
    told
}

async fn status(service: &Service, id: &str) -> u16 {
    service.get(&format!("/v1/jobs/{id}")).await.status.as_u16()
}

/// T143, T144: deleted by the server, it is not found, whatever is asked of it and however much later. Nothing is kept of
/// it, so it cannot be told from one that never was, and `410` would claim that it can.
#[tokio::test]
async fn a_job_is_there_until_its_retention_is_over_and_not_found_from_then_on() {
    let mut service = Service::new();
    let id = enqueued(&service, json!({})).await;
    service.work().await;
    let job = service.get(&format!("/v1/jobs/{id}")).await.json();
    assert!(job["expires_at"].as_str().unwrap() > job["finished_at"].as_str().unwrap(), "{job}");
    later(&mut service, DAY - MINUTE).await;
    assert_eq!(status(&service, &id).await, 200);
    assert_eq!(service.get(&format!("/queue/{id}")).await.status, StatusCode::SEE_OTHER);
    for span in [2 * MINUTE, 30 * DAY, 400 * DAY] {
        later(&mut service, span).await;
        let told = told_everywhere(&service, &id).await;
        assert!(told.iter().all(|status| *status == StatusCode::NOT_FOUND), "{told:?}");
    }
    let told = service.get(&format!("/queue/{id}")).await;
    assert_eq!(told.json()["type"], "urn:tenure:problem:not-found");
    // It is not to be remembered by anything between here and the client for longer than it is true.
    assert_eq!(told.header("cache-control"), "no-store");
}

/// T144: what has failed is kept for longer than what has succeeded.
#[tokio::test]
async fn a_job_that_has_failed_is_there_for_two_weeks() {
    let mut service = Service::new();
    let id = service.post("/v1/jobs", r#"{"kind":"fall"}"#).await.id();
    service.work().await;
    later(&mut service, 14 * DAY - MINUTE).await;
    assert_eq!(status(&service, &id).await, 200);
    later(&mut service, 2 * MINUTE).await;
    assert_eq!(status(&service, &id).await, 404);
}

/// T144: beyond 30 days, and beyond the milliseconds that 32 bits hold; and its own time counts from its end, not from when it
/// was made.
#[tokio::test]
async fn a_job_may_say_itself_for_how_long_it_is_kept() {
    let mut service = Service::new();
    let id = enqueued(&service, json!({ "retain_seconds": 60 * DAY.as_secs() })).await;
    // It waits for a month before it is done.
    later(&mut service, 30 * DAY).await;
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["state"], "queued");
    service.work().await;
    later(&mut service, 60 * DAY - MINUTE).await;
    assert_eq!(status(&service, &id).await, 200);
    later(&mut service, 2 * MINUTE).await;
    assert_eq!(status(&service, &id).await, 404);
}

/// Removed by a client, it is not found: the words of the article.
#[tokio::test]
async fn a_job_that_a_client_has_removed_is_not_found() {
    let mut service = Service::new();
    let id = enqueued(&service, json!({})).await;
    service.work().await;
    assert_eq!(service.ask("DELETE", &format!("/queue/{id}"), &[], "").await.status, StatusCode::NO_CONTENT);
    let told = told_everywhere(&service, &id).await;
    assert!(told.iter().all(|status| *status == StatusCode::NOT_FOUND), "{told:?}");
}

/// An old id of version 7 that no job ever had was told as one whose job is no longer kept.
#[tokio::test]
async fn an_id_that_never_existed_is_not_found_however_old_it_is() {
    let service = Service::new();
    for id in [
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "00000000-0000-0000-0000-000000000000",
        "01890000-0000-7000-8000-000000000001",
    ] {
        assert_eq!(status(&service, id).await, 404, "{id}");
    }
}

/// Whoever waits for a job, or follows it, while it is removed, is told so.
#[tokio::test]
async fn whoever_follows_a_job_that_is_removed_is_told_so() {
    let service = Service::new();
    let id = enqueued(&service, json!({})).await;
    let (asked, path) = (service.asker(), format!("/v1/jobs/{id}/events"));
    let following = tokio::spawn(async move { asked.get(&path).await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        service.ask("DELETE", &format!("/queue/{id}"), &[], "").await;
    }
    let told = following.await.unwrap().text;
    let ends = ["event: end", "event: gone"].iter().filter(|end| told.contains(**end)).count();
    assert_eq!(ends, 1, "{told}");
}
