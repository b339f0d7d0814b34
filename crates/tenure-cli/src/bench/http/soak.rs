//! Memory, files and threads of a server under a steady load, over as long a time as is asked for.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::job;
use super::server::{Held, Server};
use super::wire::{Connection, request, wrong};
use crate::bench::figure::{Figure, median, rounded};
use crate::bench::ground::Ground;
use crate::bench::meter::{now, rest};
use crate::exit::Failure;
use crate::screen::print;

/// Clients, each with a connection and a queue.
const CLIENTS: u32 = 4;
/// Requests of a client's round.
const ROUND: u32 = 10;
/// Lease names that come back. One round in ten takes a name that was never used before.
const NAMES: u64 = 1_000;
/// Time between two samples, unless the run is short.
const SAMPLE: Duration = Duration::from_secs(10);
/// Length of the first and the last part of the run that the summary compares.
const PART: Duration = Duration::from_secs(600);

/// A sample of the server.
struct Sample {
    at: Duration,
    held: Held,
}

/// The pace of each client.
#[derive(Clone, Copy)]
struct Pace {
    end: Instant,
    /// Time from the start of a round to the start of the next.
    period: Duration,
}

/// Counts of the requests so far.
#[derive(Default)]
struct Counts {
    sent: Cell<usize>,
    /// Requests that were answered with another status than the expected one.
    unexpected: Cell<usize>,
}

/// Sends this many requests a second for this long, prints a line for each sample, and summarizes them.
pub(super) async fn measure(ground: &Ground, span: Duration, rate: u32) -> Result<Figure, Failure> {
    let server = Server::start(&ground.http_url()).await?;
    let (begun, counts) = (now(), Counts::default());
    let pace = Pace { end: begun + span, period: Duration::from_secs(1) * (CLIENTS * ROUND) / rate };
    let clients = (0..CLIENTS).map(|client| load(&server, client, pace, &counts));
    let watched = watch(&server, begun, span, &counts);
    let (loaded, samples) = tokio::join!(futures_util::future::try_join_all(clients), watched);
    loaded?;
    Ok(summary(&samples?, span)
        .with("requests_per_s", rounded(counts.sent.get() as f64 / span.as_secs_f64()))
        .with("unexpected", counts.unexpected.get()))
}

async fn watch(
    server: &Server,
    begun: Instant,
    span: Duration,
    counts: &Counts,
) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    let (pause, mut at) = (SAMPLE.min(span / 10), Duration::ZERO);
    while at < span {
        rest(pause).await;
        at = now().duration_since(begun);
        let held = server.held().ok_or_else(|| wrong("the system does not show the server's memory"))?;
        let line = Figure::bare("http_soak_sample", 0)
            .with("requests", counts.sent.get())
            .with("seconds", at.as_secs())
            .with("anonymous_mib", rounded(held.anonymous_mib))
            .with("rss_mib", server.rss_mib().map(rounded))
            .with("files", held.files)
            .with("threads", held.threads);
        print(&line.to_json());
        samples.push(Sample { at, held });
    }
    Ok(samples)
}

/// The medians of the first and the last part.
fn summary(samples: &[Sample], span: Duration) -> Figure {
    let part = PART.min(span / 3);
    let first = |sample: &&Sample| sample.at <= part;
    let last = |sample: &&Sample| sample.at >= span.saturating_sub(part);
    let middle = |is_in: &dyn Fn(&&Sample) -> bool, value: fn(&Held) -> f64| {
        median(samples.iter().filter(is_in).map(|sample| value(&sample.held))).map(rounded)
    };
    Figure::bare("http_soak", 0)
        .with("seconds", span.as_secs())
        .with("anonymous_mib_first", middle(&first, |held| held.anonymous_mib))
        .with("anonymous_mib_last", middle(&last, |held| held.anonymous_mib))
        .with("files_first", middle(&first, |held| held.files as f64))
        .with("files_last", middle(&last, |held| held.files as f64))
        .with("threads_first", middle(&first, |held| held.threads as f64))
        .with("threads_last", middle(&last, |held| held.threads as f64))
}

