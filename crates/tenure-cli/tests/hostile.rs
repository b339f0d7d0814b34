//! A server that is asked badly, too much, too slowly and by enemies: everybody is told no, nobody else notices.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(clippy::disallowed_methods, reason = "what a client waits for is measured by real time")]

use crate::program;
use crate::served;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use program::Program;
use serde_json::Value;
use served::{ask, served};
use tempfile::tempdir;

/// Who says nothing is let go after ten seconds: a healthy client that waited for that would wait longer than this. How much
/// longer than else he waits is measured by `tenure bench --http --figure http_hostile`, on a machine that does nothing else.
const SHORTER: Duration = Duration::from_secs(5);

/// What is sent, and with which statuses it may be answered.
struct Bad {
    what: String,
    sent: Vec<u8>,
    statuses: &'static [u16],
}

fn bad(what: impl Into<String>, sent: impl Into<Vec<u8>>, statuses: &'static [u16]) -> Bad {
    Bad { what: what.into(), sent: sent.into(), statuses }
}

/// A request with this head and body.
fn request(line: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = "host: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n";
    format!("{line} HTTP/1.1\r\n{head}content-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    request(&format!("POST {path}"), "", body)
}

/// Heads that are none, or that two would read differently.
fn heads() -> Vec<Bad> {
    let whole =
        |line: &str, headers: &str| format!("{line}\r\nhost: localhost\r\n{headers}\r\n").into_bytes();
    let mut all: Vec<Bad> = [
        "GET",
        "GET /",
        "GET / HTTP/1.1 x",
        "GET / HTTP/9.9",
        "GET / http/1.1",
        "G ET / HTTP/1.1",
        "\u{0}GET / HTTP/1.1",
        "GET /\u{0} HTTP/1.1",
        "GET /a b HTTP/1.1",
        ": / HTTP/1.1",
        "{} / HTTP/1.1",
        "GET //\u{7f} HTTP/1.1",
        "PRI * HTTP/2.0",
        "\u{16}\u{3}\u{1}",
        "SSH-2.0-OpenSSH_9.2",
        "GET  / HTTP/1.1",
        "GET\t/ HTTP/1.1",
    ]
    .into_iter()
    .map(|line| bad(format!("line {line:?}"), whole(line, "connection: close\r\n"), &[400, 404, 505]))
    .collect();
    let smuggled = [
        "content-length: 3\r\ncontent-length: 5\r\n",
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "content-length: -1\r\n",
        "content-length: +3\r\n",
        "content-length: 0x3\r\n",
        "content-length: 3, 5\r\n",
        "content-length: 99999999999999999999\r\n",
        "transfer-encoding : chunked\r\n",
        " folded: x\r\n",
        "no colon\r\n",
        "bad name: x\r\n",
        "a\u{0}: b\r\n",
        ": empty\r\n",
    ];
    for headers in smuggled {
        for method in ["POST /v1/jobs", "DELETE /v1/jobs/x", "GET /v1/jobs?limit=0"] {
            let sent = whole(&format!("{method} HTTP/1.1"), &format!("{headers}connection: close\r\n"));
            all.push(bad(
                format!("{method} {headers:?}"),
                [sent, b"abc".to_vec()].concat(),
                &[400, 408, 413, 415, 422],
            ));
        }
    }
    for count in [101, 200, 1_000, 5_000] {
        let headers: String = (0..count).map(|number| format!("x-{number}: y\r\n")).collect();
        all.push(bad(format!("{count} headers"), whole("GET /v1/jobs HTTP/1.1", &headers), &[431]));
    }
    for size in [100_000, 300_000, 1_000_000] {
        let long = "a".repeat(size);
        all.push(bad(
            format!("a header of {size}"),
            whole("GET / HTTP/1.1", &format!("x: {long}\r\n")),
            &[431],
        ));
        all.push(bad(format!("a path of {size}"), whole(&format!("GET /{long} HTTP/1.1"), ""), &[414, 431]));
        all.push(bad(
            format!("a name of {size}"),
            whole("GET / HTTP/1.1", &format!("{long}: x\r\n")),
            &[400, 431],
        ));
    }
    all
}

/// Paths and queries that mean something else than they seem to.
fn paths() -> Vec<Bad> {
    let mut all = Vec::new();
    let odd = [
        "/v1/jobs/..",
        "/v1/jobs/%2e%2e",
        "/v1/../v1/jobs",
        "/../../etc/passwd",
        "/v1//jobs",
        "/v1/jobs/",
        "//v1/jobs",
        "/v1/jobs/%00",
        "/v1/jobs/%ff",
        "/v1/jobs/%zz",
        "/v1/jobs/%",
        "/v1/jobs/'%20OR%201=1",
        "/v1/jobs/${jndi:ldap://x}",
        "/v1/jobs/<script>",
        "/v1/queues/%2F%2F",
        "/v1/queues/a%00b",
        "/v1/schedules/%0d%0aset-cookie:x",
        "/v1/jobs/0190f5c2",
        "/queue/..;/",
        "/.git/config",
        "/v1/jobs%2f..",
        "/v1/webhooks/%00",
        "/v1/tokens/..%2f",
        "/admin",
        "/console",
        "/actuator/env",
        "/v1/jobs/x/events",
    ];
    for path in odd {
        for method in ["GET", "DELETE", "PUT", "PATCH"] {
            let sent = request(&format!("{method} {path}"), "if-match: *\r\n", "{}");
            all.push(bad(format!("{method} {path}"), sent, &[400, 404, 405, 415, 422]));
        }
    }
    let queries = [
        "limit=0",
        "limit=-1",
        "limit=1e3",
        "limit=99999999999999999999",
        "limit=",
        "limit=1&limit=2",
        "cursor=x",
        "cursor=c",
        "cursor=e1",
        "cursor=cffffffffffffffffff",
        "state=done",
        "state=",
        "tag=%20",
        "tag=%00",
        "queue=%ff",
        "kind=a/b",
        "nonsense=1",
        "q=x:1",
        "q=%22",
        "q=state:",
        "q=created:never",
        "created_from=yesterday",
        "created_before=0000-00-00",
        "order=random",
        "ended_from=1",
        "%zz=1",
        "q=%ff",
    ];
    all.extend(
        queries.map(|query| bad(query, request(&format!("GET /v1/jobs?{query}"), "", ""), &[400, 422])),
    );
    let long = format!("/v1/jobs?q={}", "x".repeat(3_000));
    all.push(bad("a long search", request(&format!("GET {long}"), "", ""), &[422]));
    all
}

/// Bodies that are not what they should be.
fn bodies() -> Vec<Bad> {
    let deep =
        |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let mut texts: Vec<String> = [
        "",
        "null",
        "true",
        "7",
        "\"kind\"",
        "[]",
        "{",
        "}",
        "{]",
        "{\"kind\"}",
        "{\"kind\":}",
        "{\"kind\":\"k\",}",
        "{\"kind\":\"k\"}{}",
        "{\"kind\":7}",
        "{\"kind\":null}",
        "{\"kind\":\"\"}",
        "{\"kind\":\"a b\"}",
        "{\"kind\":\"a/b\"}",
        "{\"kind\":\"k\",\"kind\":\"l\"}",
        "{\"kind\":\"tenure.bulk\"}",
        "{\"kind\":\"k\",\"nonsense\":1}",
        "{\"kind\":\"k\",\"priority\":1e99}",
        "{\"kind\":\"k\",\"priority\":1.5}",
        "{\"kind\":\"k\",\"priority\":101}",
        "{\"kind\":\"k\",\"max_attempts\":0}",
        "{\"kind\":\"k\",\"max_attempts\":-1}",
        "{\"kind\":\"k\",\"delay_seconds\":-1}",
        "{\"kind\":\"k\",\"delay_seconds\":1e308}",
        "{\"kind\":\"k\",\"run_at\":\"never\"}",
        "{\"kind\":\"k\",\"timeout_seconds\":0}",
        "{\"kind\":\"k\",\"tags\":[\"\"]}",
        "{\"kind\":\"k\",\"tags\":\"x\"}",
        "{\"kind\":\"k\",\"meta\":{\"a\":1}}",
        "{\"kind\":\"k\",\"id\":\"7\"}",
        "{\"kind\":\"k\",\"after\":[\"x\"]}",
        "{\"kind\":\"k\",\"unique\":{\"scope\":\"any\"}}",
        "{\"kind\":\"k\",\"retry\":{\"waits_seconds\":[]}}",
        "{\"kind\":\"k\",\"retry\":{\"max_attempts\":99999999}}",
        "{\"kind\":\"\\ud800\"}",
        "{\"kind\":\"k\\u0000\"}",
        "NaN",
        "{\"kind\":NaN}",
        "<xml/>",
        "kind=k",
        "\u{feff}{\"kind\":\"k\"}",
    ]
    .map(str::to_owned)
    .into();
    texts.push(format!("{{\"kind\":\"{}\"}}", "k".repeat(129)));
    texts.push(format!("{{\"kind\":\"k\",\"args\":{}}}", deep("[", "]", 65)));
    texts.push(format!("{{\"kind\":\"k\",\"args\":{}}}", deep("[", "]", 100_000)));
    texts.push(format!(
        "{{\"kind\":\"k\",\"args\":{}}}",
        deep("{\"a\":", "}", 500).replace("\"a\":}", "\"a\":1}")
    ));
    texts.push(format!("{{\"kind\":\"k\",\"args\":\"{}\"}}", "x".repeat(300_000)));
    texts.push(format!("{{\"kind\":\"k\",\"args\":\"{}\"}}", "x".repeat(600_000)));
    texts.push(format!("{{\"kind\":\"k\",\"tags\":[{}]}}", vec!["\"t\""; 100].join(",")));
    texts.push(format!("{{\"kind\":\"k\",\"priority\":{}}}", "9".repeat(10_000)));
    let mut all = Vec::new();
    for text in &texts {
        let shown: String = text.chars().take(60).collect();
        all.push(bad(format!("a job {shown}"), post("/v1/jobs", text), &[400, 413, 422]));
        let jobs = format!("{{\"jobs\":[{{\"kind\":\"k\"}},{text}]}}");
        all.push(bad(format!("a batch with {shown}"), post("/v1/jobs/batch", &jobs), &[400, 413, 422]));
        let put = request("PUT /v1/jobs/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10", "", text);
        all.push(bad(format!("a job by its id {shown}"), put, &[400, 413, 422]));
        let items = format!("{{\"items\":[{text}]}}");
        all.push(bad(format!("an end {shown}"), post("/v1/settle", &items), &[400, 413, 422]));
        all.push(bad(
            format!("a claim {shown}"),
            post("/v1/claim", &format!("{{\"queues\":{text}}}")),
            &[400, 413, 422],
        ));
    }
    let many = format!("{{\"jobs\":[{}]}}", vec!["{\"kind\":\"k\"}"; 1_001].join(","));
    all.push(bad("1001 jobs", post("/v1/jobs/batch", &many), &[413, 422]));
    for (path, body) in [
        ("/v1/bulk", "{\"action\":\"delete\"}"),
        ("/v1/bulk", "{\"action\":\"drop\",\"all\":true}"),
        ("/v1/bulk", "{\"action\":\"move\",\"all\":true}"),
        ("/v1/settle", "{\"items\":7}"),
        ("/v1/settle", "{\"items\":[{}]}"),
        ("/v1/leases/a/acquire", "{}"),
        ("/v1/leases/a/acquire", "{\"owner\":\"x\",\"ttl_seconds\":0}"),
        ("/v1/schedules/preview", "{\"spec\":{\"cron\":\"* * *\"}}"),
        ("/v1/webhooks", "{\"url\":\"file:///etc/passwd\",\"types\":[\"*\"]}"),
        ("/v1/webhooks", "{\"url\":\"http://169.254.169.254/\",\"types\":[]}"),
        ("/v1/endpoints", "{\"name\":\"x\",\"url\":\"gopher://x\",\"queues\":[\"q\"]}"),
        ("/v1/tokens", "{\"name\":\"x\",\"scopes\":[\"root\"]}"),
        ("/v1/jobs/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10/complete", "{\"token\":\"1.1.aa\"}"),
    ] {
        all.push(bad(format!("{path} {body}"), post(path, body), &[400, 404, 409, 410, 415, 422]));
    }
    all
}

/// Headers that say something that is not so, or that somebody else says.
fn headers() -> Vec<Bad> {
    let job = "{\"kind\":\"k\"}";
    let mut all = Vec::new();
    for kind in [
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "x",
        "application/json5",
    ] {
        let sent = format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{job}",
            job.len()
        );
        all.push(bad(format!("content-type {kind}"), sent, &[415]));
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "169.254.169.254",
        "127.0.0.1.nip.io",
        "[::2]",
        "a@localhost",
        "",
    ] {
        for path in ["/v1/jobs", "/v1/queues", "/metrics"] {
            let sent = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            all.push(bad(format!("host {host:?} {path}"), sent, &[400, 421]));
        }
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        for path in ["/v1/jobs", "/v1/queues/a/pause", "/v1/bulk"] {
            let sent = request(
                &format!("POST {path}"),
                &format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n"),
                job,
            );
            all.push(bad(format!("origin {origin} {path}"), sent, &[403]));
        }
    }
    for key in ["\"\"", "\"", &format!("\"{}\"", "k".repeat(400)), "\u{7f}"] {
        let sent = request("POST /v1/jobs", &format!("idempotency-key: {key}\r\n"), job);
        all.push(bad(format!("key {key:?}"), sent, &[400, 422]));
    }
    for method in ["TRACE", "CONNECT", "PROPFIND", "HACK", "get"] {
        all.push(bad(
            format!("{method} /v1/jobs"),
            request(&format!("{method} /v1/jobs"), "", ""),
            &[400, 404, 405],
        ));
    }
    all
}

