//! What healthy clients wait for beside others who ask badly, too much, too slowly or as enemies, and what they wait for alone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::server::Server;
use super::wire::{Connection, request, status_of, wrong};
use super::{Waits, job, unexpected};
use crate::bench::figure::{Figure, median, rounded, share};
use crate::bench::ground::Ground;
use crate::bench::meter::{now, rest};
use crate::bench::sizes::Sizes;
use crate::exit::Failure;

/// Clients that do no harm, and how long each rests between two requests: the server is to have something to do, not all it can.
const HEALTHY: usize = 4;
const REST: Duration = Duration::from_millis(5);
/// Connections on which nothing has come, or half of a request.
const SILENT: usize = 300;
/// Those who ask badly at the same time, and how long each rests between two requests: together 500 in a second. Or not at all.
const ENEMIES: usize = 2;
const PACE: Duration = Duration::from_millis(4);

/// The medians of some rounds: in each, healthy clients are measured alone and then beside the others.
pub(super) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Figure, Failure> {
    let server = Server::start(&ground.http_url()).await?;
    let (address, bad) = (server.address(), Arc::new(bad()));
    let (mut refused, mut seen) = ([0; 2], Vec::new());
    // Once, so that what is made with the first of its sort is there.
    ask_badly(address, &bad, Duration::ZERO, &AtomicBool::new(true))?;
    for _ in 0..sizes.rounds {
        let memory = server.rss_mib().unwrap_or(f64::NAN);
        let mut alone = healthy(address, sizes.hostile).await?;
        let silent = silent(address).await?;
        let (mut paced, some) = besieged(address, &bad, PACE, sizes.hostile).await?;
        let (mut flooded, most) = besieged(address, &bad, Duration::ZERO, sizes.hostile).await?;
        drop(silent);
        refused = [refused[0] + some, refused[1] + most];
        let grown = server.rss_mib().unwrap_or(f64::NAN) - memory;
        let [alone, paced, flooded] = [&mut alone, &mut paced, &mut flooded].map(|waits| share(waits, 0.99));
        seen.push([alone, paced, flooded, paced / alone, flooded / alone, grown]);
    }
    let middle = |index: usize| median(seen.iter().map(|round| round[index])).map(rounded);
    Ok(Figure::bare("http_hostile", HEALTHY * sizes.hostile)
        .with("silent", SILENT)
        .with("refused", refused[0])
        .with("refused_flood", refused[1])
        .with("p99_ms_alone", middle(0))
        .with("p99_ms", middle(1))
        .with("p99_ms_flood", middle(2))
        .with("times", middle(3))
        .with("times_flood", middle(4))
        .with("grown_mib", middle(5))
        .with("rounds", sizes.rounds))
}

/// What healthy clients wait for while others ask badly, and how often those were refused. They have threads of their own: what
/// they cost on their side is not waited for here.
async fn besieged(
    address: SocketAddr,
    bad: &Arc<Vec<Vec<u8>>>,
    pace: Duration,
    requests: usize,
) -> Result<(Waits, usize), Failure> {
    let over = Arc::new(AtomicBool::new(false));
    let enemies = [(); ENEMIES].map(|()| {
        let (bad, over) = (Arc::clone(bad), Arc::clone(&over));
        tokio::task::spawn_blocking(move || ask_badly(address, &bad, pace, &over))
    });
    let waits = healthy(address, requests).await;
    over.store(true, Ordering::Relaxed);
    let mut refused = 0;
    for enemy in enemies {
        refused += enemy.await.map_err(|error| wrong(error.to_string()))??;
    }
    Ok((waits?, refused))
}

/// So many requests of each healthy client.
async fn healthy(address: SocketAddr, requests: usize) -> Result<Waits, Failure> {
    let ask = request("POST", "/v1/jobs", "prefer: return=minimal\r\n", &job().to_string());
    let all = (0..HEALTHY).map(|_| async {
        let mut connection = Connection::open(address).await?;
        let mut waits = Waits::new();
        for _ in 0..requests {
            let sent = now();
            let answer = connection.ask(&ask).await?;
            waits.push(now().duration_since(sent).as_secs_f64() * 1e3);
            if answer.status != 202 {
                return Err(unexpected(&answer));
            }
            rest(REST).await;
        }
        Ok(waits)
    });
    Ok(futures_util::future::try_join_all(all).await?.into_iter().flatten().collect())
}

