//! Memory of the pages: values that a client has chosen, and clients that hold much already.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use axum::body::Body;
use axum::http::{Request, Response};
use serde_json::{Value, json};
use site::{ID, Site};
use tenure::Draft;
use tenure::apps::{HostOffers, Offer, Sort};
use tenure_http::Options;
use tower::ServiceExt;

const JSON: &str = "content-type: application/json\r\n";

/// A server with 16 MiB for the responses of all clients.
async fn small_site() -> Site {
    let mut options = Options::default();
    options.transfer_memory_mib = 16;
    Site::open(options).await
}

/// Enqueues jobs with args of 200 KiB.
async fn large_jobs(site: &Site, kind: &str, count: usize) {
    for _ in 0..count {
        let draft = Draft::raw(kind, &json!("x".repeat(200 * 1024)));
        site.tenure.enqueue_draft(draft.queue("apps")).await.unwrap();
    }
}

/// A list of so many large jobs, which counts until it is dropped.
async fn unread(site: &Site, jobs: usize) -> Response<Body> {
    let request = Request::get(format!("/v1/jobs?queue=apps&limit={jobs}")).body(Body::empty()).unwrap();
    let response = site.api.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

/// Enqueues a job whose attempt has logged lines of 4,000 bytes. Every thousandth line begins with `found`.
async fn logged(site: &Site, lines: usize) {
    let job = format!(r#"{{"id":"{ID}","kind":"echo","queue":"mail"}}"#);
    site.ask("POST /v1/jobs", &format!("{JSON}prefer: respond-async\r\n"), &job).await;
    let claim = r#"{"queues":["mail"],"name":"w","lease_seconds":600}"#;
    let claimed = site.ask("POST /v1/claim", JSON, claim).await;
    let claimed: Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let line =
        |at: usize| format!("{}{}", if at.is_multiple_of(1_000) { "found" } else { "" }, "x".repeat(4_000));
    for first in (0..lines).step_by(250) {
        let lines: Vec<String> = (first..lines.min(first + 250)).map(line).collect();
        let said = json!({ "token": claimed["jobs"][0]["token"], "first": first + 1, "lines": lines });
        let answer = site.ask(&format!("POST /v1/jobs/{ID}/logs"), JSON, &said.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
}

#[tokio::test]
async fn a_download_of_a_log_counts_the_text_that_waits_for_the_next_page() {
    let site = small_site().await;
    logged(&site, 990).await;
    large_jobs(&site, "apps.large", 50).await;
    let file = format!("/ui/jobs/{ID}/logs.txt?log=1");
    let held = (unread(&site, 50).await, unread(&site, 12).await);
    let cut = site.get(&file).await;
    assert!(cut.matches(&"x".repeat(4_000)).count() < 990, "{} bytes", cut.len());
    drop(held);
    assert_eq!(site.get(&file).await.matches(&"x".repeat(4_000)).count(), 990);
}

#[tokio::test]
async fn a_search_of_a_log_holds_only_the_lines_that_it_has_found() {
    let site = small_site().await;
    logged(&site, 5_000).await;
    let found = site.get(&format!("/ui/jobs/{ID}?find=found")).await;
    assert!(found.contains("5 of 5000 lines"), "{}", &found[..found.len().min(2_000)]);
}

#[tokio::test]
async fn a_change_that_is_done_is_reported_as_done_without_memory_for_its_answer() {
    let site = small_site().await;
    let token = site.token().await;
    large_jobs(&site, "apps.large", 50).await;
    let one = format!("{}0{}", "{\"\":".repeat(60), "}".repeat(60));
    let args = format!("[{}\"{}\"]", format!("{one},").repeat(24), "x".repeat(4_000));
    let job = format!(r#"{{"kind":"echo","delay_seconds":3600,"args":{args}}}"#);
    let answer = site.ask(&format!("PUT /v1/jobs/{ID}"), JSON, &job).await;
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    let _held = (unread(&site, 50).await, unread(&site, 39).await);
    let answer = site.act(&format!("/ui/jobs/{ID}/cancel"), "", &format!("token={token}")).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
}

#[tokio::test]
async fn an_app_shows_its_last_run_behind_a_page_of_large_jobs() {
    let site = Site::open(Options::default()).await;
    let offer = |name| Offer::new(Sort::Triggered, name, site.tenure.now());
    let apps = vec![offer("report"), offer("large")];
    let offers = HostOffers { folder: String::new(), host: "one".to_owned(), node: "app-1".to_owned(), apps };
    site.tenure.apps("apps").unwrap().offer(&offers).await.unwrap();
    let run = Draft::raw("apps.report", &json!({})).queue("apps");
    let run = site.tenure.enqueue_draft(run).await.unwrap();
    large_jobs(&site, "apps.large", 50).await;
    let page = site.get("/ui/apps").await;
    assert!(page.contains(&format!("/ui/jobs/{}", run.id())), "{page}");
}
