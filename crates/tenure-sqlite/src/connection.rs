//! Connections and how they are set up.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

use crate::Options;

/// Marks the file as one of Tenure: "TNUR".
pub(crate) const APPLICATION_ID: i32 = 0x544E_5552;

/// Pages of the log after which it is worked into the file: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4000;

/// Memory for pages of the writer and of each reader, in KiB. What is written lies close together, and the
/// system keeps the rest; a larger cache makes some commits dearer, because SQLite walks through all of it
/// after it has reused a free page.
const WRITER_CACHE_KIB: u32 = 16 * 1024;
const READER_CACHE_KIB: u32 = 4 * 1024;

/// Statements that the writer and each reader keep prepared.
pub(crate) const WRITER_STATEMENTS: usize = 192;
pub(crate) const READER_STATEMENTS: usize = 96;

/// The one connection that writes.
pub(crate) fn writing(path: &Path, options: &Options) -> Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | common())?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.execute_batch(&format!(
        "PRAGMA synchronous = {};
         PRAGMA foreign_keys = OFF;
         PRAGMA trusted_schema = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{WRITER_CACHE_KIB};
         PRAGMA journal_size_limit = 67108864;
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};",
        options.durability.synchronous(),
    ))?;
    conn.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
    keep_plans(&conn)?;
    Ok(conn)
}

/// A connection that only reads.
pub(crate) fn reading(path: &Path, options: &Options) -> Result<Connection> {
    // It is opened for writing all the same: a connection that may not write cannot take part in the
    // log's upkeep when it happens to be the last one.
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | common())?;
    conn.busy_timeout(options.busy_timeout)?;
    set_up_reading(&conn)?;
    Ok(conn)
}

/// Whatever reads has the same memory, and changes nothing.
pub(crate) fn set_up_reading(conn: &Connection) -> Result<()> {
    conn.execute_batch(&format!(
        "PRAGMA query_only = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{READER_CACHE_KIB};",
    ))?;
    conn.set_prepared_statement_cache_capacity(READER_STATEMENTS);
    keep_plans(conn)
}

/// Otherwise SQLite prepares a statement anew, silently, whenever a value is bound that might make a partial
/// index or a bound of use, or that is 0 or 1 where the last one was not. That costs more than the statement.
fn keep_plans(conn: &Connection) -> Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// No shared cache and no lock inside: each connection belongs to one thread.
pub(crate) fn common() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE
}
