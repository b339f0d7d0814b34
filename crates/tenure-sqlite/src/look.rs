//! Looking at a file that may not be written, or beside which nothing may be put.

use std::path::Path;

use rusqlite::{Connection, Error, ErrorCode};
use tenure_core::Epoch;
use tenure_store::Fault;

use crate::connection::{reading, set_up_reading};
use crate::fault::fault_of;
use crate::inspect::{broken, has_log, look_past_locks, look_through_locks, of_file};
use crate::{Options, epoch, schema};

/// What there is to do about a file whose log cannot be read.
const LOG: &str = "the latest writes are in the file's -wal log, which cannot be read from a read-only directory; copy both files to a writable directory";

/// A connection that reads: if it can be, one that takes part in the upkeep of the log.
pub(crate) fn read_or_look(path: &Path, options: &Options) -> Result<Connection, Fault> {
    match reading(path, options).and_then(probed) {
        Ok(conn) => Ok(conn),
        Err(error) if may_not_write(&error) => looking(path, options),
        Err(error) => Err(of_file(path, fault_of(&error))),
    }
}

/// A connection that only looks. Without a log nobody is writing to the file, and it is read alone.
pub(crate) fn looking(path: &Path, options: &Options) -> Result<Connection, Fault> {
    let has_log = has_log(path);
    let conn = if has_log { look_through_locks(path, options.busy_timeout) } else { look_past_locks(path) };
    let conn = conn.and_then(probed).map_err(|error| of_look(path, &error))?;
    set_up_reading(&conn).map_err(|error| of_file(path, fault_of(&error)))?;
    Ok(conn)
}

/// The fault of a look, which says what to do if it is the log that cannot be read.
pub(crate) fn of_look(path: &Path, error: &Error) -> Fault {
    if has_log(path) && may_not_write(error) { broken(path, LOG) } else { of_file(path, fault_of(error)) }
}

/// The epoch of a file that is only looked at: it has to be up to date.
pub(crate) fn current_epoch(conn: &Connection, path: &Path) -> Result<Epoch, Fault> {
    let fail = |error: Error| of_file(path, fault_of(&error));
    let here: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fail)?;
    if here != i64::from(schema::known()) {
        return Err(broken(
            path,
            format_args!(
                "its schema version {here} is too old, and the file is not writable, so it cannot be migrated"
            ),
        ));
    }
    epoch::read(conn).map_err(fail)
}

/// SQLite opens a file when it is read for the first time.
fn probed(conn: Connection) -> rusqlite::Result<Connection> {
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

/// Whether SQLite was kept from the file, or from what it puts beside it.
fn may_not_write(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}
