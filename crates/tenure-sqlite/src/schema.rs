//! The schema: ordered steps, each of which ran once and is kept word by word in the file.

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior};
use tenure_core::Epoch;
use tenure_store::Fault;

use crate::connection::APPLICATION_ID;
use crate::fault::fault_of;
use crate::{copying, epoch};

struct Step {
    name: &'static str,
    sql: &'static str,
}

/// A step that was released is never edited: the file of every user holds its text.
const STEPS: &[Step] = &[
    Step { name: "0001_jobs", sql: include_str!("migrations/0001_jobs.sql") },
    Step { name: "0002_leases", sql: include_str!("migrations/0002_leases.sql") },
    Step { name: "0003_timers", sql: include_str!("migrations/0003_timers.sql") },
    Step { name: "0004_records", sql: include_str!("migrations/0004_records.sql") },
    Step { name: "0005_ended", sql: include_str!("migrations/0005_ended.sql") },
    Step { name: "0006_queue_terms", sql: include_str!("migrations/0006_queue_terms.sql") },
    Step { name: "0007_floor", sql: include_str!("migrations/0007_floor.sql") },
    Step { name: "0008_quarantine", sql: include_str!("migrations/0008_quarantine.sql") },
    Step { name: "0009_lost_hosts", sql: include_str!("migrations/0009_lost_hosts.sql") },
    Step { name: "0010_needed", sql: include_str!("migrations/0010_needed.sql") },
];

const MIGRATION: &str = "CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    sql    TEXT NOT NULL
) STRICT";

/// Refuses the schema of a later version.
pub(crate) fn check_version(version: i64) -> Result<(), Fault> {
    if version <= latest() {
        return Ok(());
    }
    Err(Fault::Broken(format!(
        "its schema version {version} is newer than this program supports ({}); update this program",
        latest()
    )))
}

/// Brings the schema up to date, in one transaction: several programs may start at once.
/// Returns the epoch of the file: the one that `follows` the last one, unless the file was made here. It is written with
/// the first change. Also returns `true` if the file is a backup that was never changed.
pub(crate) fn migrate(
    conn: &mut Connection,
    follows: impl FnOnce(Epoch) -> Epoch,
) -> Result<(Epoch, bool), Fault> {
    let fail = |error: rusqlite::Error| fault_of(&error);
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let version = number(&txn, "PRAGMA user_version").map_err(fail)?;
    check_version(version)?;
    if version == 0 {
        txn.execute(MIGRATION, []).map_err(fail)?;
        txn.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
    }
    for (number, step) in (1_i64..).zip(STEPS) {
        if number <= version {
            check_step(&txn, number, step)?;
            continue;
        }
        txn.execute_batch(step.sql).map_err(fail)?;
        txn.execute(
            "INSERT INTO migration (number, name, sql) VALUES (?1, ?2, ?3)",
            (number, step.name, step.sql),
        )
        .map_err(fail)?;
    }
    txn.pragma_update(None, "user_version", latest()).map_err(fail)?;
    if copying::is_part(&txn).map_err(fail)? {
        return Err(Fault::Broken(copying::PART.to_owned()));
    }
    let mut epoch = epoch::read(&txn).map_err(fail)?;
    if version > 0 {
        epoch = follows(epoch);
    }
    let is_new_backup = epoch::is_new_backup(&txn).map_err(fail)?;
    txn.commit().map_err(fail)?;
    Ok((epoch, is_new_backup))
}

fn latest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The number of the schema that this program works with.
pub(crate) fn known() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}

/// What brings a schema up to date by hand; empty if nothing is missing.
pub(crate) fn script(from: u32) -> String {
    use std::fmt::Write as _;
    if from >= known() {
        return String::new();
    }
    let mut sql = format!("-- Tenure: schema version {from} to {}.\nBEGIN IMMEDIATE;\n", known());
    if from == 0 {
        let _ = write!(sql, "{MIGRATION};\nPRAGMA application_id = {APPLICATION_ID};\n");
    }
    for (number, step) in (1_u32..).zip(STEPS).skip(from as usize) {
        let Step { name, sql: text } = step;
        let kept = text.replace('\'', "\'\'");
        let _ = write!(sql, "\n-- Step {name}\n{text}\n");
        let _ =
            writeln!(sql, "INSERT INTO migration (number, name, sql) VALUES ({number}, '{name}', '{kept}');");
    }
    let _ = write!(sql, "PRAGMA user_version = {};\nCOMMIT;\n", known());
    sql
}

fn check_step(conn: &Connection, number: i64, step: &Step) -> Result<(), Fault> {
    let sql: Option<String> = conn
        .query_row("SELECT sql FROM migration WHERE number = ?1", [number], |row| row.get(0))
        .optional()
        .map_err(|error| fault_of(&error))?;
    if sql.as_deref() == Some(step.sql) {
        return Ok(());
    }
    Err(Fault::Broken(format!(
        "schema step {} differs from the one in this program; use the program version that created the store",
        step.name
    )))
}

fn number(conn: &Connection, sql: &str) -> Result<i64> {
    conn.query_row(sql, [], |row| row.get(0))
}