/// Sends it on a connection of its own, and reads all of the answer.
fn told(address: &str, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(45))).unwrap();
    // The server may have answered and hung up before all of it was sent.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// What is wrong with how it was answered.
fn wrong(address: &str, bad: &Bad) -> Option<String> {
    let answer = String::from_utf8_lossy(&told(address, &bad.sent)).into_owned();
    let shown: String = answer.chars().take(400).collect();
    let wrong = |why: &str| Some(format!("{}: {why}: {shown}", bad.what));
    let Some(status) = answer.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()) else {
        // The layer that reads heads hangs up on what is no HTTP at all, and the system drops an answer whose question was not
        // read to its end.
        return if answer.is_empty() { None } else { wrong("no answer") };
    };
    if !bad.statuses.contains(&status) {
        return wrong("another status");
    }
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if body.is_empty() {
        // A version that is not spoken is refused by the layer that reads heads, without a document.
        return if status == 505 { None } else { wrong("nothing is told") };
    }
    let Ok(document) = serde_json::from_str::<Value>(body) else { return wrong("no document") };
    let is_problem = head.to_lowercase().contains("application/problem+json")
        && document["status"] == status
        && document["type"].as_str().is_some_and(|kind| kind.starts_with("urn:tenure:problem:"));
    if !is_problem {
        return wrong("no problem document");
    }
    if body.contains("panick") || body.contains(".rs:") { wrong("it tells of its insides") } else { None }
}

