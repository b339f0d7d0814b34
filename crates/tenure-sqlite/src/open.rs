//! Opening a file: look first, then create, bring up to date, and switch to the log.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB};
use tenure_core::Epoch;
use tenure_store::{Chance, Clock, Fault};

use crate::connection::{READER_STATEMENTS, WRITER_STATEMENTS, writing};
use crate::fault::fault_of;
use crate::inspect::{broken, inspect, keep_open, of_file};
use crate::look::{current_epoch, looking};
use crate::pause::pause;
use crate::{Options, private, schema};

/// The first SQLite without the bug that could lose a log when two connections worked it in.
const OLDEST_SQLITE: i32 = 3_051_003;
/// How long to wait between two tries to switch to the log while another program starts, too.
const SWITCH_AGAIN: Duration = Duration::from_millis(5);

/// SQLite's name for a database in memory, which only its own connection sees.
pub(crate) const IN_MEMORY: &str = ":memory:";

/// A file that is ready for use.
pub(crate) struct Opened {
    pub conn: Connection,
    pub epoch: Epoch,
    /// `true` for a backup that no program has changed.
    pub is_new_backup: bool,
    pub way: Way,
}

/// Opens a file for writing, in the epoch that `follows` its last one.
pub(crate) fn open(
    path: &Path,
    options: &Options,
    follows: impl FnOnce(Epoch) -> Epoch,
) -> Result<Opened, Fault> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(Fault::Broken(format!(
            "SQLite {} is too old; 3.51.3 is the first version that cannot lose its write-ahead log",
            rusqlite::version()
        )));
    }
    inspect(path, options.busy_timeout)?;
    create(path)?;
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let mut conn = writing(path, options).map_err(fail)?;
    // SQLite opens a file that may not be written all the same, and says so with the first write.
    if conn.is_readonly(MAIN_DB).map_err(fail)? {
        return Err(broken(path, "the file is not writable; check its permissions"));
    }
    let (epoch, is_new_backup) = schema::migrate(&mut conn, follows).map_err(|fault| of_file(path, fault))?;
    switch_to_log(&conn, options).map_err(|fault| of_file(path, fault))?;
    Ok(Opened { conn, epoch, is_new_backup, way: Way::Writes })
}

/// The same, or a connection that only looks at a file that may not be written, if that will do.
///
/// A file cannot tell whether it is a copy, or was put back as it was once. So each opening begins a new epoch.
pub(crate) fn open_or_look(path: &Path, options: &Options, clock: &dyn Clock) -> Result<Opened, Fault> {
    match open(path, options, |last| last.next(clock.now(), Chance::from_system().bits())) {
        Ok(opened) => Ok(opened),
        Err(fault) if options.looks_if_it_may_not_write && path.exists() && !fault.is_passing() => {
            let conn = looking(path, options)?;
            let epoch = current_epoch(&conn, path)?;
            Ok(Opened { conn, epoch, is_new_backup: false, way: Way::Looks })
        }
        Err(fault) => Err(fault),
    }
}

/// Opens a new database in memory. Its epoch is that of every new file.
pub(crate) fn in_memory() -> Result<Opened, Fault> {
    let path = Path::new(IN_MEMORY);
    let mut conn = writing(path, &Options::default()).map_err(|error| of_file(path, fault_of(&error)))?;
    // Views share the connection.
    conn.set_prepared_statement_cache_capacity(WRITER_STATEMENTS + READER_STATEMENTS);
    let (epoch, is_new_backup) =
        schema::migrate(&mut conn, |last| last).map_err(|fault| of_file(path, fault))?;
    Ok(Opened { conn, epoch, is_new_backup, way: Way::Writes })
}

/// How a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is written.
    Writes,
    /// It is only looked at.
    Looks,
}

/// The schema comes before the log, so that the file alone tells whose it is from its first commit.
fn create(path: &Path) -> Result<(), Fault> {
    if path.exists() {
        return Ok(());
    }
    // Another process may be faster, or the path may be a link to where the file shall be.
    let created = private::options().create(true).truncate(false).open(path);
    created
        .and_then(keep_open)
        .map_err(|_| broken(path, "cannot create the file; check that its directory is writable"))
}

/// Nobody may be reading at this moment, and SQLite does not wait for that by itself.
fn switch_to_log(conn: &Connection, options: &Options) -> Result<(), Fault> {
    let tries = options.busy_timeout.as_millis() / SWITCH_AGAIN.as_millis() + 1;
    for _ in 0..tries {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Fault::Broken(format!(
                    "its file system does not support a write-ahead log (only {mode}); use a local disk"
                )));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => pause(SWITCH_AGAIN),
            Err(error) => return Err(fault_of(&error)),
        }
    }
    Err(Fault::Unavailable("another process holds the file for too long".to_owned()))
}
