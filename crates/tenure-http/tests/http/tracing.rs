//! What jobs go through is told to a collector, and nothing waits for it.

use std::time::Duration;

use serde_json::{Value, json};
use tenure::Worker;
use tenure_http::{Options, Traces};

use crate::receiving::{Place, Receiver, Serving};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn traced(place: &Place, change: impl FnOnce(&mut Traces)) -> (Receiver, Serving) {
    let collector = Receiver::new().await;
    let mut traces = Traces::to(&collector.url.replace("/hook", "/v1/traces")).unwrap();
    change(&mut traces);
    let mut options = Options::default();
    options.traces = Some(traces);
    let serving = place.serve_so(&[], options).await;
    (collector, serving)
}

/// The spans that were told, with the resource of each.
fn spans(collector: &Receiver) -> Vec<Value> {
    let each = |got: &crate::receiving::Got| {
        assert_eq!((got.path.as_str(), got.header("content-type")), ("/v1/traces", "application/json"));
        let spans = got.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        spans.into_iter()
    };
    collector.got().iter().flat_map(each).collect()
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}: {spans:?}"))
}

fn said(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == name);
    let value = &found.unwrap_or_else(|| panic!("no {name}: {span}"))["value"];
    value.get("stringValue").or(value.get("intValue")).unwrap().clone()
}

