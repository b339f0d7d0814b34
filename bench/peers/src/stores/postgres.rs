//! PostgreSQL: a server for the run, and a database of its own for each figure.

use std::any::Any;

use own_postgres::Server as Own;
use postgres::{Client, NoTls};
use serde_json::{Value, json};

use super::Meters;
use crate::{Outcome, meter};

/// Durability as it comes; memory and checkpoints so that neither decides.
const SETTINGS: &[&str] =
    &["shared_buffers=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min", "max_connections=400"];
const WITH_STATEMENTS: &[&str] =
    &["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=on"];

/// Which statements cost the server most: milliseconds of running and of planning, how often they were planned and run.
const COSTLIEST: &str = "
    SELECT total_exec_time, total_plan_time, plans, calls, rows, wal_bytes::float8,
        left(regexp_replace(query, '\\s+', ' ', 'g'), 300)
    FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY total_exec_time + total_plan_time DESC LIMIT 12";

/// A server of our own, gone with the run.
pub struct Server {
    own: Own,
    tells_statements: bool,
}

impl Server {
    pub fn start(tells_statements: bool) -> Outcome<Self> {
        let more = if tells_statements { WITH_STATEMENTS } else { &[] };
        Ok(Self { own: Own::start_with(&[SETTINGS, more].concat())?, tells_statements })
    }

    pub fn empty_database(&self) -> Outcome<Database> {
        let mut client = Client::connect(&self.own.url(), NoTls)?;
        client.batch_execute("DROP DATABASE IF EXISTS bench WITH (FORCE)")?;
        client.batch_execute("CREATE DATABASE bench")?;
        let url = format!("postgres://postgres@127.0.0.1:{}/bench", self.own.port());
        let mut client = Client::connect(&url, NoTls)?;
        if self.tells_statements {
            client.batch_execute("CREATE EXTENSION pg_stat_statements; SELECT pg_stat_statements_reset()")?;
        }
        let postmaster = std::fs::read_to_string(self.own.directory().join("data/postmaster.pid"))?;
        let postmaster = postmaster.lines().next().ok_or("an empty pid file")?.parse()?;
        Ok(Database { url, client, postmaster, tells_statements: self.tells_statements })
    }

    /// Its version and settings.
    pub fn describe(&self) -> Outcome<Value> {
        let mut client = Client::connect(&self.own.url(), NoTls)?;
        let version: String = client.query_one("SHOW server_version", &[])?.get(0);
        Ok(json!({ "version": version, "settings": SETTINGS }))
    }
}

/// The database of one figure.
pub struct Database {
    url: String,
    /// The process number of its server.
    postmaster: i32,
    client: Client,
    tells_statements: bool,
}

impl super::Database for Database {
    fn url(&self) -> &str {
        &self.url
    }

    fn rest(&mut self) -> Outcome {
        self.client.batch_execute("VACUUM ANALYZE")?;
        Ok(self.client.batch_execute("CHECKPOINT")?)
    }

    fn meters(&mut self) -> Outcome<Meters> {
        let place = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8";
        let log = self.client.query_one(place, &[])?.get(0);
        Ok(Meters { cpu: Some(meter::of_server(self.postmaster)), log: Some(log) })
    }

    fn count(&mut self, statement: &str) -> Outcome<i64> {
        Ok(self.client.query_one(statement, &[])?.get(0))
    }

    fn pin(&self) -> Outcome<Box<dyn Any>> {
        let mut client = Client::connect(&self.url, NoTls)?;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")?;
        Ok(Box::new(client))
    }

    fn tell_statements(&mut self, of: &str) -> Outcome {
        if !self.tells_statements {
            return Ok(());
        }
        eprintln!("{of}:     ms    plan ms   plans   calls    rows  log MiB");
        for row in self.client.query(COSTLIEST, &[])? {
            let (ms, plan_ms, plans, calls): (f64, f64, i64, i64) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            let (rows, log, statement): (i64, f64, &str) = (row.get(4), row.get(5), row.get(6));
            let log = log / 1_048_576.0;
            eprintln!("{ms:>10.0} {plan_ms:>10.0} {plans:>7} {calls:>7} {rows:>7} {log:>8.1} {statement}");
        }
        Ok(self.client.batch_execute("SELECT pg_stat_statements_reset()")?)
    }
}
