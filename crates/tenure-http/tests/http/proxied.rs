//! A server behind a proxy, and requests that no proxy would pass on.

use std::sync::Arc;

use tenure::{ManualClock, SystemClock};
use tenure_http::{Access, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::serving::{Served, say, served_on, served_with};

fn request(line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn header<'t>(told: &'t str, name: &str) -> &'t str {
    let line = told.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")));
    &line.unwrap_or_else(|| panic!("no {name}: {told}"))[name.len() + 2..]
}

fn status(told: &str) -> &str {
    &told["HTTP/1.1 ".len()..][..3]
}

async fn public(url: &str) -> Served {
    let mut options = Options::default();
    options.public_url = Some(url.to_owned());
    served_with(options).await
}

/// The proxy strips the path, and says its own name for the server in `Host`.
#[tokio::test]
async fn every_url_begins_with_the_public_url() {
    let served = public("https://jobs.example.com/tenure/").await;
    let enqueue = request("POST /v1/jobs", "host: 127.0.0.1:8368\r\n", r#"{"kind":"k"}"#);
    let told = say(served.address, &enqueue).await;
    let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let base = "https://jobs.example.com/tenure";
    assert_eq!(header(&told, "location"), format!("{base}/queue/{id}"));
    assert_eq!(header(&told, "operation-location"), format!("{base}/v1/jobs/{id}"));
    assert!(told.contains(&format!("\"self\":\"/tenure/v1/jobs/{id}\"")), "{told}");
    say(served.address, &enqueue).await;
    let list = request("GET /v1/jobs?limit=1&kind=k", "host: localhost\r\n", "");
    let told = say(served.address, &list).await;
    assert!(header(&told, "link").starts_with("</tenure/v1/jobs?limit=1&kind=k&cursor="), "{told}");
    let told = say(served.address, &request("GET /openapi.json", "host: localhost\r\n", "")).await;
    assert!(told.contains(&format!("\"servers\":[{{\"url\":\"{base}\"}}]")), "{told:.400}");
}

#[tokio::test]
async fn the_host_of_the_public_url_is_a_name_of_the_server() {
    let served = public("https://jobs.example.com").await;
    let ask = |host: &str| request("GET /livez", &format!("host: {host}\r\n"), "");
    assert_eq!(status(&say(served.address, &ask("jobs.example.com")).await), "200");
    assert_eq!(status(&say(served.address, &ask("example.com")).await), "421");
}

/// Pollers take no relative URL.
#[tokio::test]
async fn the_location_of_an_accepted_job_is_absolute() {
    let served = served_with(Options::default()).await;
    let told =
        say(served.address, &request("POST /v1/jobs", "host: localhost:8368\r\n", r#"{"kind":"k"}"#)).await;
    assert!(header(&told, "location").starts_with("http://localhost:8368/queue/"), "{told}");
}

#[tokio::test]
async fn unknown_tokens_are_counted_by_the_address_that_a_trusted_proxy_names() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    options.unknown_tokens_per_minute = 1;
    options.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let served = served_on(Arc::new(ManualClock::new()), options).await;
    let ask = async |client: &str| {
        let headers =
            format!("host: localhost\r\nx-forwarded-for: {client}\r\nauthorization: Bearer tenure_0_x\r\n");
        status(&say(served.address, &request("GET /v1/queues", &headers, "")).await).to_owned()
    };
    assert_eq!(ask("192.0.2.1").await, "401");
    assert_eq!(ask("192.0.2.1").await, "429");
    assert_eq!(ask("192.0.2.2").await, "401", "another client");
    assert_eq!(ask("192.0.2.3, 192.0.2.1").await, "429", "the client's own word counts for nothing");
}

#[tokio::test]
async fn only_a_trusted_proxy_says_which_scheme_the_client_used() {
    for (trusted, scheme) in [("192.0.2.0/24", "http"), ("127.0.0.1", "https")] {
        let mut options = Options::default();
        options.trusted_proxies = vec![trusted.parse().unwrap()];
        let served = served_with(options).await;
        let headers = "host: localhost\r\nx-forwarded-proto: https\r\n";
        let told = say(served.address, &request("POST /v1/jobs", headers, r#"{"kind":"k"}"#)).await;
        assert!(
            header(&told, "location").starts_with(&format!("{scheme}://localhost/")),
            "{trusted}: {told}"
        );
    }
}

#[tokio::test]
async fn a_request_needs_exactly_one_host() {
    let served = served_with(Options::default()).await;
    for headers in ["", "host: localhost\r\nhost: localhost\r\n"] {
        let told = say(served.address, &request("GET /livez", headers, "")).await;
        assert!(status(&told) == "400" && told.contains("problem:malformed"), "{told}");
    }
}

#[tokio::test]
async fn a_path_beyond_the_limit_of_a_head_is_too_large() {
    let served = served_with(Options::default()).await;
    let line = format!("GET /{}", "a".repeat(40_000));
    let told = say(served.address, &request(&line, "host: localhost\r\n", "")).await;
    assert!(status(&told) == "431" && told.contains("problem:headers-too-large"), "{told}");
}

/// The body never comes: it is refused by what the head announces.
#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_before_it_is_sent() {
    let served = served_on(Arc::new(SystemClock), Options::default()).await;
    for expect in ["", "expect: 100-continue\r\n"] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let head = format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n{expect}content-type: application/json\r\n\
             content-length: 900000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut told = Vec::new();
        stream.read_to_end(&mut told).await.unwrap();
        let told = String::from_utf8(told).unwrap();
        assert!(status(&told) == "413" && told.contains("limit_bytes"), "{expect:?}: {told}");
    }
}
