//! The audit log at a collector: each entry once, in order, across restarts and outages.

use std::time::Duration;

use serde_json::Value;
use tenure_http::{Collector, Options};

use crate::receiving::{Place, Receiver, Serving, settled, until};

async fn exporting(place: &Place, collector: &Receiver) -> Serving {
    let mut options = Options::default();
    options.audit_collector = Some(Collector::at(&collector.url.replace("/hook", "/v1/logs")).unwrap());
    place.serve_so(&[], options).await
}

async fn set(serving: &Serving, queue: &str) {
    let (status, told) = serving.ask("PUT", &format!("/v1/queues/{queue}"), r#"{"max_running":3}"#).await;
    assert!(status < 300, "{told}");
}

/// Returns the log records that the collector got, with those of refused requests.
fn records(collector: &Receiver) -> Vec<Value> {
    let of = |got: crate::receiving::Got| {
        assert_eq!((got.path.as_str(), got.header("content-type")), ("/v1/logs", "application/json"));
        got.json()["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone()
    };
    collector.got().into_iter().flat_map(of).collect()
}

/// Returns the paths of the entries that the collector got.
fn paths(collector: &Receiver) -> Vec<String> {
    let entry = |record: &Value| -> Value {
        serde_json::from_str(record["body"]["stringValue"].as_str().unwrap()).unwrap()
    };
    records(collector).iter().map(|record| entry(record)["path"].as_str().unwrap().to_owned()).collect()
}

fn of_queues(queues: &[&str]) -> Vec<String> {
    queues.iter().map(|queue| format!("/v1/queues/{queue}")).collect()
}

async fn metric(serving: &Serving, line: &str) -> bool {
    serving.ask_with("GET", "/metrics", &[], "").await.2.contains(&format!("\n{line}\n"))
}

#[tokio::test]
async fn a_restart_neither_loses_nor_repeats_an_entry() {
    let (place, collector) = (Place::new(), Receiver::new().await);
    let silent = place.serve_so(&[], Options::default()).await;
    set(&silent, "before").await;
    place.pass(Duration::from_secs(1)).await;
    let serving = exporting(&place, &collector).await;
    // The position is in the store before the first entry.
    settled().await;
    set(&serving, "a").await;
    set(&serving, "b").await;
    until(|| async { paths(&collector).len() >= 2 }).await;
    settled().await;
    drop(serving);
    settled().await;
    set(&silent, "meanwhile").await;
    let serving = exporting(&place, &collector).await;
    until(|| async { paths(&collector).len() >= 3 }).await;
    // Entries of other servers are found by looking.
    set(&silent, "other").await;
    place.pass(Duration::from_secs(6)).await;
    until(|| async { paths(&collector).len() >= 4 }).await;
    settled().await;
    assert_eq!(paths(&collector), of_queues(&["a", "b", "meanwhile", "other"]));
    let record = records(&collector).remove(0);
    assert_eq!((&record["eventName"], &record["severityText"]), (&"tenure.audit".into(), &"INFO".into()));
    assert!(metric(&serving, "tenure_audit_exported_total{outcome=\"sent\"} 2").await);
    assert!(metric(&serving, "tenure_audit_export_lag_seconds 0").await);
}

#[tokio::test]
async fn two_servers_send_each_entry_once() {
    let (place, collector) = (Place::new(), Receiver::new().await);
    let servers = [exporting(&place, &collector).await, exporting(&place, &collector).await];
    settled().await;
    let queues: Vec<String> = (0..40).map(|number| format!("q{number}")).collect();
    for (number, queue) in queues.iter().enumerate() {
        set(&servers[number % 2], queue).await;
    }
    place.pass(Duration::from_secs(20)).await;
    until(|| async { paths(&collector).len() >= queues.len() }).await;
    place.pass(Duration::from_secs(20)).await;
    let expected: Vec<&str> = queues.iter().map(String::as_str).collect();
    assert_eq!(paths(&collector), of_queues(&expected));
}

#[tokio::test]
async fn entries_wait_in_the_store_while_the_collector_is_down() {
    let (place, collector) = (Place::new(), Receiver::new().await);
    // Down, then without the right key.
    [503, 429, 401].into_iter().for_each(|status| collector.answer(status, &[], ""));
    let serving = exporting(&place, &collector).await;
    settled().await;
    set(&serving, "a").await;
    until(|| async { collector.got().len() == 1 }).await;
    settled().await;
    // Two entries more do not end the wait.
    set(&serving, "b").await;
    set(&serving, "c").await;
    settled().await;
    assert_eq!(collector.got().len(), 1);
    place.clock.advance(Duration::from_secs(1));
    until(|| async { collector.got().len() == 2 }).await;
    assert!(metric(&serving, "tenure_audit_export_lag_seconds 1").await);
    for _ in 0..3 {
        place.pass(Duration::from_secs(10)).await;
    }
    until(|| async { paths(&collector).len() >= 1 + 3 + 3 + 3 }).await;
    settled().await;
    assert_eq!(paths(&collector)[7..], of_queues(&["a", "b", "c"]));
    assert!(metric(&serving, "tenure_audit_export_failures_total 3").await);
    assert!(metric(&serving, "tenure_audit_exported_total{outcome=\"sent\"} 3").await);
    assert!(metric(&serving, "tenure_audit_exported_total{outcome=\"refused\"} 0").await);
}

#[tokio::test]
async fn one_entry_that_the_collector_refuses_holds_up_no_other() {
    let (place, collector) = (Place::new(), Receiver::new().await);
    let silent = place.serve_so(&[], Options::default()).await;
    let first = exporting(&place, &collector).await;
    settled().await;
    drop(first);
    settled().await;
    for queue in ["bad", "b", "c", "d"] {
        set(&silent, queue).await;
    }
    // Four, two, and the first alone.
    [400, 413, 422].into_iter().for_each(|status| collector.answer(status, &[], ""));
    collector.answer(200, &[], r#"{"partialSuccess":{"rejectedLogRecords":"1"}}"#);
    let serving = exporting(&place, &collector).await;
    until(|| async { paths(&collector).len() >= 4 + 2 + 1 + 3 }).await;
    settled().await;
    assert_eq!(paths(&collector)[7..], of_queues(&["b", "c", "d"]));
    assert!(metric(&serving, "tenure_audit_exported_total{outcome=\"refused\"} 2").await);
    assert!(metric(&serving, "tenure_audit_exported_total{outcome=\"sent\"} 2").await);
    assert!(metric(&serving, "tenure_audit_export_failures_total 0").await);
}
