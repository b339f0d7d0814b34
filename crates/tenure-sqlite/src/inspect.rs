//! A look at a file before anything touches it.

#[cfg(unix)]
use std::collections::{BTreeMap, btree_map::Entry};
use std::fs::{self, File};
use std::io::ErrorKind;
#[cfg(unix)]
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tenure_store::Fault;

use crate::connection::{APPLICATION_ID, common};
use crate::fault::fault_of;
use crate::look::of_look;
use crate::schema;

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
/// Up to this size a file is checked page by page at start; beyond it that would take too long.
const CHECKED_BYTES: u64 = 16 * 1024 * 1024;

/// The header of an SQLite file, as far as it matters here.
struct Header {
    pages: u64,
    page_bytes: u64,
    application_id: i32,
    keeps_log: bool,
}

/// How to read a file that others may be writing.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// Past all locks: nothing is put beside the file, but a write that goes on looks like damage.
    Past,
    /// Through the locks where there may be any, waiting so long for them.
    Through(Duration),
}

/// Says what speaks against using this file; it is only read, and stays as it is.
///
/// Another program may be making the file or working its log into it at this moment. What looks wrong
/// is therefore looked at once more, through the locks, before it is refused.
pub(crate) fn inspect(path: &Path, patience: Duration) -> Result<(), Fault> {
    let Err(doubt) = look_at(path, Look::Past) else { return Ok(()) };
    match look_at(path, Look::Through(patience)) {
        Ok(()) => Ok(()),
        Err(again) if again.is_passing() => Err(again),
        Err(_) => Err(doubt),
    }
}

fn look_at(path: &Path, look: Look) -> Result<(), Fault> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return check_directory(path),
        Err(error) => return Err(broken(path, format_args!("cannot read the file ({error})"))),
    };
    if metadata.is_dir() {
        return Err(broken(path, "it is a directory; use a file in it, such as tenure.db"));
    }
    if !metadata.is_file() {
        return Err(broken(path, "not a regular file"));
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    let header = read_header(path)?;
    if header.application_id != 0 && header.application_id != APPLICATION_ID {
        return Err(foreign(path));
    }
    let has_log = has_log(path);
    let conn = match look {
        Look::Past if !has_log => {
            if header.pages * header.page_bytes > metadata.len() {
                return Err(broken(path, "the file is truncated; restore a backup"));
            }
            look_past_locks(path)
        }
        // Reading a file that keeps a log, but has none, would put one beside it. Without a log nobody
        // is writing to such a file.
        Look::Through(_) if header.keeps_log && !has_log => look_past_locks(path),
        Look::Past => look_through_locks(path, Duration::ZERO),
        Look::Through(patience) => look_through_locks(path, patience),
    };
    let conn = conn.map_err(|error| of_look(path, &error))?;
    check_contents(&conn, path, metadata.len())
}

/// Whether something stands in the log of a file.
pub(crate) fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The name of a file that SQLite keeps beside another.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The fault with the file's name in front.
pub(crate) fn of_file(path: &Path, fault: Fault) -> Fault {
    let named = |text: String| format!("{}: {text}", path.display());
    match fault {
        Fault::Unavailable(text) => Fault::Unavailable(named(text)),
        Fault::Unknown(text) => Fault::Unknown(named(text)),
        Fault::Broken(text) => Fault::Broken(named(text)),
        Fault::Closed => Fault::Closed,
    }
}

pub(crate) fn broken(path: &Path, what: impl std::fmt::Display) -> Fault {
    of_file(path, Fault::Broken(what.to_string()))
}

fn foreign(path: &Path) -> Fault {
    broken(path, "the database belongs to another program; use another file")
}

fn check_directory(path: &Path) -> Result<(), Fault> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if directory.is_none_or(Path::is_dir) {
        return Ok(());
    }
    Err(broken(path, "its directory does not exist; create it first"))
}

