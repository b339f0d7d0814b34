//! The floor on SQLite: the same rows in the bare driver, one table, one index for the line, no id, no guard.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use rusqlite::{Connection, TransactionBehavior};

const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000";
const SCHEMA: &str = "
    CREATE TABLE job (id INTEGER PRIMARY KEY, queue INT NOT NULL DEFAULT 1, state INT NOT NULL DEFAULT 0,
        priority INT NOT NULL DEFAULT 0, attempt INT NOT NULL DEFAULT 0, run_at INT NOT NULL DEFAULT 0, lease INT,
        payload TEXT NOT NULL);
    CREATE INDEX job_line ON job (queue, priority, run_at, id) WHERE state = 0";
const INSERT: &str = "INSERT INTO job (payload) VALUES (?1)";
const CLAIM: &str = "
    UPDATE job SET state = 1, attempt = attempt + 1, lease = 1
    WHERE id IN (SELECT id FROM job WHERE state = 0 AND queue = 1 ORDER BY priority, run_at, id LIMIT 500)
    RETURNING id, payload";
const END: &str = "UPDATE job SET state = 2, lease = NULL WHERE id = ?1";

/// How long it waits when there was nothing to claim.
const PAUSE: Duration = Duration::from_millis(1);

struct Floor;

/// One connection for all clients: SQLite lets one write at a time.
#[derive(Clone)]
struct Inserting(Arc<Mutex<Connection>>);

fn connect() -> Outcome<Connection> {
    let url = url();
    let connection = Connection::open(url.strip_prefix("sqlite://").ok_or("not a URL of SQLite")?)?;
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

/// One statement for each of these, all in one transaction.
fn for_each<T: rusqlite::ToSql>(connection: &mut Connection, statement: &str, all: &[T]) -> Outcome {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut prepared = transaction.prepare_cached(statement)?;
    for one in all {
        prepared.execute([one])?;
    }
    drop(prepared);
    Ok(transaction.commit()?)
}

/// The ids of those that have begun.
fn claim(connection: &mut Connection) -> Outcome<Vec<i64>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut prepared = transaction.prepare_cached(CLAIM)?;
    let claimed = prepared.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let claimed: Vec<(i64, String)> = claimed.collect::<Result<_, _>>()?;
    drop(prepared);
    transaction.commit()?;
    let mut ids = Vec::with_capacity(claimed.len());
    for (id, payload) in claimed {
        begun(&serde_json::from_str(&payload)?);
        ids.push(id);
    }
    Ok(ids)
}

fn work_until(stopped: &AtomicBool, mut connection: Connection) -> Outcome {
    while !stopped.load(Ordering::Relaxed) {
        let ids = claim(&mut connection)?;
        if ids.is_empty() {
            std::thread::sleep(PAUSE);
            continue;
        }
        for_each(&mut connection, END, &ids)?;
    }
    Ok(())
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        self.many(vec![args]).await
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        let all = all.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        for_each(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), INSERT, &all)
    }
}

impl Contestant for Floor {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        Ok(connect()?.execute_batch(SCHEMA)?)
    }

    async fn producer(&self, _clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(Arc::new(Mutex::new(connect()?))))
    }

    async fn work(&self) -> Outcome<Ending> {
        let (connection, stopped) = (connect()?, Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stopped);
        let working = tokio::task::spawn_blocking(move || work_until(&stopped, connection));
        Ok(Box::pin(async move {
            stop.store(true, Ordering::Relaxed);
            working.await?
        }))
    }
}

fn main() -> ExitCode {
    compete(Floor)
}
