//! What a job returned, how its attempts went, and what can be asked of it.

use std::time::Duration;

use axum::http::StatusCode;

use crate::asking::Service;

async fn star(service: &Service, body: &str) -> String {
    format!("/v1/jobs/{}", service.post("/v1/jobs", body).await.id())
}

const STAR: &str = r#"{"kind":"build_star","args":{"name":"Sol"}}"#;

#[tokio::test]
async fn the_result_comes_when_it_is_there() {
    let mut service = Service::new();
    let (made, fell) = (star(&service, STAR).await, star(&service, r#"{"kind":"fall"}"#).await);
    let gone = star(&service, r#"{"kind":"k"}"#).await;
    let early = service.get(&format!("{made}/result")).await;
    assert_eq!((early.status, early.text.as_str()), (StatusCode::ACCEPTED, ""));
    assert_eq!(early.header("retry-after"), "1");
    service.work().await;
    assert_eq!(
        service.post(&format!("{gone}/cancel"), r#"{"reason":"enough"}"#).await.status,
        StatusCode::OK
    );
    assert_eq!(service.get(&format!("{made}/result")).await.text, "7");
    let failed = service.get(&format!("{fell}/result")).await;
    assert_eq!(
        (failed.status, failed.json()["type"].as_str()),
        (StatusCode::CONFLICT, Some("urn:tenure:problem:job-failed"))
    );
    let told = service.get(&format!("{gone}/result")).await.json();
    assert!(
        told["type"] == "urn:tenure:problem:job-cancelled"
            && told["detail"].as_str().unwrap().contains("enough")
    );
}

#[tokio::test]
async fn attempts_and_lines_are_told_in_order() {
    let mut service = Service::new();
    let fell = star(&service, r#"{"kind":"fall"}"#).await;
    service.work().await;
    let attempts = service.get(&format!("{fell}/attempts")).await.json();
    assert_eq!(attempts["items"][0]["outcome"], "failed");
    assert_eq!(attempts["items"][0]["error"], "it fell");
    let logs = service.get(&format!("{fell}/logs")).await.json();
    assert!(logs["items"].as_array().unwrap().is_empty() && logs["next_after"].is_null());
    assert_eq!(service.get(&format!("{fell}/logs?after=x")).await.json()["field"], "after");
}

/// T136: a job that has failed can be done again by hand.
#[tokio::test]
async fn what_has_failed_can_be_done_again_and_what_has_not_ended_cannot() {
    let mut service = Service::new();
    let fell = star(&service, r#"{"kind":"fall"}"#).await;
    assert_eq!(service.post(&format!("{fell}/retry"), "").await.status, StatusCode::CONFLICT);
    service.work().await;
    let again = service.post(&format!("{fell}/retry"), "").await;
    assert_eq!((again.status, again.json()["state"].as_str()), (StatusCode::ACCEPTED, Some("queued")));
    let late = star(&service, r#"{"kind":"build_star","args":{"name":"Sol"},"delay_seconds":3600}"#).await;
    assert_eq!(service.get(&late).await.json()["state"], "scheduled");
    let now = service.post(&format!("{late}/run-now"), "{}").await;
    assert_eq!((now.status, now.json()["state"].as_str()), (StatusCode::ACCEPTED, Some("queued")));
    service.work().await;
    assert_eq!(service.post(&format!("{late}/cancel"), "").await.status, StatusCode::CONFLICT);
    assert_eq!(
        service.post(&format!("{late}/cancel"), r#"{"grace_seconds":-1}"#).await.json()["field"],
        "grace_seconds"
    );
    let nobody = service.tenure().new_id();
    assert_eq!(service.post(&format!("/v1/jobs/{nobody}/cancel"), "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn events_tell_of_each_change_and_end_with_the_job() {
    let mut service = Service::new();
    let made = star(&service, STAR).await;
    let (asked, path) = (service.asker(), format!("{made}/events"));
    let following = tokio::spawn(async move { asked.get(&path).await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    service.work().await;
    let told = following.await.unwrap();
    assert_eq!(told.header("content-type"), "text/event-stream");
    assert!(told.text.contains("event: job") && told.text.contains("event: end"), "{}", told.text);
    let last = told.text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap();
    let seen = format!("last-event-id: {last}");
    assert_eq!(
        service.ask("GET", &format!("{made}/events"), &[&seen], "").await.status,
        StatusCode::NO_CONTENT
    );
    // Whoever was cut off before the end is told it, from wherever he asks.
    let told = service
        .ask(
            "GET",
            &made.replace("/v1/jobs", "/queue"),
            &["accept: text/event-stream", "last-event-id: x"],
            "",
        )
        .await;
    assert!(told.text.contains("event: end") && !told.text.contains("event: job"), "{}", told.text);
}

#[tokio::test]
async fn whoever_would_follow_for_a_while_only_is_let_go_then() {
    let mut service = Service::new();
    let made = star(&service, STAR).await;
    let (asked, path) = (service.asker(), format!("{made}/events"));
    let following = tokio::spawn(async move { asked.ask("GET", &path, &["prefer: wait=5"], "").await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    service.advance(Duration::from_secs(5));
    let told = following.await.unwrap();
    assert!(told.text.contains("event: job") && !told.text.contains("event: end"), "{}", told.text);
}

#[tokio::test]
async fn a_job_that_waits_is_changed_as_it_was_looked_at() {
    let mut service = Service::new();
    let id = service.post("/v1/jobs", r#"{"kind":"k","delay_seconds":3600}"#).await.id();
    let path = format!("/v1/jobs/{id}");
    let tag = service.get(&path).await.header("etag").to_owned();
    let by = format!("If-Match: {tag}");
    let asker = service.asker();
    let patch = async |headers: &[&str], body: &str| asker.ask("PATCH", &path, headers, body).await;
    assert_eq!(patch(&[], r#"{"priority":7}"#).await.status, 428);
    let told = patch(&[&by], r#"{"priority":-7,"queue":"other","delay_seconds":60}"#).await;
    let job = told.json();
    assert_eq!(
        (told.status.as_u16(), &job["priority"], &job["queue"]),
        (200, &(-7).into(), &"other".into()),
        "{job}"
    );
    assert_eq!(patch(&[&by], r#"{"priority":7}"#).await.status, 412, "it has changed since");
    let body = r#"{"tags":["a","b"],"meta":{"x":"1","y":"2"},"max_attempts":2}"#;
    let job = patch(&["If-Match: *"], body).await.json();
    assert_eq!((&job["tags"][1], &job["max_attempts"]), (&"b".into(), &2.into()), "{job}");
    let job = patch(&["If-Match: *"], r#"{"meta":{"x":null,"z":"3"},"tags":[]}"#).await.json();
    assert_eq!(job["meta"], serde_json::json!({ "y": "2", "z": "3" }), "{job}");
    assert_eq!((&job["tags"], &job["max_attempts"]), (&serde_json::json!([]), &2.into()));
    for (body, status, field) in [
        (r#"{"priority":101}"#, 422, "priority"),
        (r#"{"queue":"tenure.bulk"}"#, 422, "queue"),
        (r#"{"tags":["a b"]}"#, 422, "tags"),
        (r#"{"max_attempts":0}"#, 422, "max_attempts"),
        (r#"{"meta":{"a":"\u0000"}}"#, 422, "meta"),
        (r#"{"run_at":"2026-01-01T00:00:00Z","delay_seconds":1}"#, 422, "delay_seconds"),
    ] {
        let told = patch(&["If-Match: *"], body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{body}");
    }
    assert_eq!(patch(&["If-Match: *"], r#"{"kind":"x"}"#).await.status, 400);
    service.advance(std::time::Duration::from_secs(61));
    let claimed = service.post("/v1/claim", r#"{"queues":["other"]}"#).await.json();
    assert_eq!(claimed["jobs"][0]["id"].as_str(), Some(id.as_str()), "it was due after a minute");
    assert_eq!(patch(&["If-Match: *"], r#"{"priority":1}"#).await.status, 409, "it runs");
    assert_eq!(
        service
            .ask("PATCH", "/v1/jobs/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10", &["If-Match: *"], "{}")
            .await
            .status,
        404,
        "its id is old, and no job ever had it"
    );
}
