//! What the server does in a second, and what that costs: `tenure bench --http`.

mod hostile;
mod idle;
mod server;
mod soak;
mod wire;

use std::time::Instant;

use serde_json::{Value, json};

use self::server::Server;
use self::wire::{Answer, Connection, request, wrong};
use super::figure::{Figure, Round, share};
use super::ground::Ground;
use super::meter::{Meter, Spent, bounded, now};
use super::sizes::Sizes;
use crate::exit::Failure;
use crate::files;

/// Connections that ask at the same time.
const CROWD: usize = 64;
/// Connections that send batches.
const FEW: usize = 4;
/// Jobs in a batch.
const BATCH: usize = 100;

/// All figures of the server.
pub(super) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    files::allow_many();
    let facts = ground.facts()?;
    let mut rounds: [(&str, Vec<Round>); 4] =
        ["http_submit", "http_batch", "http_settle", "http_status"].map(|name| (name, Vec::new()));
    let mut starts = Vec::new();
    for _ in 0..sizes.rounds {
        let server = Server::start(&ground.http_url()).await?;
        starts.push((server.ready.as_secs_f64() * 1e3, server.rss_mib()));
        rounds[0].1.push(bounded("http_submit", submit(&server, sizes)).await?);
        rounds[1].1.push(bounded("http_batch", batches(&server, sizes.jobs)).await?);
        rounds[2].1.push(bounded("http_settle", settle(&server, sizes)).await?);
        rounds[3].1.push(bounded("http_status", status(&server, sizes)).await?);
        drop(server);
        ground.clear();
    }
    let figures = rounds.iter().map(|(name, rounds)| Figure::of(name, rounds).with_all(&facts));
    let mut figures: Vec<Figure> = figures.collect();
    figures.push(bounded("http_idle", idle::measure(ground, sizes)).await?.with_all(&facts));
    let ready = super::figure::median(starts.iter().map(|(ready, _)| *ready));
    let rss = super::figure::median(starts.iter().filter_map(|(_, rss)| *rss));
    let start = Figure::bare("http_start", 0).with_some("ready_ms", ready).with_some("rss_mib", rss);
    figures.push(start.with_all(&facts));
    Ok(figures)
}

/// What healthy clients wait for beside others.
pub(super) async fn beside_hostile(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    files::allow_many();
    let figure = bounded("http_hostile", hostile::measure(ground, sizes)).await?;
    Ok(vec![figure.with_all(&ground.facts()?)])
}

/// Memory, files and threads of a server under a steady load for as long as the sizes say.
pub(super) async fn soak(ground: &Ground, sizes: &Sizes, rate: u32) -> Result<Vec<Figure>, Failure> {
    Ok(vec![soak::measure(ground, sizes.soak, rate).await?.with_all(&ground.facts()?)])
}

/// What is measured of one that asks: how long each of its answers took.
type Waits = Vec<f64>;

/// A crowd that asks: each sends what it is given, one after the other, until it has nothing more to send.
async fn crowd(
    server: &Server,
    asks: Vec<impl Iterator<Item = Vec<u8>>>,
    wanted: u16,
    per_request: usize,
) -> Result<Round, Failure> {
    let mut connections = Vec::new();
    for ask in asks {
        connections.push((Connection::open(server.address()).await?, ask));
    }
    let meter = Measured::start(server);
    let all = connections.into_iter().map(|(mut connection, asks)| async move {
        let mut waits: Waits = Vec::new();
        for ask in asks {
            let sent: Instant = now();
            let answer = connection.ask(&ask).await?;
            waits.push(now().duration_since(sent).as_secs_f64() * 1e3);
            if answer.status != wanted {
                return Err(unexpected(&answer));
            }
        }
        Ok(waits)
    });
    let mut waits: Waits = futures_util::future::try_join_all(all).await?.into_iter().flatten().collect();
    let jobs = waits.len() * per_request;
    Ok(meter.round(server, jobs, &mut waits))
}

/// What client and server have spent since a round began.
struct Measured {
    client: Meter,
    cpu_us: Option<f64>,
    written: Option<f64>,
}

