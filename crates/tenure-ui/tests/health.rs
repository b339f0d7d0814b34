//! The dashboard's picture of health: workers that are gone, queues that no worker serves, webhooks that fail; and how little
//! an open page costs.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use site::Site;
use tenure::{Chance, ManualClock, MemoryStore, Tenure};
use tenure_http::{Egress, Network, Options, deliveries};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const JSON: &str = "content-type: application/json\r\n";
const WORKER: &str = "01a20712-29aa-76d9-85bf-1bfa769b4511";

async fn clocked() -> (Site, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let tenure = Tenure::on(Arc::new(store), Chance::seeded(1));
    (Site::on(tenure, Options::default()).await, clock)
}

/// Sends JSON; answers the document.
async fn send(site: &Site, first: &str, body: &Value) -> Value {
    let answer = site.ask(first, JSON, &body.to_string()).await;
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
}

async fn claim(site: &Site, queue: &str) -> Value {
    let claim = json!({ "queues": [queue], "worker_id": WORKER, "name": "crusher", "lease_seconds": 60 });
    let claimed = send(site, "POST /v1/claim", &claim).await;
    assert!(site.get("/ui/workers").await.contains(WORKER));
    claimed["jobs"][0].clone()
}

#[tokio::test]
async fn a_dead_worker_stops_responding_and_is_then_kept_as_lost_with_its_jobs() {
    let (site, clock) = clocked().await;
    send(&site, "POST /v1/jobs", &json!({ "kind": "crunch", "queue": "crunch" })).await;
    let job = claim(&site, "crunch").await["id"].as_str().unwrap().to_owned();
    clock.advance(Duration::from_secs(15));
    let page = site.get(&format!("/ui/workers/{WORKER}")).await;
    assert!(page.contains("<dt>Last heartbeat</dt>") && page.contains(">15 s ago<"), "{page}");
    assert!(!page.contains("not responding") && !site.get("/ui/").await.contains("not responding"));
    // Before its time is over.
    clock.advance(Duration::from_secs(35));
    assert!(site.get("/ui/workers").await.contains("not responding"));
    assert!(site.get("/ui/").await.contains("worker crusher is not responding"));
    clock.advance(Duration::from_secs(45));
    site.tenure.store().tend().await.unwrap();
    let list = site.get("/ui/workers").await;
    assert!(list.contains("No workers online") && list.contains("Lost in the last 24 hours"), "{list}");
    assert!(list.contains("crusher") && list.contains(&format!("/ui/jobs/{job}")), "{list}");
    let page = site.get(&format!("/ui/workers/{WORKER}")).await;
    assert!(page.contains("Lost: the worker stopped") && page.contains(&job), "{page}");
    let overview = site.get("/ui/").await;
    assert!(overview.contains("worker crusher was lost"), "{overview}");
    assert!(overview.contains("value failed\">none<"), "a lost worker is not online: {overview}");
    clock.advance(Duration::from_secs(24 * 3600));
    assert!(!site.get("/ui/workers").await.contains("crusher"));
}

#[tokio::test]
async fn a_queue_with_due_jobs_and_no_worker_is_told_at_once() {
    let (site, _) = clocked().await;
    claim(&site, "mail").await;
    assert!(!site.get("/ui/").await.contains("has no worker"));
    send(&site, "POST /v1/jobs", &json!({ "kind": "crunch", "queue": "crunch" })).await;
    let page = site.get("/ui/").await;
    assert!(page.contains("queue crunch has no worker, 1 job due"), "{page}");
    site.tenure.queues().pause("crunch").await.unwrap();
    assert!(!site.get("/ui/").await.contains("has no worker"), "it is told to be paused");
}

#[tokio::test]
async fn as_many_workers_are_counted_as_are_listed() {
    let (site, _) = clocked().await;
    claim(&site, "mail").await;
    let id = site.tenure.remote().draw_worker();
    let kinds = Some(vec![tenure::Kind::new("tenure.webhooks").unwrap()]);
    let serves = tenure::Serves { queue: tenure::QueueName::default(), kinds, slots: 1, all_waiting: false };
    site.tenure.store().announce(id, "tenure serve", 1, &[serves], Duration::from_secs(60)).await.unwrap();
    assert!(site.get("/ui/").await.contains("Workers online</span><span class=\"value succeeded\">1<"));
    let page = site.get("/ui/workers").await;
    let (own, internal) = page.split_once("Internal workers of servers").unwrap();
    assert!(own.contains("crusher") && !own.contains("tenure serve"), "{page}");
    assert!(internal.contains("tenure serve"), "{page}");
}

#[tokio::test]
async fn a_failing_webhook_is_told_in_the_list_and_on_the_overview() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let mut options = Options::default();
    options.egress = Egress::to(&Network::loopback());
    let site = Site::on(tenure, options).await;
    let (_stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = deliveries(&site.tenure, &Network::loopback());
    tokio::spawn(async move { worker.run(stopped).await.unwrap() });
    let hook = json!({ "url": "http://127.0.0.1:9/pager", "types": ["job.failed"] });
    let id = send(&site, "POST /v1/webhooks", &hook).await["id"].as_str().unwrap().to_owned();
    assert!(!site.get("/ui/webhooks").await.contains("last delivery:"));
    send(&site, &format!("POST /v1/webhooks/{id}/test"), &json!({})).await;
    while !site.get(&format!("/v1/webhooks/{id}/deliveries")).await.contains("\"error\":\"") {}
    let list = site.get("/ui/webhooks").await;
    assert!(list.contains("last delivery:") && !list.contains("● enabled"), "{list}");
    let overview = site.get("/ui/").await;
    assert!(overview.contains("webhook http://127.0.0.1:9/pager is failing: "), "{overview}");
}

