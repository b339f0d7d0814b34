//! The floor: the same rows in the bare SQLite driver, with one table and nothing that makes a job
//! system: no fences, no attempts, no counters, no other clients.
//!
//! It bounds from below what any store on SQLite can cost, which makes figures of different machines
//! comparable. It is the only statement of SQL outside of the stores.

use std::path::Path;

use rusqlite::{Connection, Result, TransactionBehavior};

use super::meter::{Meter, Spent};
use super::noop::ARGS;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY, queue INT NOT NULL DEFAULT 1, state INT NOT NULL DEFAULT 0,
        priority INT NOT NULL DEFAULT 0, attempt INT NOT NULL DEFAULT 0, run_at INT NOT NULL DEFAULT 0,
        lease INT, payload TEXT NOT NULL
    );
    CREATE INDEX ready ON jobs (queue, priority, run_at, id) WHERE state = 0;
";
const INSERT: &str = "INSERT INTO jobs (payload) VALUES (?1)";
const CLAIM: &str = "
    UPDATE jobs SET state = 1, attempt = attempt + 1, lease = 1
    WHERE id IN (
        SELECT id FROM jobs WHERE state = 0 AND queue = 1 ORDER BY priority, run_at, id LIMIT ?1
    )
    RETURNING id, payload";
const DONE: &str = "UPDATE jobs SET state = 2, lease = NULL WHERE id = ?1";

/// What it costs to insert so many rows in batches, and then to claim and finish them in batches.
pub(crate) fn life(file: &Path, jobs: usize, batch: usize) -> Result<[Spent; 2]> {
    let mut conn = Connection::open(file)?;
    conn.execute_batch(SCHEMA)?;
    let meter = Meter::start();
    let mut left = jobs;
    while left > 0 {
        insert(&mut conn, left.min(batch))?;
        left = left.saturating_sub(batch);
    }
    let inserted = meter.spent();
    let meter = Meter::start();
    loop {
        let ids = claim(&mut conn, batch)?;
        if ids.is_empty() {
            break;
        }
        finish(&mut conn, &ids)?;
    }
    Ok([inserted, meter.spent()])
}

fn insert(conn: &mut Connection, rows: usize) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut insert = tx.prepare_cached(INSERT)?;
    for _ in 0..rows {
        insert.execute([ARGS])?;
    }
    drop(insert);
    tx.commit()
}

fn claim(conn: &mut Connection, rows: usize) -> Result<Vec<i64>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut claim = tx.prepare_cached(CLAIM)?;
    let claimed = claim.query_map([rows as i64], |row| {
        // A worker needs the payload, so it is read here as well.
        std::hint::black_box(row.get_ref(1)?.as_str()?.len());
        row.get(0)
    })?;
    let ids = claimed.collect::<Result<Vec<i64>>>()?;
    drop(claim);
    tx.commit()?;
    Ok(ids)
}

fn finish(conn: &mut Connection, ids: &[i64]) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut done = tx.prepare_cached(DONE)?;
    for id in ids {
        done.execute([id])?;
    }
    drop(done);
    tx.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_floor_is_finished_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("floor.db");
        life(&file, 250, 100).unwrap();
        let conn = Connection::open(&file).unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM jobs WHERE state = 2 AND attempt = 1"), 250);
        assert_eq!(count("SELECT count(*) FROM jobs"), 250);
    }
}
