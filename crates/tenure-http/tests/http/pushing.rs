//! Push endpoints: jobs are sent to who does them.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Chance, Faults, FaultyStore, ManualClock, MemoryStore, Tenure, WorkerCommand};
use tenure_http::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::receiving::{Place, Receiver, Serving, settled, until};

async fn serving(place: &Place) -> Serving {
    place.serve_only(&Network::loopback()).await
}

/// An endpoint for the queue `default`, with what else is said of it; its secret.
async fn endpoint(serving: &Serving, url: &str, more: Value) -> String {
    let mut ask = json!({ "name": "does", "url": url, "queues": ["default"] });
    more.as_object().unwrap().iter().for_each(|(name, value)| ask[name] = value.clone());
    let (status, told) = serving.ask("POST", "/v1/endpoints", &ask.to_string()).await;
    assert_eq!(status, 201, "{told}");
    told["secret"].as_str().unwrap().to_owned()
}

async fn submit(serving: &Serving, body: &str) -> String {
    let (status, told) = serving.ask("POST", "/v1/jobs", body).await;
    assert_eq!(status, 202, "{told}");
    told["id"].as_str().unwrap().to_owned()
}

async fn job(serving: &Serving, id: &str) -> Value {
    serving.ask("GET", &format!("/v1/jobs/{id}"), "").await.1
}

async fn until_state(serving: &Serving, id: &str, state: &str) -> Value {
    until(|| async { job(serving, id).await["state"] == state }).await;
    job(serving, id).await
}

/// Somebody who is asked and has not answered.
async fn asked(listener: &TcpListener) -> (TcpStream, String) {
    let accepted = tokio::time::timeout(Duration::from_secs(60), listener.accept()).await;
    let (mut stream, _) = accepted.expect("nobody was asked").unwrap();
    let mut asked = vec![0; 8192];
    let read = stream.read(&mut asked).await.unwrap();
    asked.truncate(read);
    (stream, String::from_utf8(asked).unwrap())
}

/// Whether whoever asked has hung up.
async fn hung_up(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_secs(60), async { stream.read(&mut [0; 8]).await }).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