fn read_header(path: &Path) -> Result<Header, Fault> {
    let bytes =
        first_bytes(path).map_err(|error| broken(path, format_args!("cannot read the file ({error})")))?;
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return Err(broken(path, "not an SQLite database; use another file"));
    }
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let page_bytes = match u64::from(number(16) >> 16) {
        1 => 65_536,
        bytes => bytes,
    };
    // The page count counts only if the last writer was one that keeps it.
    let pages = if number(24) == number(92) { u64::from(number(28)) } else { 0 };
    Ok(Header { pages, page_bytes, application_id: number(68).cast_signed(), keeps_log: bytes[18] == 2 })
}

/// Descriptors that are never closed, one for each file.
///
/// SQLite's locks on Unix belong to the process, and closing any descriptor of a file gives up all that
/// the process has on it: those of a store, too, that has had this file open for long.
#[cfg(unix)]
static OPENED: Mutex<BTreeMap<(u64, u64), File>> = Mutex::new(BTreeMap::new());

/// Keeps a file open for as long as the process lives.
#[cfg(unix)]
pub(crate) fn keep_open(file: File) -> std::io::Result<()> {
    let metadata = file.metadata()?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match opened.entry((metadata.dev(), metadata.ino())) {
        // Another thread created it at the same moment, and may have locked it by now.
        Entry::Occupied(_) => std::mem::forget(file),
        Entry::Vacant(new) => {
            new.insert(file);
        }
    }
    Ok(())
}

/// On other systems, locks belong to descriptors.
#[cfg(not(unix))]
pub(crate) fn keep_open(_: File) -> std::io::Result<()> {
    Ok(())
}

/// Reads the start of the file through a descriptor that is never closed.
#[cfg(unix)]
fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let file = match opened.entry((metadata.dev(), metadata.ino())) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(File::open(path)?),
    };
    let mut bytes = vec![0; HEADER_BYTES];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(not(unix))]
fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the file alone: so, SQLite puts no files beside it.
pub(crate) fn look_past_locks(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | common();
    let Some(text) = path.to_str() else { return Connection::open_with_flags(path, flags) };
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Connection::open_with_flags(format!("file:{text}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
}

pub(crate) fn look_through_locks(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | common())?;
    conn.busy_timeout(patience)?;
    Ok(conn)
}

fn check_contents(conn: &Connection, path: &Path, bytes: u64) -> Result<(), Fault> {
    let number = |sql: &str| -> Result<i64, Fault> {
        conn.query_row(sql, [], |row| row.get(0)).map_err(|error| of_look(path, &error))
    };
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(());
    }
    if number("PRAGMA application_id")? != i64::from(APPLICATION_ID) {
        return Err(foreign(path));
    }
    schema::check_version(number("PRAGMA user_version")?).map_err(|fault| of_file(path, fault))?;
    if bytes > CHECKED_BYTES {
        return Ok(());
    }
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| of_file(path, fault_of(&error)))?;
    if verdict != "ok" {
        return Err(broken(path, "the file is damaged; restore a backup"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    /// A writer with little memory puts its changes into the file before it commits, under a lock.
    #[test]
    fn a_file_that_another_program_is_writing_is_not_taken_for_a_damaged_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tenure.db");
        drop(crate::open::open(&path, &Options::default(), |epoch| epoch).unwrap());
        let other = Connection::open(&path).unwrap();
        other
            .execute_batch(
                "PRAGMA journal_mode = DELETE;
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                 INSERT INTO log SELECT i, 1, 1, 1, hex(zeroblob(300)) FROM n;
                 PRAGMA cache_size = 5;
                 BEGIN;
                 UPDATE log SET text = hex(zeroblob(2000)) WHERE seq % 3 = 0;",
            )
            .unwrap();
        assert!(look_at(&path, Look::Past).is_err(), "the premise: past the locks it looks damaged");
        let before = fs::read(&path).unwrap();
        let fault = inspect(&path, Duration::ZERO).unwrap_err();
        assert!(fault.is_passing() && fault.to_string().contains("another process"), "{fault}");
        assert!(fs::read(&path).unwrap() == before, "the file was touched");
        other.execute_batch("COMMIT").unwrap();
        inspect(&path, Duration::ZERO).unwrap();
    }
}
