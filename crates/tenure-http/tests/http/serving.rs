//! The server on a port.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Chance, Clock, ManualClock, MemoryStore, SystemClock, Tenure};
use tenure_http::{Options, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Served {
    pub address: SocketAddr,
    pub tenure: Tenure,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<()>,
}

async fn served() -> Served {
    served_with(Options::default()).await
}

pub async fn served_with(options: Options) -> Served {
    served_on(Arc::new(SystemClock), options).await
}

/// The same, and whoever says or reads nothing is let go after a moment.
async fn hasty() -> Served {
    let mut options = Options::default();
    options.head_within = Duration::from_millis(300);
    options.read_within = Duration::from_millis(300);
    served_with(options).await
}

pub async fn served_on(clock: Arc<dyn Clock>, mut options: Options) -> Served {
    let tenure = Tenure::on(Arc::new(MemoryStore::new(clock)), Chance::seeded(1));
    options.bind = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(&tenure, options).await.unwrap();
    let (address, (stop, stopped)) = (server.address(), oneshot::channel());
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    Served { address, tenure, stop: Some(stop), ended }
}

/// Sends text and reads until the other side has ended.
pub async fn say(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    String::from_utf8(told).unwrap()
}

#[tokio::test]
async fn only_who_addresses_it_by_a_name_of_its_own_is_answered() {
    let served = served().await;
    let ask = |host: &str| format!("GET /livez HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let told = say(served.address, &ask("localhost")).await;
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("x-request-id: "), "{told}");
    let told = say(served.address, &ask("evil.example")).await;
    assert!(told.starts_with("HTTP/1.1 421") && told.contains("host-not-allowed"), "{told}");
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_asked_so_are_told_as_problems() {
    let served = served().await;
    let ask = |line: &str| {
        format!("{line} HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine-7\r\nconnection: close\r\n\r\n")
    };
    let told = say(served.address, &ask("GET /nowhere")).await;
    assert!(told.starts_with("HTTP/1.1 404") && told.contains("urn:tenure:problem:not-found"), "{told}");
    assert!(told.contains("x-request-id: mine-7"), "{told}");
    let told = say(served.address, &ask("BREW /v1/jobs")).await;
    assert!(told.starts_with("HTTP/1.1 405") && told.contains("method-not-allowed"), "{told}");
    assert!(told.contains("allow: "), "{told}");
}

#[tokio::test]
async fn a_port_that_others_could_reach_is_refused_while_nobody_is_asked_who_he_is() {
    let tenure = served().await.tenure;
    let mut options = Options::default();
    options.bind = "0.0.0.0:0".parse().unwrap();
    let told = Server::bind(&tenure, options).await.unwrap_err().to_string();
    assert!(told.contains("127.0.0.1"), "{told}");
}

#[tokio::test]
async fn whoever_waits_is_answered_when_it_stops_and_then_it_ends() {
    let mut served = served().await;
    let id =
        served.tenure.enqueue_draft(tenure::Draft::raw("k", &serde_json::json!(null))).await.unwrap().id();
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let ask = format!("GET /queue/{id} HTTP/1.1\r\nhost: localhost\r\nprefer: wait=50\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let ready =
        say(served.address, "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    drop(served.stop.take());
    let mut told = Vec::new();
    // A server that did not answer would close the connection after its grace, and nothing would have been said.
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut told)).await;
    read.expect("it waited for longer than the server").unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("\"queued\""), "{told}");
    served.ended.await.unwrap();
}

#[tokio::test]
async fn whoever_connects_and_says_nothing_is_let_go() {
    let served = hasty().await;
    for said in ["", "GET /livez HTTP/1.1\r\nhost: local", "PRI * HT"] {
        let told = tokio::time::timeout(Duration::from_secs(60), say(served.address, said)).await;
        let told = told.expect("it is kept for ever");
        assert!(!told.starts_with("HTTP/1.1 2"), "{said:?}: {told}");
    }
}

/// Reads one response with a JSON body from a connection that stays open.
async fn answer(stream: &mut TcpStream) -> String {
    let mut told = Vec::new();
    loop {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap() == 0 {
            break;
        }
        told.push(byte[0]);
        let text = String::from_utf8_lossy(&told).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().to_owned();
        if body.len() == length.parse::<usize>().unwrap() {
            break;
        }
    }
    String::from_utf8(told).unwrap()
}

/// Moves the clock again and again until the server has closed the connection, and answers how far.
async fn closed_after(clock: &ManualClock, stream: &mut TcpStream) -> Duration {
    let (step, mut passed) = (Duration::from_secs(1), Duration::ZERO);
    loop {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await;
        match read {
            Ok(read) => {
                assert_eq!(read.unwrap_or(0), 0, "it said something");
                return passed;
            }
            Err(_) => {
                clock.advance(step);
                passed += step;
            }
        }
    }
}

/// Clients and proxies keep connections in a pool. One that the server closes first makes their next request fail.
#[tokio::test]
async fn a_connection_stays_open_between_two_requests_and_a_head_has_ten_seconds() {
    let clock = ManualClock::new();
    let served = served_on(Arc::new(clock.clone()), Options::default()).await;
    let ask = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(ask.as_bytes()).await.unwrap();
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        clock.advance(Duration::from_secs(60));
    }
    stream.write_all(ask.as_bytes()).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
    let idle = closed_after(&clock, &mut stream).await;
    assert!((Duration::from_secs(75)..Duration::from_secs(200)).contains(&idle), "{idle:?}");

    // The beginning of a head on a connection that was idle is not given more time than on a new one.
    for first in [ask, ""] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        if !first.is_empty() {
            stream.write_all(first.as_bytes()).await.unwrap();
            assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
            clock.advance(Duration::from_secs(60));
        }
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: loc").await.unwrap();
        let slow = closed_after(&clock, &mut stream).await;
        assert!((Duration::from_secs(10)..Duration::from_secs(60)).contains(&slow), "{first:?}: {slow:?}");
    }
}

