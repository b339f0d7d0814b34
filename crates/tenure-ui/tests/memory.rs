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
    let line =
        |at: usize| format!("{}{}", if at.is_multiple_of(1_000) { "found" } else { "" }, "x".repeat(4_000));
    logged_as(site, lines, line).await;
}

/// Enqueues a job whose attempt has logged these lines.
async fn logged_as(site: &Site, lines: usize, line: impl Fn(usize) -> String) {
    let job = format!(r#"{{"id":"{ID}","kind":"echo","queue":"mail"}}"#);
    site.ask("POST /v1/jobs", &format!("{JSON}prefer: respond-async\r\n"), &job).await;
    let claim = r#"{"queues":["mail"],"name":"w","lease_seconds":600}"#;
    let claimed = site.ask("POST /v1/claim", JSON, claim).await;
    let claimed: Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    for first in (0..lines).step_by(100) {
        let lines: Vec<String> = (first..lines.min(first + 100)).map(&line).collect();
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

/// The largest page of a log, with the rest of the page.
const LARGEST_PAGE: usize = (2 << 20) + 64 * 1024;

/// Follows the links from the first line of a log to the last. Returns the number of lines and of pages.
async fn read_all(site: &Site, query: &str) -> (usize, usize) {
    let (mut to, mut lines, mut pages) = (Some(format!("/ui/jobs/{ID}?log=1{query}&lines=all")), 0, 0);
    while let Some(path) = to {
        let page = site.get(&path).await;
        assert!(
            page.starts_with("HTTP/1.1 200") && page.len() < LARGEST_PAGE,
            "{path}: {} bytes",
            page.len()
        );
        (lines, pages) = (lines + page.matches("data-line=").count(), pages + 1);
        let link =
            page.split_once("\">Next lines</a>").map(|(before, _)| before.rsplit_once("href=\"").unwrap().1);
        to = link.map(|link| link.split_once('#').unwrap().0.replace("&amp;", "&"));
    }
    (lines, pages)
}

/// Each control character began a span, so 12 MB of text became 184 MB of HTML.
#[tokio::test]
async fn control_characters_do_not_make_a_log_longer_than_its_text() {
    let site = Site::open(Options::default()).await;
    logged_as(&site, 1_200, |_| format!("error{}", "\u{7f}a".repeat(1_900))).await;
    let page = site.get(&format!("/ui/jobs/{ID}?lines=all")).await;
    let (spans, lines) = (page.matches("<span").count(), page.matches("data-line=").count());
    assert!(lines > 900 && spans < 3 * lines + 50, "{spans} spans in {lines} lines");
    assert_eq!(read_all(&site, "").await, (1_200, 2));
    assert!(site.get(&format!("/ui/jobs/{ID}?find=erroraaa&lines=all")).await.contains(" or more of "));
    assert_eq!(read_all(&site, "&find=ERRORaaa").await, (1_200, 2));
}

/// Colors that change with each letter, and letters that HTML writes as several, make lines many times as long.
#[tokio::test]
async fn a_page_of_a_log_is_bounded_by_its_html() {
    let site = Site::open(Options::default()).await;
    let longest = |at: usize| match at % 3 {
        0 => "\u{1b}[1m".to_owned() + &"\u{1b}[31m\"\u{1b}[32m\"".repeat(290),
        1 => "\"".repeat(4_000),
        _ => "\u{202e}".repeat(1_300),
    };
    logged_as(&site, 300, longest).await;
    let (lines, pages) = read_all(&site, "").await;
    assert!(lines == 300 && pages > 2, "{lines} lines on {pages} pages");
    // The last lines, and those that a search has found last.
    for query in ["", "?find=%22"] {
        let page = site.get(&format!("/ui/jobs/{ID}{query}")).await;
        let (lines, is_last) = (page.matches("data-line=").count(), page.contains("data-line=\"299\""));
        assert!(
            page.len() < LARGEST_PAGE && (20..200).contains(&lines) && is_last,
            "{lines}, {}",
            page.len()
        );
        assert!(page.contains(">Earlier lines</a>") && !page.contains("Next lines"));
    }
}

#[tokio::test]
async fn the_output_of_an_app_is_bounded_by_its_html() {
    let site = Site::open(Options::default()).await;
    let said: Vec<String> = (0..250).map(|at| format!("{at}: {}", "\"".repeat(3_900))).collect();
    for said in said.chunks(10) {
        site.tenure.apps("apps").unwrap().say("mailer", "app-1", said).await.unwrap();
    }
    let page = site.get("/ui/apps/continuous/mailer").await;
    assert!(page.contains("249: ") && page.contains("&quot;"), "{}", &page[..page.len().min(2_000)]);
    assert!((1 << 20..LARGEST_PAGE).contains(&page.len()), "{}", page.len());
}

#[tokio::test]
async fn the_html_of_a_log_counts_before_it_grows() {
    let site = small_site().await;
    logged_as(&site, 200, |_| "\"".repeat(600)).await;
    large_jobs(&site, "apps.large", 50).await;
    let page = format!("/ui/jobs/{ID}");
    let held = (unread(&site, 40).await, unread(&site, 36).await);
    let refused = site.get(&page).await;
    assert!(refused.starts_with("HTTP/1.1 200") && refused.contains("the limit set by"), "{}", refused.len());
    assert!(!refused.contains("&quot;&quot;"), "{}", refused.len());
    drop(held);
    let shown = site.get(&page).await;
    assert!(shown.contains("&quot;&quot;") && !shown.contains("the limit set by"), "{}", shown.len());
}

/// The values of an answer count, not only its bytes.
#[tokio::test]
async fn a_page_of_many_small_values_cannot_hold_more_than_the_memory_of_its_client() {
    let site = small_site().await;
    logged_as(&site, 1_000, |_| "x".repeat(600)).await;
    large_jobs(&site, "apps.large", 50).await;
    let page = format!("/ui/jobs/{ID}?find=nothing");
    let held = (unread(&site, 40).await, unread(&site, 34).await);
    let refused = site.get(&page).await;
    assert!(refused.contains("the limit set by") && !refused.contains("of 1000 lines"), "{refused}");
    drop(held);
    assert!(site.get(&page).await.contains("0 of 1000 lines"));
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