impl Measured {
    fn start(server: &Server) -> Self {
        Self { client: Meter::start(), cpu_us: server.cpu_us(), written: server.written() }
    }

    fn round(self, server: &Server, jobs: usize, waits: &mut Waits) -> Round {
        let since = |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| now - then);
        let spent = Spent { written: since(server.written(), self.written), ..self.client.spent() };
        let cpu = since(server.cpu_us(), self.cpu_us).unwrap_or(f64::NAN);
        let more = vec![
            ("p50_ms", share(waits, 0.5)),
            ("p99_ms", share(waits, 0.99)),
            ("server_cpu_us_per_job", cpu / jobs.max(1) as f64),
        ];
        Round { jobs, spent, more }
    }
}

fn unexpected(answer: &Answer) -> Failure {
    wrong(format!("the server answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body)))
}

/// A job with a hundred bytes of args.
fn job() -> Value {
    json!({ "kind": "no_op", "args": { "sent_us": 0, "padding": "x".repeat(70) } })
}

/// One job a request, from many connections.
async fn submit(server: &Server, sizes: &Sizes) -> Result<Round, Failure> {
    let each = (sizes.http_requests / CROWD).max(1);
    let ask = request("POST", "/v1/jobs", "prefer: return=minimal\r\n", &job().to_string());
    crowd(server, (0..CROWD).map(|_| std::iter::repeat_n(ask.clone(), each)).collect(), 202, 1).await
}

/// A hundred jobs a request, from a few connections.
async fn batches(server: &Server, jobs: usize) -> Result<Round, Failure> {
    let each = (jobs / BATCH / FEW).max(1);
    let body = json!({ "jobs": vec![job(); BATCH] }).to_string();
    let ask = request("POST", "/v1/jobs/batch", "", &body);
    crowd(server, (0..FEW).map(|_| std::iter::repeat_n(ask.clone(), each)).collect(), 202, BATCH).await
}

/// One worker that settles a hundred jobs and claims the next hundred in one request, until none is left.
async fn settle(server: &Server, sizes: &Sizes) -> Result<Round, Failure> {
    let mut worker = Connection::open(server.address()).await?;
    let claim = json!({ "limit": BATCH, "lease_seconds": 60 });
    let (meter, mut waits, mut done) = (Measured::start(server), Waits::new(), 0);
    let mut ask = request("POST", "/v1/claim", "", &claim.to_string());
    while done < sizes.http_requests {
        let sent = now();
        let answer = worker.ask(&ask).await?;
        waits.push(now().duration_since(sent).as_secs_f64() * 1e3);
        if answer.status != 200 {
            return Err(unexpected(&answer));
        }
        let told: Value = serde_json::from_slice(&answer.body).map_err(|error| wrong(error.to_string()))?;
        let jobs = told["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        if jobs.is_empty() {
            break;
        }
        done += jobs.len();
        let outcome =
            |job: &Value| json!({ "job_id": job["id"], "token": job["token"], "outcome": "complete" });
        let items: Vec<Value> = jobs.iter().map(outcome).collect();
        ask = request("POST", "/v1/settle", "", &json!({ "items": items, "claim": claim }).to_string());
    }
    Ok(meter.round(server, done, &mut waits))
}

/// Looking at one job, from many connections.
async fn status(server: &Server, sizes: &Sizes) -> Result<Round, Failure> {
    let mut one = Connection::open(server.address()).await?;
    let accepted = one.ask(&request("POST", "/v1/jobs", "", &job().to_string())).await?;
    let told: Value = serde_json::from_slice(&accepted.body).map_err(|error| wrong(error.to_string()))?;
    let id = told["id"].as_str().ok_or_else(|| unexpected(&accepted))?;
    let ask = request("GET", &format!("/v1/jobs/{id}"), "", "");
    let each = (sizes.http_requests / CROWD).max(1);
    crowd(server, (0..CROWD).map(|_| std::iter::repeat_n(ask.clone(), each)).collect(), 200, 1).await
}