/// Before, the error of a job left an encrypted store in plain text.
#[tokio::test]
async fn a_trace_of_an_encrypted_store_does_not_contain_the_error() {
    let place = Place::encrypted("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let (collector, serving) = traced(&place, |_| {}).await;
    serving.ask("POST", "/v1/jobs", r#"{"kind":"pay","queue":"post"}"#).await;
    let (_, claimed) = serving.ask("POST", "/v1/claim", r#"{"queues":["post"]}"#).await;
    let granted = &claimed["jobs"][0];
    let fail = json!({ "token": granted["token"], "error": { "detail": "card 4111 declined" } }).to_string();
    let path = format!("/v1/jobs/{}/fail", granted["id"].as_str().unwrap());
    assert_eq!(serving.ask("POST", &path, &fail).await.0, 200);
    place.pass(Duration::from_secs(3)).await;
    let spans = spans(&collector);
    assert_eq!(named(&spans, "process post")["status"], json!({ "code": 2, "message": "(encrypted)" }));
    assert!(!json!(spans).to_string().contains("4111"), "{spans:?}");
}

#[tokio::test]
async fn one_trace_leads_from_the_request_to_the_end_of_the_attempt() {
    let place = Place::new();
    let (collector, serving) = traced(&place, |traces| {
        traces.collector.service = "jobs".to_owned();
        traces.collector.headers = vec![("x-key".to_owned(), "secret".to_owned())];
    })
    .await;
    let parent = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01");
    let (status, _, job) =
        serving.ask_with("POST", "/v1/jobs", &[&parent], r#"{"kind":"mail","queue":"post"}"#).await;
    let job: Value = serde_json::from_str(&job).unwrap();
    assert_eq!(status, 202);
    place.pass(Duration::from_secs(2)).await;
    let (_, claimed) = serving.ask("POST", "/v1/claim", r#"{"queues":["post"]}"#).await;
    let granted = &claimed["jobs"][0];
    place.pass(Duration::from_secs(3)).await;
    let fail = json!({ "token": granted["token"], "error": { "detail": "no such address" } }).to_string();
    let path = format!("/v1/jobs/{}/fail", granted["id"].as_str().unwrap());
    assert_eq!(serving.ask("POST", &path, &fail).await.0, 200);
    place.pass(Duration::from_secs(3)).await;
    let spans = spans(&collector);
    let (send, receive) = (named(&spans, "send post"), named(&spans, "receive post"));
    let (process, settle) = (named(&spans, "process post"), named(&spans, "settle post"));
    assert_eq!((&send["traceId"], &send["parentSpanId"]), (&json!(TRACE), &json!("00f067aa0ba902b7")));
    assert_eq!((&process["traceId"], &process["parentSpanId"]), (&json!(TRACE), &send["spanId"]));
    assert_eq!((&settle["traceId"], &settle["parentSpanId"]), (&json!(TRACE), &process["spanId"]));
    assert_eq!([&send["kind"], &receive["kind"], &process["kind"], &settle["kind"]], [4, 3, 5, 3]);
    assert_eq!(
        receive["links"],
        json!([{ "traceId": TRACE, "spanId": process["spanId"] }]),
        "a claim leads to what it was granted"
    );
    // Who enqueued and who works are told where they are.
    let of = |span: &Value| format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap());
    assert_eq!((&job["traceparent"], &granted["traceparent"]), (&json!(of(send)), &json!(of(process))));
    assert_eq!(said(send, "messaging.system"), "tenure");
    assert_eq!(said(send, "messaging.message.id"), job["id"]);
    assert_eq!(
        (said(process, "tenure.attempt"), said(process, "tenure.outcome")),
        (json!("1"), json!("retried"))
    );
    assert_eq!(said(settle, "messaging.operation.name"), "nack");
    assert_eq!(process["status"], json!({ "code": 2, "message": "no such address" }));
    let nanos = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<i128>().unwrap();
    let took = nanos(process, "endTimeUnixNano") - nanos(process, "startTimeUnixNano");
    assert_eq!(took, 3_000_000_000);
    let got = collector.got().remove(0);
    assert_eq!(got.header("x-key"), "secret");
    let resource = &got.json()["resourceSpans"][0]["resource"];
    assert_eq!(
        resource["attributes"][0],
        json!({ "key": "service.name", "value": { "stringValue": "jobs" } })
    );
}

#[tokio::test]
async fn a_trace_that_is_not_told_elsewhere_is_not_told_here_and_goes_on_all_the_same() {
    let place = Place::new();
    let (collector, serving) = traced(&place, |_| {}).await;
    let parent = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-00");
    let (_, _, job) = serving.ask_with("POST", "/v1/jobs", &[&parent], r#"{"kind":"k"}"#).await;
    assert!(job.contains(&format!("00-{TRACE}-")), "{job}");
    let body = r#"{"jobs":[{"kind":"k"},{"kind":"k"}]}"#;
    assert_eq!(serving.ask("POST", "/v1/jobs/batch", body).await.0, 202);
    place.pass(Duration::from_secs(3)).await;
    let spans = spans(&collector);
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(said(&spans[0], "messaging.batch.message_count"), "2");
}

#[tokio::test]
async fn a_collector_that_takes_nothing_keeps_nobody_waiting_and_what_is_left_out_is_counted() {
    let place = Place::new();
    let (collector, serving) = traced(&place, |_| {}).await;
    for _ in 0..4 {
        collector.answer(503, &[], "");
    }
    collector.answer(400, &[], "");
    for _ in 0..3 {
        assert_eq!(serving.ask("POST", "/v1/jobs", r#"{"kind":"k"}"#).await.0, 202);
    }
    for _ in 0..5 {
        place.pass(Duration::from_secs(5)).await;
    }
    assert_eq!(serving.ask("POST", "/v1/jobs", r#"{"kind":"k"}"#).await.0, 202);
    place.pass(Duration::from_secs(5)).await;
    assert_eq!(serving.ask("POST", "/v1/jobs", r#"{"kind":"k"}"#).await.0, 202);
    place.pass(Duration::from_secs(5)).await;
    let (_, _, text) = serving.ask_with("GET", "/metrics", &[], "").await;
    assert!(text.contains(r#"tenure_spans_total{outcome="dropped"} 4"#), "{text}");
    assert!(text.contains(r#"tenure_spans_total{outcome="sent"} 1"#), "{text}");
    assert!(text.contains("\nhttp_server_active_requests 1\n"), "whoever asks for them is counted: {text}");
}

/// Whoever fires it, and whoever runs the job, finds the same trace.
#[tokio::test]
async fn the_trace_of_a_timers_job_begins_where_it_was_fired() {
    let place = Place::new();
    let (collector, serving) = traced(&place, |_| {}).await;
    let set = r#"{"spec":{"cron":"*/1 * * * *"},"job":{"kind":"report","queue":"reports"}}"#;
    let (status, told) = serving.ask("PUT", "/v1/schedules/minutely", set).await;
    assert!((200..300).contains(&status), "{told}");
    let worker = Worker::new(&place.tenure, ()).only_timers().keeper_on_runtime();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move { worker.run(stopped).await });
    place.pass(Duration::from_secs(70)).await;
    let (_, claimed) = serving.ask("POST", "/v1/claim", r#"{"queues":["reports"]}"#).await;
    let granted = &claimed["jobs"][0];
    let path = format!("/v1/jobs/{}/complete", granted["id"].as_str().unwrap());
    let done = json!({ "token": granted["token"] }).to_string();
    assert_eq!(serving.ask("POST", &path, &done).await.0, 200);
    place.pass(Duration::from_secs(3)).await;
    let spans = spans(&collector);
    let (fire, process) = (named(&spans, "fire minutely"), named(&spans, "process reports"));
    assert_eq!((&fire["kind"], &fire["parentSpanId"]), (&json!(1), &Value::Null));
    assert_eq!((&process["traceId"], &process["parentSpanId"]), (&fire["traceId"], &fire["spanId"]));
    assert!(granted["traceparent"].as_str().unwrap().contains(fire["traceId"].as_str().unwrap()));
    assert_eq!((said(fire, "faas.trigger"), said(fire, "faas.cron")), (json!("timer"), json!("*/1 * * * *")));
    assert_eq!(
        (said(fire, "messaging.message.id"), said(fire, "tenure.kind")),
        (granted["id"].clone(), json!("report"))
    );
    let time: tenure::Timestamp = said(fire, "faas.time").as_str().unwrap().parse().unwrap();
    assert_eq!(time.as_micros() % 60_000_000, 0, "the slot, not when it was decided");
    drop(stop);
}
