//! What a file takes of its disk, and what is free there.

use std::path::Path;

use rusqlite::{Connection, Result};
use tenure_store::Sizes;

use crate::inspect::beside;

/// The file, its log, and what of the file is free to be used again.
pub(crate) fn look(conn: &Connection, path: &Path) -> Result<Sizes> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let free = number("PRAGMA freelist_count")? * number("PRAGMA page_size")?;
    let part = |name: &str, bytes: u64| (name.to_owned(), bytes);
    Ok(Sizes {
        parts: vec![
            part("file", bytes_of(path)),
            part("wal", bytes_of(&beside(path, "-wal"))),
            part("free", u64::try_from(free).unwrap_or(0)),
        ],
        disk_free: disk_free(path),
    })
}

/// The size alone is asked for: a file that is opened and closed would lose the locks that this process has on it.
fn bytes_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// What somebody who is not root may still write to the disk.
#[cfg(unix)]
fn disk_free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn disk_free(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_and_removed_is_free_within_the_file_and_the_disk_tells_what_is_free_on_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sizes.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(
            "CREATE TABLE t (b BLOB); INSERT INTO t VALUES (zeroblob(1000000)); DELETE FROM t",
        )
        .unwrap();
        let sizes = look(&conn, &path).unwrap();
        let part = |name: &str| sizes.parts.iter().find(|(part, _)| part == name).unwrap().1;
        assert!(part("file") >= 1_000_000 && part("free") >= 900_000 && part("wal") == 0, "{sizes:?}");
        assert!(part("free") < part("file"));
        assert_eq!(sizes.disk_free.is_some_and(|bytes| bytes > 0), cfg!(unix));
    }
}
