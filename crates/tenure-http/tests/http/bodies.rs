//! What is wrong with a request is told by name and place.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use futures_util::{StreamExt, stream};
use tower::ServiceExt;

use crate::asking::Service;

#[tokio::test]
async fn a_bad_value_is_told_by_field_and_limit() {
    let service = Service::new();
    for (body, status, field) in [
        (r#"{"kind":""}"#, 422, "kind"),
        (r#"{"kind":"k","queue":"a b"}"#, 422, "queue"),
        (r#"{"kind":"k","priority":101}"#, 422, "priority"),
        (r#"{"kind":"k","run_at":"2026-03-29T02:30:00"}"#, 422, "run_at"),
        (r#"{"kind":"k","timeout_seconds":0}"#, 422, "timeout_seconds"),
        (r#"{"kind":"k","max_attempts":"many"}"#, 400, "max_attempts"),
        (r#"{"kind":"k","retry":{"wait":1}}"#, 400, "retry.wait"),
        (r#"{"kind":7}"#, 400, "kind"),
    ] {
        let told = service.post("/v1/jobs", body).await;
        assert_eq!(
            (told.status.as_u16(), told.json()["field"].as_str()),
            (status, Some(field)),
            "{body}: {told:?}"
        );
        assert_eq!(told.header("content-type"), "application/problem+json");
    }
    for body in ["", "{", "[]", "null", "{\"kind\":\"k\"}x", "\u{feff}{}"] {
        let told = service.ask("POST", "/v1/jobs", &["content-type: application/json"], body).await;
        assert_eq!(told.status, StatusCode::BAD_REQUEST, "{body:?}: {told:?}");
    }
}

#[tokio::test]
async fn what_is_too_large_or_too_deep_is_refused() {
    let service = Service::new();
    let large = format!(r#"{{"kind":"k","args":"{}"}}"#, "x".repeat(1024 * 1024));
    let told = service.post("/v1/jobs", &large).await;
    assert_eq!((told.status, told.json()["limit_bytes"].is_u64()), (StatusCode::PAYLOAD_TOO_LARGE, true));
    let args = format!(r#"{{"kind":"k","args":"{}"}}"#, "x".repeat(300 * 1024));
    assert_eq!(service.post("/v1/jobs", &args).await.json()["field"], "args");
    let deep = format!(r#"{{"kind":"k","args":{}{}}}"#, "[".repeat(65), "]".repeat(65));
    assert_eq!(service.post("/v1/jobs", &deep).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let deeper = format!(r#"{{"kind":"k","args":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(service.post("/v1/jobs", &deeper).await.status, StatusCode::BAD_REQUEST);
    let text = service.ask("POST", "/v1/jobs", &["content-type: text/plain"], "hello").await;
    assert_eq!(text.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// A body that has begun and does not go on, of as much as a batch may have.
fn unfinished() -> Body {
    let some = stream::iter((0..63).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 * 1024]))));
    Body::from_stream(some.chain(stream::pending()))
}

#[tokio::test]
async fn bodies_that_are_held_open_take_so_much_together_and_no_more() {
    let mut service = Service::new();
    let app = tenure_http::api(service.tenure());
    let batch = |body: Body| {
        let asked = Request::post("/v1/jobs/batch").header("content-type", "application/json").body(body);
        tokio::spawn(app.clone().oneshot(asked.unwrap()))
    };
    let mut held: Vec<_> = (0..80).map(|_| batch(unfinished())).collect();
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    assert!(held.iter().all(|one| !one.is_finished()));
    // What the refused give back is taken by those who go on, until all that are left have room.
    for _ in 0..20 {
        service.advance(Duration::from_secs(1));
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
    }
    let (refused, kept): (Vec<_>, Vec<_>) = held.drain(..).partition(|one| one.is_finished());
    assert!((15..=20).contains(&refused.len()), "{} of 80 were refused", refused.len());
    for one in refused {
        let told = one.await.unwrap().unwrap();
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(told.headers()["retry-after"], "5");
    }
    let asked = Request::post("/v1/jobs").header("content-type", "application/json");
    let told = app.clone().oneshot(asked.body(Body::from(r#"{"kind":"k"}"#)).unwrap()).await.unwrap();
    assert_eq!(told.status(), StatusCode::ACCEPTED, "what is small needs no room");
    kept.into_iter().for_each(|one| one.abort());
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    let large = format!(r#"{{"jobs":[{{"kind":"k","args":"{}"}}]}}"#, "x".repeat(100 * 1024));
    let told = batch(Body::from(large)).await.unwrap().unwrap();
    assert!(told.status().is_success(), "those that have gone take no room: {}", told.status());
}