#[tokio::test]
async fn a_job_that_its_handler_failed_for_good_says_that_it_is_not_retried() {
    let site = Site::open(Options::default()).await;
    for retryable in [false, true] {
        send(&site, "POST /v1/jobs", &json!({ "kind": "charge", "queue": "mail", "max_attempts": 4 })).await;
        let job = claim(&site, "mail").await;
        let id = job["id"].as_str().unwrap();
        let error = json!({ "type": "declined", "detail": "card declined" });
        let fail = json!({ "token": job["token"], "error": error, "retryable": retryable });
        send(&site, &format!("POST /v1/jobs/{id}/fail"), &fail).await;
        let page = site.get(&format!("/ui/jobs/{id}")).await;
        let says = page.contains("It is not retried, although 3 attempts were left: the error is final.");
        assert_eq!(says, !retryable, "{page}");
    }
}

#[tokio::test]
async fn a_lease_form_with_another_name_keeps_the_reason_and_says_what_was_expected() {
    let site = Site::open(Options::default()).await;
    send(&site, "POST /v1/leases/month-end/acquire", &json!({ "owner": "me", "ttl_seconds": 600 })).await;
    let fields = format!("token={}&typed=wrong&reason=host+is+gone", site.token().await);
    let answer = site.act("/ui/leases/month-end/break", "", &fields).await;
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    assert!(answer.contains("Expected the name <code>month-end</code>, not <code>wrong</code>"), "{answer}");
    assert!(answer.contains("name=\"reason\" autocomplete=\"off\" value=\"host is gone\""), "{answer}");
    assert!(answer.contains("<dt>Holder</dt><dd>me</dd>"), "{answer}");
}

#[tokio::test]
async fn errors_are_grouped_over_many_jobs_and_each_group_is_found() {
    let site = Site::open(Options::default()).await;
    let jobs: Vec<Value> = (0..130).map(|_| json!({ "kind": "load", "max_attempts": 1 })).collect();
    send(&site, "POST /v1/jobs/batch", &json!({ "jobs": jobs })).await;
    let claimed = send(&site, "POST /v1/claim", &json!({ "limit": 130 })).await;
    let items: Vec<Value> = claimed["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(at, job)| {
            let error = json!({ "type": "load", "detail": format!("row {at}: no such column") });
            json!({ "job_id": job["id"], "token": job["token"], "outcome": "fail", "error": error })
        })
        .collect();
    send(&site, "POST /v1/settle", &json!({ "items": items })).await;
    let page = site.get("/ui/kinds/load").await;
    assert!(
        page.contains("Errors of all failed jobs") && page.contains("<td class=\"number\">130</td>"),
        "{page}"
    );
    let (_, to) = page.split_once("<td><a href=\"/ui/jobs?q=").unwrap();
    assert!(to.split_once('"').unwrap().0.contains("no%20such%20column"), "{page}");
}

/// The answer as it is sent: its head, and its body.
async fn raw(site: &Site, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(site.at).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n", site.at);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
}

#[tokio::test]
async fn pages_are_compressed_unless_another_site_asks() {
    let site = Site::open(Options::default()).await;
    let whole = site.get("/ui/").await;
    let (head, body) = raw(&site, "/ui/", "accept-encoding: br, gzip\r\n").await;
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    let mut page = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
    assert!(body.len() * 2 < whole.len(), "{} of {}", body.len(), whole.len());
    // The length of a page in which another site has chosen a part would tell of the rest.
    let foreign = "accept-encoding: gzip\r\nsec-fetch-site: cross-site\r\n";
    assert!(!raw(&site, "/ui/", foreign).await.0.contains("content-encoding"));
}

#[tokio::test]
async fn an_unchanged_page_is_not_sent_again() {
    let (site, clock) = clocked().await;
    let known = |head: &str| {
        let (_, tag) = head.split_once("etag: ").unwrap_or_else(|| panic!("{head}"));
        format!("if-none-match: {}\r\n", tag.split_once("\r\n").map_or(tag, |(tag, _)| tag))
    };
    claim(&site, "mail").await;
    let known = known(&raw(&site, "/ui/workers", "").await.0);
    clock.advance(Duration::from_secs(5));
    let (head, body) = raw(&site, "/ui/workers", &known).await;
    assert!(head.starts_with("HTTP/1.1 304") && body.is_empty(), "{head}");
    assert!(head.contains("server-timing"), "a page learns how often it may ask: {head}");
    clock.advance(Duration::from_secs(60));
    assert!(raw(&site, "/ui/workers", &known).await.0.starts_with("HTTP/1.1 200"), "it responds no more");
}
