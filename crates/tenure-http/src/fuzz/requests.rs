//! Whole requests to all routes: bodies, query strings and headers that any client may send.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tenure::{Tenure, check_portable};
use tokio::runtime::Builder;
use tower::ServiceExt;

use super::{header_map, target};

/// Stands between two requests of one input.
const NEXT: &str = "\n---\n";
/// Requests of one input.
const REQUESTS: usize = 3;
/// Long polls and streams are ended after this time.
const WAITED: Duration = Duration::from_millis(100);
/// Largest response: the OpenAPI description.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// An answer, or the part of it that came in time.
struct Answer {
    status: StatusCode,
    kind: String,
    bytes: Vec<u8>,
    is_whole: bool,
}

/// Sends a request: a line with method and path, lines of headers, an empty line, and the body.
async fn ask(app: &Router, text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let (line, lines) = head.split_once('\n').unwrap_or((head, ""));
    let (method, path) = line.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned())).ok()?;
    *request.headers_mut() = header_map(lines.lines());
    for (name, value) in [("host", "localhost:8368"), ("content-type", "application/json")] {
        request.headers_mut().entry(name).or_insert(value.parse().expect("a constant"));
    }
    let response = app.clone().oneshot(request).await.expect("routes answer every request");
    let (parts, mut body) = response.into_parts();
    let kind =
        parts.headers.get("content-type").map_or("", |kind| kind.to_str().expect("a plain type")).to_owned();
    let (mut bytes, mut is_whole) = (Vec::new(), false);
    let clock = tenure::SystemClock;
    let read = async {
        while let Some(frame) = body.frame().await {
            bytes.extend_from_slice(frame.expect("a whole body").data_ref().map_or(&b""[..], |data| data));
            assert!(bytes.len() <= MOST_BYTES, "a body of more than {MOST_BYTES} bytes");
        }
        is_whole = true;
    };
    tokio::select! {
        () = read => {}
        () = tenure::Clock::sleep(&clock, WAITED) => {}
    }
    Some(Answer { status: parts.status, kind, bytes, is_whole })
}

/// Checks an answer, and returns a word for it.
fn check(answer: &Answer) -> String {
    let Answer { status, kind, bytes, is_whole } = answer;
    let text = String::from_utf8_lossy(bytes);
    assert_ne!(*status, StatusCode::INTERNAL_SERVER_ERROR, "{text}");
    let is_json =
        kind.starts_with("application/") && kind.split(';').next().is_some_and(|kind| kind.ends_with("json"));
    if !is_json || !is_whole || bytes.is_empty() {
        assert!(!status.is_client_error() || bytes.is_empty(), "{status} as {kind:?}: {text}");
        return format!("{status} {kind}");
    }
    let document: Value = serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
    // Clients in other languages read it.
    assert_eq!(check_portable("answer", bytes), Ok(()));
    if status.is_client_error() || status.is_server_error() {
        assert_eq!(kind, "application/problem+json");
        assert_eq!(document["status"], status.as_u16(), "{text}");
        assert!(document["detail"].as_str().is_some_and(|detail| detail.len() < 4_000), "{text}");
    }
    format!("{status} {}", document["detail"].as_str().unwrap_or(kind))
}

#[test]
fn every_request_gets_an_answer_that_clients_can_read() {
    let words = &[
        "GET ",
        "POST ",
        "PUT ",
        "PATCH ",
        "DELETE ",
        "/v1/jobs",
        "/v1/jobs/batch",
        "/v1/bulk",
        "/v1/schedules/nightly",
        "/v1/queues/mail",
        "/v1/kinds/resize",
        "/v1/leases/db",
        "/v1/claim",
        "/v1/settle",
        "/v1/tokens",
        "/v1/webhooks",
        "/v1/endpoints/a",
        "/v1/events",
        "/v1/calendar",
        "?q=",
        "?cursor=",
        "&limit=",
        "state:failed",
        "\nprefer: wait=1",
        "\nidempotency-key: \"7\"",
        "\nif-match: ",
        "\naccept: text/plain",
        "\naccept: text/event-stream",
        "\ncontent-type: application/x-ndjson",
        "\n\n",
        "\n---\n",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "true",
        "\"kind\":\"resize\"",
        "\"args\":{}",
        "\"jobs\":[",
        "\"queue\":\"mail\"",
        "\"spec\":{\"every_seconds\":900.0}",
        "\"job\":{\"kind\":\"report\"}",
        "\"filter\":{\"q\":\"",
        "\"retry\":",
        "\"due\":\"2026-03-29T02:30:00Z\"",
        "\"delay_seconds\":",
        "\"meta\":{\"a\":\"b\"}",
        "\"tags\":[\"a\"]",
        "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10",
    ];
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    target("request").words(words).check_text(|text| {
        runtime.block_on(async {
            let tenure = Tenure::open("memory:").await.unwrap();
            let app: Router = crate::api(&tenure);
            let mut outcome = String::new();
            for request in text.split(NEXT).take(REQUESTS) {
                let answer = tokio::select! {
                    answer = ask(&app, request) => answer,
                    () = tenure::Clock::sleep(&tenure::SystemClock, WAITED) => {
                        outcome += "waits ";
                        continue;
                    }
                };
                outcome += &answer.as_ref().map_or("no request".to_owned(), check);
            }
            outcome
        })
    });
}