/// Connections of those who say nothing, or never say all of it.
async fn silent(address: SocketAddr) -> Result<Vec<Connection>, Failure> {
    let some = ["", "GET / HT", "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"];
    let mut silent = Vec::new();
    for number in 0..SILENT {
        let mut connection = Connection::open(address).await?;
        connection.send(some[number % some.len()].as_bytes()).await?;
        silent.push(connection);
    }
    Ok(silent)
}

/// Sends all of these, each on a connection of its own, and again until it is over; answers how many were refused.
#[expect(clippy::disallowed_methods, reason = "a benchmark runs in real time")]
fn ask_badly(
    address: SocketAddr,
    bad: &[Vec<u8>],
    pace: Duration,
    over: &AtomicBool,
) -> Result<usize, Failure> {
    let mut refused = 0;
    loop {
        for sent in bad {
            let told = told(address, sent)?;
            // Who is hung up on before all was sent may hear nothing; that counts for nothing.
            match status_of(&told) {
                Some(400..500) => refused += 1,
                _ if told.is_empty() => {}
                _ => {
                    let told = String::from_utf8_lossy(&told).into_owned();
                    return Err(wrong(format!("unexpected answer to a bad request: {told}")));
                }
            }
            std::thread::sleep(pace);
        }
        if over.load(Ordering::Relaxed) {
            return Ok(refused);
        }
    }
}

/// What is answered until the server hangs up.
fn told(address: SocketAddr, sent: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address).map_err(|error| wrong(error.to_string()))?;
    // The server may have answered and hung up before all of it was sent.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(Shutdown::Write);
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    Ok(told)
}

/// Requests that are refused, of each sort: heads, paths, bodies, and what somebody else has put into a browser.
fn bad() -> Vec<Vec<u8>> {
    let plain = |head: &str| format!("{head}connection: close\r\n\r\n").into_bytes();
    let close = "connection: close\r\n";
    let post = |body: &str| request("POST", "/v1/jobs", close, body);
    let get = |path: &str| request("GET", path, close, "");
    let many = |text: &str, times: usize| text.repeat(times);
    let args = |args: &str| post(&format!("{{\"kind\":\"k\",\"args\":{args}}}"));
    vec![
        plain("\u{16}\u{3}\u{1}\r\n"),
        plain("GET / HTTP/1.1 x\r\nhost: localhost\r\n"),
        plain(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: xchunked\r\n",
        ),
        plain("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 5\r\n"),
        plain(&format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}", many("x: y\r\n", 1_000))),
        plain(&format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n", many("a", 300_000))),
        plain("GET /v1/jobs HTTP/1.1\r\nhost: evil.example\r\n"),
        get("/v1/jobs/%2e%2e"),
        get("/../../etc/passwd"),
        get("/v1/jobs/'%20OR%201=1"),
        get("/v1/jobs?limit=99999999999999999999"),
        get("/v1/jobs?cursor=cffffffffffffffffff"),
        get(&format!("/v1/jobs?q={}", many("x", 3_000))),
        post("{\"kind\":"),
        post("{\"kind\":\"k\",\"nonsense\":1}"),
        args(&format!("{}{}", many("[", 100_000), many("]", 100_000))),
        args(&format!("\"{}\"", many("x", 600_000))),
        request(
            "POST",
            "/v1/jobs/batch",
            close,
            &format!("{{\"jobs\":[{}1]}}", many("{\"kind\":\"k\"},", 1_001)),
        ),
        request(
            "POST",
            "/v1/jobs",
            &format!("origin: https://evil.example\r\nsec-fetch-site: cross-site\r\n{close}"),
            "{}",
        ),
        request("PROPFIND", "/v1/jobs", close, ""),
    ]
}
