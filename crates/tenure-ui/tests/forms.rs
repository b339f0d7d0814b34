//! Forms that a visitor without access sends slowly, or far too large.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::sync::Arc;
use std::time::Duration;

use tenure::{Chance, ManualClock, MemoryStore, Tenure};
use tenure_http::{Access, Options, Scope};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::{FORM, Site, token};

async fn guarded(clock: &ManualClock) -> Site {
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let mut options = Options::default();
    options.access = Access::Tokens;
    Site::on(Tenure::on(Arc::new(store), Chance::seeded(1)), options).await
}

/// Sends the head of a form of so many bytes, and reads what the server says to it.
async fn announced(site: &Site, path: &str, bytes: usize) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(site.at).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nsec-fetch-site: same-origin\r\n{FORM}expect: 100-continue\r\n\
         content-length: {bytes}\r\n\r\n",
        site.at
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut told, mut some) = (String::new(), [0; 4096]);
    while !told.contains("\r\n\r\n") {
        let read = stream.read(&mut some).await.unwrap();
        assert!(read > 0, "closed without a response: {told}");
        told.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    (stream, told)
}

#[tokio::test]
async fn a_sign_in_that_is_never_finished_is_closed_after_thirty_seconds() {
    let clock = ManualClock::new();
    let site = guarded(&clock).await;
    let (mut stream, told) = announced(&site, "/ui/sign-in", 4_000).await;
    assert!(told.starts_with("HTTP/1.1 100"), "{told}");
    stream.write_all(&[b'a'; 3_999]).await.unwrap();
    clock.advance(Duration::from_secs(29));
    let mut told = Vec::new();
    let early = tokio::time::timeout(Duration::from_millis(200), stream.read_to_end(&mut told)).await;
    assert!(early.is_err(), "{told:?}");
    clock.advance(Duration::from_secs(1));
    tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut told)).await.unwrap().unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("request-timeout"), "{told}");
}

#[tokio::test]
async fn forms_for_visitors_without_access_are_small() {
    let site = guarded(&ManualClock::new()).await;
    for path in ["/ui/sign-in", "/ui/sign-out", "/ui/settings"] {
        let told = site.act(path, "", &format!("token={}&theme=dark", site.token().await)).await;
        assert!(!told.starts_with("HTTP/1.1 413"), "{path}: {told}");
        let (mut stream, told) = announced(&site, path, 2_000_000).await;
        assert!(told.starts_with("HTTP/1.1 100"), "{path}: {told}");
        stream.write_all(&[b'a'; 10 * 1024]).await.unwrap();
        let mut told = Vec::new();
        tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut told)).await.unwrap().unwrap();
        assert!(told.starts_with(b"HTTP/1.1 413"), "{path}: {}", String::from_utf8_lossy(&told));
    }
}

/// All forms that change something. A visitor without access could make the server keep them.
const FORMS: [&str; 17] = [
    "/ui/views",
    "/ui/views/forget",
    "/ui/new-job",
    "/ui/new-schedule",
    "/ui/jobs/x/cancel",
    "/ui/jobs/x/reveal",
    "/ui/queues/x/pause",
    "/ui/schedules/x/pause",
    "/ui/apps/x/x/pause",
    "/ui/leases/x/break",
    "/ui/bulk/new",
    "/ui/bulk/x/cancel",
    "/ui/webhooks",
    "/ui/webhooks/x/test",
    "/ui/webhooks/x/deliveries/x/redeliver",
    "/ui/workers/x/quiet",
    "/ui/nowhere",
];

#[tokio::test]
async fn a_visitor_without_access_sends_only_small_forms() {
    let site = guarded(&ManualClock::new()).await;
    for path in FORMS {
        let (_stream, told) = announced(&site, path, 60_000).await;
        assert!(!told.starts_with("HTTP/1.1 100"), "{path}: {told}");
    }
    let page = site.get("/ui/sign-in").await;
    assert!(page.len() <= 8 * 1024, "more than a response may take without counting: {}", page.len());
}

#[tokio::test]
async fn a_large_form_is_read_only_from_a_visitor_with_access() {
    let site = guarded(&ManualClock::new()).await;
    for path in ["/ui/new-job", "/ui/new-schedule"] {
        let (_stream, told) = announced(&site, path, 900_000).await;
        assert!(told.starts_with("HTTP/1.1 303") && told.contains("/ui/sign-in"), "{path}: {told}");
    }
    let cookie = site.signed_in(&[Scope::Manage]).await;
    let page = site.ask("GET /ui/new-job", &cookie, "").await;
    let args = format!("%22{}%22", "%20".repeat(200 * 1024));
    let fields = format!("token={}&kind=k&queue=default&args={args}", token(&page));
    let told = site.act("/ui/new-job", &cookie, &fields).await;
    assert!(told.starts_with("HTTP/1.1 303"), "{}", &told[..told.len().min(2_000)]);
}
