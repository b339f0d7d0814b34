//! What a stretch of work cost: CPU of the database and of this process, log written, time.

use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;
use tokio_postgres::Client;

/// Costs that add up. CPU and time in seconds, log in bytes.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub database: f64,
    pub client: f64,
    pub log: f64,
    pub wall: f64,
}

impl Cost {
    pub fn add(&mut self, other: Cost) {
        self.database += other.database;
        self.client += other.client;
        self.log += other.log;
        self.wall += other.wall;
    }
}

/// Reads the meters of one server.
pub struct Meter {
    server: i32,
    client: Client,
}

/// Where the meters stood.
pub struct Reading {
    at: Instant,
    database: f64,
    client: f64,
    log: f64,
}

impl Meter {
    pub fn new(server: i32, client: Client) -> Meter {
        Meter { server, client }
    }

    pub async fn read(&self) -> Result<Reading, tokio_postgres::Error> {
        let row = self
            .client
            .query_one("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8", &[])
            .await?;
        Ok(Reading { log: row.get(0), database: of_server(self.server), client: own(), at: Instant::now() })
    }

    /// What was spent since an earlier reading.
    pub async fn since(&self, before: Reading) -> Result<Cost, tokio_postgres::Error> {
        let wall = before.at.elapsed().as_secs_f64();
        let now = self.read().await?;
        Ok(Cost {
            wall,
            database: now.database - before.database,
            client: now.client - before.client,
            log: now.log - before.log,
        })
    }
}

/// CPU seconds of this process.
fn own() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// CPU seconds of the server: itself, the processes it has, and those it had.
fn of_server(server: i32) -> f64 {
    let mut seconds = nanoseconds_run(server) + reaped(server);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if fields(process).first().is_some_and(|parent| *parent == f64::from(server)) {
            seconds += nanoseconds_run(process);
        }
    }
    seconds
}

/// The scheduler counts in nanoseconds; the ticks of `stat` are too coarse for a batch.
fn nanoseconds_run(process: i32) -> f64 {
    let line = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    line.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// CPU seconds of children that have ended.
fn reaped(process: i32) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let fields = fields(process);
    fields.get(12).zip(fields.get(13)).map_or(0.0, |(user, system)| (user + system) / TICKS_PER_SECOND)
}

/// The numbers of `stat` from the parent on.
fn fields(process: i32) -> Vec<f64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let Some((_, rest)) = line.rsplit_once(") ") else { return Vec::new() };
    rest.split(' ').skip(1).map(|text| text.trim().parse().unwrap_or(0.0)).collect()
}