async fn listening() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn a_job_is_sent_signed_and_what_is_answered_is_what_it_returns() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    let secret =
        endpoint(&serving, &receiver.url, json!({ "headers": { "authorization": "Bearer x" } })).await;
    receiver.answer(200, &[("location", "/stars/7")], r#"{"star":7}"#);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let body = json!({ "kind": "bill", "args": { "month": 5 }, "max_attempts": 3, "meta": { "traceparent": trace } });
    let id = submit(&serving, &body.to_string()).await;
    let done = until_state(&serving, &id, "succeeded").await;
    assert_eq!((&done["result"], &done["resource_location"]), (&json!({ "star": 7 }), &json!("/stars/7")));
    let got = receiver.has(1).await.remove(0);
    assert_eq!(got.signed_by(&secret), Some(0));
    assert_eq!(got.json(), json!({ "month": 5 }));
    for (name, value) in [
        ("webhook-id", id.as_str()),
        ("job-id", &id),
        ("job-kind", "bill"),
        ("job-queue", "default"),
        ("job-attempt", "1"),
        ("job-max-attempts", "3"),
        ("job-callback", &format!("http://{}/v1/jobs/{id}", serving.address)),
        ("authorization", "Bearer x"),
        ("traceparent", trace),
        ("content-type", "application/json"),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
    let (_, _, text) = serving.ask_with("GET", "/v1/endpoints/does", &[], "").await;
    assert!(text.contains("authorization") && !text.contains("Bearer") && !text.contains("whsec_"), "{text}");
    let workers = serving.ask("GET", "/v1/workers", "").await.1;
    assert_eq!(workers["items"][0]["name"], "endpoint does", "{workers}");
}

#[tokio::test]
async fn whoever_says_that_it_goes_on_tells_its_end_with_the_token() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    endpoint(&serving, &receiver.url, json!({ "timeout_seconds": 600 })).await;
    receiver.answer(202, &[], "");
    let id = submit(&serving, r#"{"kind":"bill"}"#).await;
    let got = receiver.has(1).await.remove(0);
    place.pass(Duration::from_secs(300)).await;
    assert_eq!(job(&serving, &id).await["state"], "running");
    let path = got.header("job-callback").split_once(&serving.address.to_string()).unwrap().1.to_owned();
    let body = json!({ "token": got.header("job-token"), "result": 7 }).to_string();
    assert_eq!(serving.ask("POST", &format!("{path}/complete"), &body).await.0, 200);
    assert_eq!(until_state(&serving, &id, "succeeded").await["result"], 7);
    receiver.has(1).await;
}

#[tokio::test]
async fn a_failed_attempt_is_tried_again_and_one_for_good_is_not() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    endpoint(&serving, &receiver.url, json!({})).await;
    receiver.answer(500, &[], "");
    receiver.answer(422, &[], "");
    let id = submit(&serving, r#"{"kind":"bill"}"#).await;
    receiver.has(1).await;
    until_state(&serving, &id, "scheduled").await;
    place.pass(Duration::from_secs(4)).await;
    let failed = until_state(&serving, &id, "failed").await;
    assert_eq!(failed["attempt"], 2);
    assert!(failed["error"]["detail"].as_str().unwrap().contains("422"), "{failed}");
    let got = receiver.has(2).await;
    assert_eq!((got[0].header("job-attempt"), got[1].header("job-attempt")), ("1", "2"));
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    assert_ne!(got[0].header("job-token"), got[1].header("job-token"));
}

#[tokio::test]
async fn whoever_asks_to_be_left_alone_is_and_no_attempt_is_spent() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    endpoint(&serving, &receiver.url, json!({})).await;
    receiver.answer(429, &[("retry-after", "60")], "");
    let id = submit(&serving, r#"{"kind":"bill","max_attempts":1}"#).await;
    receiver.has(1).await;
    place.pass(Duration::from_secs(50)).await;
    receiver.has(1).await;
    place.pass(Duration::from_secs(15)).await;
    assert_eq!(until_state(&serving, &id, "succeeded").await["attempt"], 1);
}

#[tokio::test]
async fn whoever_is_gone_is_sent_nothing_more_and_the_job_waits() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    endpoint(&serving, &receiver.url, json!({})).await;
    receiver.answer(410, &[], "");
    let id = submit(&serving, r#"{"kind":"bill","max_attempts":1}"#).await;
    receiver.has(1).await;
    until(|| async { serving.ask("GET", "/v1/endpoints/does", "").await.1["enabled"] == false }).await;
    place.pass(Duration::from_secs(10)).await;
    assert_eq!(job(&serving, &id).await["state"], "queued");
    receiver.has(1).await;
    assert_eq!(serving.ask("PATCH", "/v1/endpoints/does", r#"{"enabled":true}"#).await.0, 200);
    until_state(&serving, &id, "succeeded").await;
}

#[tokio::test]
async fn an_address_that_may_not_be_called_costs_no_job_an_attempt() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&[]).await;
    endpoint(&serving, "http://localhost/", json!({})).await;
    let id = submit(&serving, r#"{"kind":"bill","max_attempts":1}"#).await;
    until(|| async { serving.ask("GET", "/v1/endpoints/does", "").await.1["enabled"] == false }).await;
    let told = serving.ask("GET", "/v1/endpoints/does", "").await.1;
    let why = told["disabled_because"].as_str().unwrap();
    assert!(why.contains("--egress-allow"), "{told}");
    assert!(!why.contains("127.0.0.1") && !why.contains("::1"), "no resolved address: {told}");
    assert!(receiver.got().is_empty());
    place.pass(Duration::from_secs(5)).await;
    assert_eq!(job(&serving, &id).await["state"], "queued");
}

#[tokio::test]
async fn a_job_is_held_for_as_long_as_it_is_waited_for() {
    let (place, (listener, url)) = (Place::new(), listening().await);
    let serving = serving(&place).await;
    endpoint(&serving, &url, json!({ "timeout_seconds": 600 })).await;
    let id = submit(&serving, r#"{"kind":"bill"}"#).await;
    let (mut stream, _) = asked(&listener).await;
    for _ in 0..10 {
        place.pass(Duration::from_secs(15)).await;
    }
    let told = job(&serving, &id).await;
    assert_eq!((&told["state"], &told["attempt"]), (&json!("running"), &json!(1)));
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7").await.unwrap();
    assert_eq!(until_state(&serving, &id, "succeeded").await["result"], 7);
}

#[tokio::test]
async fn whoever_does_not_answer_in_time_has_failed_that_attempt() {
    let (place, (listener, url)) = (Place::new(), listening().await);
    let serving = serving(&place).await;
    endpoint(&serving, &url, json!({ "timeout_seconds": 10 })).await;
    let id = submit(&serving, r#"{"kind":"bill","max_attempts":1}"#).await;
    let (mut stream, _) = asked(&listener).await;
    place.pass(Duration::from_secs(11)).await;
    assert_eq!(until_state(&serving, &id, "failed").await["error"]["type"], "timed_out");
    assert!(hung_up(&mut stream).await);
}

#[tokio::test]
async fn whoever_does_a_job_that_is_cancelled_is_hung_up_on() {
    let (place, (listener, url)) = (Place::new(), listening().await);
    let serving = serving(&place).await;
    endpoint(&serving, &url, json!({ "timeout_seconds": 600 })).await;
    let id = submit(&serving, r#"{"kind":"bill"}"#).await;
    let (mut stream, _) = asked(&listener).await;
    assert_eq!(serving.ask("POST", &format!("/v1/jobs/{id}/cancel"), "{}").await.0, 202);
    assert!(hung_up(&mut stream).await);
    until_state(&serving, &id, "cancelled").await;
}

#[tokio::test]
async fn hints_about_others_renew_a_pushed_job_at_most_once_a_second() {
    let clock = ManualClock::new();
    let memory = MemoryStore::new(Arc::new(clock.clone()));
    let store = Arc::new(FaultyStore::new(Arc::new(memory), Faults::none(1)));
    let place = Place { clock, tenure: Tenure::on(store.clone(), Chance::seeded(7)) };
    let (serving, (listener, url)) = (serving(&place).await, listening().await);
    endpoint(&serving, &url, json!({ "timeout_seconds": 600 })).await;
    let id = submit(&serving, r#"{"kind":"bill"}"#).await;
    let (mut stream, _) = asked(&listener).await;
    settled().await;
    let (before, hints) = (store.tally().calls, 20);
    let other = place.tenure.remote().draw_worker();
    for _ in 0..hints {
        place.tenure.worker_commands().tell(other, WorkerCommand::Quiet).await.unwrap();
        settled().await;
    }
    // The hints are calls, too.
    let renewals = store.tally().calls - before - hints;
    assert!(renewals < hints / 2, "{renewals} renewals");
    // The job is asked to stop in the meantime, and hears it when the second is over.
    assert_eq!(serving.ask("POST", &format!("/v1/jobs/{id}/cancel"), "{}").await.0, 202);
    place.pass(Duration::from_secs(1)).await;
    assert!(hung_up(&mut stream).await);
}

#[tokio::test]
async fn a_server_that_ends_gives_back_what_it_waits_for() {
    let (place, (listener, url)) = (Place::new(), listening().await);
    let first = serving(&place).await;
    endpoint(&first, &url, json!({ "timeout_seconds": 600 })).await;
    let id = submit(&first, r#"{"kind":"bill","max_attempts":1}"#).await;
    let (mut stream, _) = asked(&listener).await;
    drop(first);
    settled().await;
    place.pass(Duration::from_secs(30)).await;
    assert!(hung_up(&mut stream).await);
    let second = serving(&place).await;
    let (mut stream, text) = asked(&listener).await;
    assert!(text.contains("job-attempt: 1"), "{text}");
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    until_state(&second, &id, "succeeded").await;
}

#[tokio::test]
async fn no_more_are_sent_at_once_than_there_are_slots() {
    let (place, (listener, url)) = (Place::new(), listening().await);
    let serving = serving(&place).await;
    endpoint(&serving, &url, json!({ "slots": 2, "kinds": ["bill"] })).await;
    submit(&serving, r#"{"kind":"mail"}"#).await;
    for _ in 0..3 {
        submit(&serving, r#"{"kind":"bill"}"#).await;
    }
    let (mut one, text) = asked(&listener).await;
    assert!(text.contains("job-kind: bill"), "{text}");
    let (_two, _) = asked(&listener).await;
    settled().await;
    let counts = serving.ask("GET", "/v1/jobs?state=running", "").await.1;
    assert_eq!(counts["items"].as_array().unwrap().len(), 2);
    one.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    let (_three, _) = asked(&listener).await;
    let left = serving.ask("GET", "/v1/jobs?state=queued", "").await.1;
    assert_eq!(left["items"][0]["kind"], "mail", "{left}");
}

#[tokio::test]
async fn two_servers_send_each_job_once() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let (first, _second) = (serving(&place).await, serving(&place).await);
    endpoint(&first, &receiver.url, json!({})).await;
    place.pass(Duration::from_secs(6)).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(submit(&first, r#"{"kind":"bill"}"#).await);
    }
    for id in &ids {
        until_state(&first, id, "succeeded").await;
    }
    receiver.has(20).await;
}

#[tokio::test]
async fn an_endpoint_is_tried_changed_and_removed() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    let old = endpoint(&serving, &receiver.url, json!({})).await;
    let again = json!({ "name": "does", "url": receiver.url, "queues": ["other"] }).to_string();
    assert_eq!(serving.ask("POST", "/v1/endpoints", &again).await.0, 409);
    let new = serving.ask("POST", "/v1/endpoints/does/rotate-secret", "").await.1["secret"].clone();
    settled().await;
    let (status, told) = serving.ask("POST", "/v1/endpoints/does/test", "").await;
    assert_eq!(status, 202, "{told}");
    let got = receiver.has(1).await.remove(0);
    assert_eq!((got.signed_by(new.as_str().unwrap()), got.signed_by(&old)), (Some(0), Some(1)));
    let changed = serving.ask("PATCH", "/v1/endpoints/does", r#"{"queues":["other"],"slots":3}"#).await.1;
    assert_eq!((&changed["queues"], &changed["slots"]), (&json!(["other"]), &json!(3)));
    assert_eq!(serving.ask("DELETE", "/v1/endpoints/does", "").await.0, 204);
    assert_eq!(serving.ask("GET", "/v1/endpoints/does", "").await.0, 404);
    submit(&serving, r#"{"kind":"bill","queue":"other"}"#).await;
    place.pass(Duration::from_secs(5)).await;
    receiver.has(1).await;
}

/// A test must not run a program, which only the routes for programs do.
#[tokio::test]
async fn a_test_of_an_endpoint_for_programs_makes_no_job() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    for (name, queue, kind, field) in
        [("one", "jobs", "apps.report", "kinds"), ("two", "apps", "bill", "queues")]
    {
        let ask =
            json!({ "name": name, "url": receiver.url, "queues": [queue], "kinds": [kind] }).to_string();
        assert_eq!(serving.ask("POST", "/v1/endpoints", &ask).await.0, 201);
        let (status, told) = serving.ask("POST", &format!("/v1/endpoints/{name}/test"), "").await;
        assert_eq!((status, &told["field"]), (422, &json!(field)), "{told}");
    }
    assert_eq!(serving.ask("GET", "/v1/jobs", "").await.1["items"], json!([]));
}

/// Its headers are never shown again, so a client that may change the URL must not read them at a server of its own.
#[tokio::test]
async fn an_endpoint_that_moves_to_another_origin_takes_no_headers_along() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = serving(&place).await;
    let headers = json!({ "headers": { "authorization": "Bearer canary" } });
    endpoint(&serving, "http://127.0.0.1:9/hook", headers).await;
    let patch = async |body: Value| serving.ask("PATCH", "/v1/endpoints/does", &body.to_string()).await;
    let moved = json!({ "url": receiver.url, "slots": 3 });
    let (status, told) = patch(moved).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("headers")), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("another origin"), "{told}");
    for other in ["http://localhost:9/hook", "http://127.0.0.1:10/hook", "https://127.0.0.1:9/hook"] {
        assert_eq!(patch(json!({ "url": other })).await.0, 422, "{other}");
    }
    let there = serving.ask("GET", "/v1/endpoints/does", "").await.1;
    assert_eq!((&there["url"], &there["slots"]), (&json!("http://127.0.0.1:9/hook"), &json!(10)), "{there}");
    let (status, told) = patch(json!({ "url": "http://127.0.0.1:9/other?a=b" })).await;
    assert_eq!((status, &told["header_names"]), (200, &json!(["authorization"])), "the origin is the same");
    let (status, told) = patch(json!({ "url": receiver.url, "headers": {} })).await;
    assert_eq!((status, &told["header_names"]), (200, &json!([])), "{told}");
    submit(&serving, r#"{"kind":"bill"}"#).await;
    let got = receiver.has(1).await.remove(0);
    assert!(!format!("{:?}", got.headers).contains("canary"), "{:?}", got.headers);
    // An endpoint without headers can move freely.
    assert_eq!(patch(json!({ "url": "http://127.0.0.1:9/hook" })).await.0, 200);
}

#[tokio::test]
async fn an_endpoint_that_makes_no_sense_is_refused_by_field() {
    let serving = serving(&Place::new()).await;
    for (field, value) in [
        ("queues", json!([])),
        ("queues", json!(["a", "a"])),
        ("queues", json!(["tenure.webhooks"])),
        ("kinds", json!(["a b"])),
        ("slots", json!(0)),
        ("slots", json!(1001)),
        ("timeout_seconds", json!(0.5)),
        ("timeout_seconds", json!(3601)),
        ("headers", json!({ "host": "a" })),
        ("headers", json!({ "Job-Token": "a" })),
        ("headers", json!({ "a b": "a" })),
        ("headers", json!({ "a": "a\r\nb: c" })),
        ("url", json!("http://10.0.0.1/")),
        ("secret", json!("whsec_c2hvcnQ=")),
        ("name", json!("a b")),
    ] {
        let mut ask = json!({ "name": "does", "url": "https://example.com/", "queues": ["default"] });
        ask[field] = value;
        let (status, told) = serving.ask("POST", "/v1/endpoints", &ask.to_string()).await;
        assert_eq!((status, told["field"].as_str()), (422, Some(field)), "{told}");
    }
}
