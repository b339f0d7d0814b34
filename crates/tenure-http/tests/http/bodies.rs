//! What is wrong with a request is told by name and place.

use axum::http::StatusCode;

use crate::asking::Service;

#[tokio::test]
async fn a_bad_value_is_told_by_field_and_limit() {
    let service = Service::new();
    for (body, status, field) in [
        (r#"{"kind":""}"#, 422, "kind"),
        (r#"{"kind":"k","queue":"a b"}"#, 422, "queue"),
        (r#"{"kind":"k","priority":101}"#, 422, "priority"),
        (r#"{"kind":"k","run_at":"2026-03-29T02:30:00"}"#, 422, "run_at"),
        (r#"{"kind":"k","timeout_seconds":0}"#, 422, "timeout"),
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