/// The rounds of one client, until the time is over.
async fn load(server: &Server, client: u32, pace: Pace, counts: &Counts) -> Result<(), Failure> {
    let mut client = Client { connection: Connection::open(server.address()).await?, number: client, counts };
    let mut next = now();
    for round in 0.. {
        let at = now();
        if at >= pace.end {
            break;
        }
        // A client that is late does not catch up: the load stays steady.
        next = next.max(at) + pace.period;
        client.life(round).await?;
        client.lease(round).await?;
        client.reads().await?;
        rest(next.saturating_duration_since(now())).await;
    }
    Ok(())
}

struct Client<'a> {
    connection: Connection,
    number: u32,
    counts: &'a Counts,
}

impl Client<'_> {
    /// Submits a job, claims, reads and completes it: four requests.
    async fn life(&mut self, round: u64) -> Result<(), Failure> {
        let queue = format!("soak-{}", self.number);
        let mut submitted = job();
        submitted["queue"] = json!(queue);
        let key = format!("idempotency-key: \"soak-{}-{round}\"\r\n", self.number);
        self.send("POST", "/v1/jobs", &key, &submitted.to_string(), 202).await?;
        let claim = json!({ "queues": [queue], "lease_seconds": 30 });
        let claimed = self.send("POST", "/v1/claim", "", &claim.to_string(), 200).await?;
        let job = &claimed["jobs"][0];
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap_or("none"));
        self.send("GET", &path, "", "", 200).await?;
        let done = json!({ "token": job["token"], "result": { "round": round } });
        self.send("POST", &format!("{path}/complete"), "", &done.to_string(), 200).await.map(drop)
    }

    /// Acquires, renews and releases a lease: three requests.
    async fn lease(&mut self, round: u64) -> Result<(), Failure> {
        let name = if round.is_multiple_of(10) { round } else { round % NAMES };
        let path = format!("/v1/leases/soak-{}-{name}", self.number);
        let wanted = json!({ "owner": "soak", "ttl_seconds": 15 });
        let held = self.send("POST", &format!("{path}/acquire"), "", &wanted.to_string(), 200).await?;
        let token = json!({ "token": held["token"] }).to_string();
        self.send("POST", &format!("{path}/renew"), "", &token, 200).await?;
        self.send("POST", &format!("{path}/release"), "", &token, 204).await.map(drop)
    }

    /// Asks for work where there is none, lists jobs, and asks for the health: three requests.
    async fn reads(&mut self) -> Result<(), Failure> {
        self.send("POST", "/v1/claim", "", r#"{"queues":["soak-empty"]}"#, 200).await?;
        self.send("GET", "/v1/jobs?limit=20", "", "", 200).await?;
        self.send("GET", "/readyz", "", "", 200).await.map(drop)
    }

    /// Sends a request and counts it. Returns its body, or null if that is no JSON.
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
        wanted: u16,
    ) -> Result<Value, Failure> {
        let answer = self.connection.ask(&request(method, path, headers, body)).await?;
        self.counts.sent.set(self.counts.sent.get() + 1);
        if answer.status != wanted {
            self.counts.unexpected.set(self.counts.unexpected.get() + 1);
        }
        Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_part_are_compared() {
        let sample = |seconds: u64, anonymous_mib| Sample {
            at: Duration::from_secs(seconds),
            held: Held { anonymous_mib, files: 9, threads: 4 },
        };
        let samples: Vec<Sample> = (1..=9).map(|second| sample(second, second as f64)).collect();
        let figure: Value =
            serde_json::from_str(&summary(&samples, Duration::from_secs(9)).to_json()).unwrap();
        assert_eq!(
            (&figure["anonymous_mib_first"], &figure["anonymous_mib_last"]),
            (&json!(2.0), &json!(7.5))
        );
        assert_eq!((&figure["files_last"], &figure["threads_first"]), (&json!(9.0), &json!(4.0)));
    }
}