/// A stream of events is no idle connection, however little happens.
#[tokio::test]
async fn a_response_that_goes_on_keeps_its_connection() {
    let clock = ManualClock::new();
    let served = served_on(Arc::new(clock.clone()), Options::default()).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let ask = "GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut told = vec![0; 10_000];
    let read = stream.read(&mut told).await.unwrap();
    assert!(String::from_utf8_lossy(&told[..read]).contains("text/event-stream"));
    for _ in 0..5 {
        clock.advance(Duration::from_secs(60));
        // Whatever it says, it does not end.
        let read = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut told)).await;
        assert!(read.is_err() || read.unwrap().unwrap() > 0);
    }
}

#[tokio::test]
async fn idle_connections_close_sooner_while_half_of_all_are_in_use() {
    let clock = ManualClock::new();
    let mut options = Options::default();
    options.connections = 3;
    let served = served_on(Arc::new(clock.clone()), options).await;
    let ask = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        streams.push(stream);
    }
    let idle = closed_after(&clock, &mut streams[1]).await;
    assert!((Duration::from_secs(10)..Duration::from_secs(60)).contains(&idle), "{idle:?}");
}

#[tokio::test]
async fn a_page_of_somebody_elses_changes_nothing() {
    let served = served().await;
    let claim = |header: &str| {
        format!(
            "POST /v1/claim HTTP/1.1\r\nhost: localhost\r\n{header}connection: close\r\ncontent-length: 0\r\n\r\n"
        )
    };
    for header in ["origin: https://evil.example\r\n", "sec-fetch-site: cross-site\r\n", "origin: null\r\n"] {
        let told = say(served.address, &claim(header)).await;
        assert!(told.starts_with("HTTP/1.1 403") && told.contains("cross-site"), "{told}");
    }
    let told =
        say(served.address, &claim("origin: http://localhost:8368\r\nsec-fetch-site: same-origin\r\n")).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}