fn check(address: &str, all: &[Bad]) {
    let wrong: Vec<String> = all.iter().filter_map(|bad| wrong(address, bad)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// What a healthy client waits for: 99 of 100 no longer than this.
fn healthy(address: &str, until: &AtomicBool) -> Duration {
    let mut spans = Vec::new();
    while !until.load(Ordering::Relaxed) || spans.len() < 200 {
        let began = Instant::now();
        let status = ask(address, "POST", "/v1/jobs", "", "{\"kind\":\"healthy\"}").0;
        assert_eq!(status, 202);
        spans.push(began.elapsed());
    }
    spans.sort_unstable();
    spans[spans.len() * 99 / 100]
}

/// How many answers somebody is given who waits for no disk.
fn answers(address: &str, until: &AtomicBool) -> usize {
    let mut count = 0;
    while !until.load(Ordering::Relaxed) {
        assert_eq!(ask(address, "GET", "/v1/queues", "", "").0, 200);
        count += 1;
    }
    count
}

fn rss_kib(server: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn whoever_asks_badly_is_told_so_and_nobody_else_notices() {
    let folder = tempdir().unwrap();
    let (server, address) = served(folder.path());
    let all: Vec<Bad> = [heads(), paths(), bodies(), headers()].into_iter().flatten().collect();
    assert!(all.len() >= 500, "{} of them", all.len());
    // Once, so that what is made with the first of its sort is there.
    check(&address, &all);
    let began = rss_kib(&server);
    // Those who come and say nothing, say it byte by byte, or never read what they are told.
    let mut silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        let some =
            ["", "GET / HT", "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"]
                [number % 3];
        stream.write_all(some.as_bytes()).unwrap();
    }
    let over = AtomicBool::new(false);
    let (waits, answers) = std::thread::scope(|scope| {
        let (waits, answers) =
            (scope.spawn(|| healthy(&address, &over)), scope.spawn(|| answers(&address, &over)));
        for _ in 0..2 {
            check(&address, &all);
            for stream in &mut silent {
                // Whom the server has hung up on meanwhile cannot be written to.
                let _ = stream.write_all(b"x");
            }
        }
        over.store(true, Ordering::Relaxed);
        (waits.join().unwrap(), answers.join().unwrap())
    });
    let grown = rss_kib(&server).saturating_sub(began);
    // The connections of the silent, and what the allocator keeps of the largest bodies: nothing that grows with each request.
    assert!(grown < 48 * 1024, "it has grown by {grown} KiB");
    assert!(waits < SHORTER, "a healthy client waits {waits:?}");
    // One at a time asks badly, and one well: neither is served before the other. That one of them is slower is no matter.
    assert!(answers > all.len() / 4, "{answers} answers while {} bad requests were sent", all.len() * 2);
    assert_eq!(ask(&address, "GET", "/readyz", "", "").0, 200);
}