/// A request about a lease, with a body.
fn about_lease(act: &str, header: &str, body: &str) -> String {
    format!(
        "POST /v1/leases/one/{act} HTTP/1.1\r\nhost: localhost\r\n{header}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Ends once so many wait for the lease.
async fn until_waiting(served: &Served, waiting: u32) {
    for _ in 0..6_000 {
        let found = served.tenure.leases().info("one").await.unwrap();
        if found.is_some_and(|lease| lease.waiting == waiting) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never {waiting}");
}

#[tokio::test]
async fn whoever_hangs_up_while_he_waits_for_a_lease_leaves_the_line() {
    let served = served().await;
    let held = served.tenure.leases().hold("one").await.unwrap();
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let ask = about_lease("acquire", "prefer: wait=50\r\n", r#"{"owner":"a","ttl_seconds":60}"#);
    stream.write_all(ask.as_bytes()).await.unwrap();
    until_waiting(&served, 1).await;
    drop(stream);
    until_waiting(&served, 0).await;
    held.release().await.unwrap();
    let next = served.tenure.leases().try_hold("one", Duration::from_secs(60)).await.unwrap();
    assert!(next.is_some(), "nobody is waited for who has gone");
}

#[tokio::test]
async fn whoever_waits_for_a_lease_when_the_server_stops_is_told_to_ask_another() {
    let mut served = served().await;
    let _held = served.tenure.leases().hold("one").await.unwrap();
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let ask = about_lease("acquire", "prefer: wait=50\r\nconnection: close\r\n", r#"{"owner":"a"}"#);
    stream.write_all(ask.as_bytes()).await.unwrap();
    until_waiting(&served, 1).await;
    drop(served.stop.take());
    let mut told = Vec::new();
    // A server that did not answer would close the connection after its grace, and nothing would have been said.
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut told)).await;
    read.expect("it waited for longer than the server").unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("urn:tenure:problem:draining"), "{told}");
    until_waiting(&served, 0).await;
}

/// A balancer hears that the server is about to go before it goes.
#[tokio::test]
async fn a_server_that_leaves_says_so_and_answers_for_a_while() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let tenure = Tenure::on(Arc::new(MemoryStore::new(clock)), Chance::seeded(1));
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    options.drain_delay = Duration::from_secs(5);
    let server = Server::bind(&tenure, options).await.unwrap();
    let (address, (stop, stopped)) = (server.address(), oneshot::channel::<()>());
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    let ask = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(say(address, ask).await.starts_with("HTTP/1.1 200"));
    drop(stop);
    let mut told = String::new();
    while !told.starts_with("HTTP/1.1 503") {
        told = say(address, ask).await;
    }
    let live = say(address, &ask.replace("readyz", "livez")).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    ended.await.unwrap();
}

#[tokio::test]
async fn whoever_reads_nothing_of_what_he_asked_for_is_let_go() {
    let served = hasty().await;
    let large = serde_json::json!("x".repeat(250_000));
    let drafts = (0..40).map(|_| tenure::Draft::raw("k", &large));
    served.tenure.enqueue_all(drafts).await.unwrap();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(served.address).await.unwrap();
    stream.write_all(b"GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut told = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut told)).await;
    let _ = read.expect("it is kept for ever");
    let head = String::from_utf8_lossy(&told[..told.len().min(1_000)]).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
    assert!(length.parse::<usize>().unwrap() > 8_000_000, "{head}");
    assert!(told.len() < length.parse::<usize>().unwrap(), "all of it was sent although nobody read");
}

/// A page of large jobs is shorter, and the next one goes on behind it.
#[tokio::test]
async fn a_page_of_large_jobs_ends_early_and_goes_on() {
    let served = served().await;
    let large = serde_json::json!("x".repeat(250_000));
    served.tenure.enqueue_all((0..120).map(|_| tenure::Draft::raw("k", &large))).await.unwrap();
    let (mut cursor, mut seen, mut pages) = (String::new(), std::collections::BTreeSet::new(), 0);
    loop {
        let head = format!(
            "GET /v1/jobs?limit=1000{cursor} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        );
        let told = say(served.address, &head).await;
        assert!(told.len() < 9_000_000, "{} bytes", told.len());
        let page: serde_json::Value = serde_json::from_str(told.split_once("\r\n\r\n").unwrap().1).unwrap();
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!((seen.len(), pages), (120, 4));
}

#[tokio::test]
async fn what_cannot_be_read_as_a_request_is_told_as_a_problem_too() {
    let served = served().await;
    let many = "a: b\r\n".repeat(200);
    let asks = [
        ("400", "malformed", "GET\r\n\r\n".to_owned()),
        ("400", "malformed", "GET / HTTP/1.1\r\nbad header\r\n\r\n".to_owned()),
        ("431", "headers-too-large", format!("GET / HTTP/1.1\r\nhost: localhost\r\n{many}\r\n")),
    ];
    for (status, name, ask) in asks {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        // The other side may have heard enough before all of it was sent.
        let _ = stream.write_all(ask.as_bytes()).await;
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told).await;
        let told = String::from_utf8(told).unwrap();
        let (head, body) = told.split_once("\r\n\r\n").unwrap_or_default();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{told}");
        assert!(head.contains("content-type: application/problem+json"), "{told}");
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["type"], format!("urn:tenure:problem:{name}"), "{told}");
        assert_eq!(problem["status"].to_string(), status);
    }
}

#[tokio::test]
async fn nobody_takes_all_connections_from_one_address() {
    let mut options = Options::default();
    options.connections_per_address = 2;
    let served = served_with(options).await;
    let ask = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let one = TcpStream::connect(served.address).await.unwrap();
    let _other = TcpStream::connect(served.address).await.unwrap();
    let mut third = TcpStream::connect(served.address).await.unwrap();
    let mut told = String::new();
    third.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 429") && told.contains("retry-after: 5"), "{told}");
    assert!(told.contains("urn:tenure:problem:rate-limited"), "{told}");
    drop(one);
    while !say(served.address, ask).await.starts_with("HTTP/1.1 200") {}
}

#[tokio::test]
async fn whoever_guesses_access_tokens_waits_and_whoever_has_one_does_not() {
    let mut options = Options::default();
    options.access = tenure_http::Access::Tokens;
    options.unknown_tokens_per_minute = 3;
    // All within a minute, however long it takes.
    let served = served_on(Arc::new(ManualClock::new()), options).await;
    let (scopes, reach) = (vec![tenure_http::Scope::Read], tenure_http::Reach::default());
    let new = tenure_http::NewAccessToken {
        name: "ci".to_owned(),
        scopes,
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let (_, good) = tenure_http::Tokens::of(&served.tenure).create(new).await.unwrap();
    let ask = |token: &str| {
        format!(
            "GET /v1/queues HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        )
    };
    assert!(say(served.address, &ask(&good)).await.starts_with("HTTP/1.1 200"));
    for number in 0..3 {
        let told = say(served.address, &ask(&format!("tenure_{number}_x"))).await;
        assert!(told.starts_with("HTTP/1.1 401"), "{told}");
    }
    let told = say(served.address, &ask("tenure_7_x")).await;
    assert!(told.starts_with("HTTP/1.1 429") && told.contains("retry-after: "), "{told}");
    assert!(say(served.address, &ask(&good)).await.starts_with("HTTP/1.1 200"), "who is known is let in");
}

/// With the usual limit, after a restart: the server has not met any of the good tokens.
#[tokio::test]
async fn sixty_one_bad_requests_lock_out_no_client_with_a_token() {
    let mut options = Options::default();
    options.access = tenure_http::Access::Tokens;
    let served = served_on(Arc::new(ManualClock::new()), options).await;
    let status = async |line: &str, token: Option<&str>| {
        let token = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
        let ask = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\n\
             content-length: 2\r\nconnection: close\r\n\r\n{{}}"
        );
        say(served.address, &ask).await["HTTP/1.1 ".len()..][..3].to_owned()
    };
    let mut good = Vec::new();
    for scope in [tenure_http::Scope::Admin, tenure_http::Scope::Work, tenure_http::Scope::Read] {
        let (name, reach) = (scope.to_string(), tenure_http::Reach::default());
        let new = tenure_http::NewAccessToken {
            name,
            scopes: vec![scope],
            reach,
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        good.push(tenure_http::Tokens::of(&served.tenure).create(new).await.unwrap().1);
    }
    for number in 0..61 {
        let bad = format!("tenure_{number:012x}_{number:064x}");
        assert_eq!(status("GET /v1/queues", None).await, "401");
        let expected = if number < 60 { "401" } else { "429" };
        assert_eq!(status("GET /v1/queues", Some(&bad)).await, expected, "{number}");
    }
    for (line, token) in ["GET /v1/tokens", "POST /v1/claim", "GET /v1/queues"].into_iter().zip(&good) {
        assert_eq!(status(line, Some(token)).await, "200", "{line}");
    }
}

/// Behind a proxy all have one address: what one of them tries must not lock out the others.
#[tokio::test]
async fn a_good_access_token_is_let_in_whatever_strangers_at_its_address_try() {
    let mut options = Options::default();
    options.access = tenure_http::Access::Tokens;
    options.unknown_tokens_per_minute = 3;
    let clock = ManualClock::new();
    let served = served_on(Arc::new(clock.clone()), options).await;
    let (scopes, reach) = (vec![tenure_http::Scope::Read], tenure_http::Reach::default());
    let new = tenure_http::NewAccessToken {
        name: "ci".to_owned(),
        scopes,
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let tokens = tenure_http::Tokens::of(&served.tenure);
    let (made, good) = tokens.create(new).await.unwrap();
    let status = async |token: &str| {
        let ask = format!(
            "GET /v1/queues HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        say(served.address, &ask).await["HTTP/1.1 ".len()..][..3].to_owned()
    };
    for number in 0..3 {
        assert_eq!(status(&format!("tenure_00000000000{number}_x")).await, "401");
    }
    assert_eq!(status("tenure_000000000007_x").await, "429");
    assert_eq!(status(&good).await, "200", "this server has not seen it before");
    clock.advance(Duration::from_secs(6));
    assert_eq!(status(&good).await, "200");
    assert_eq!(status(&format!("{good}x")).await, "429", "knowing its id is not having it");
    assert!(tokens.revoke(&made.id).await.unwrap());
    clock.advance(Duration::from_secs(6));
    assert_eq!(status(&good).await, "429", "it is looked up, and is good no more");
    clock.advance(Duration::from_secs(60));
    assert_eq!(status(&good).await, "401");
}
