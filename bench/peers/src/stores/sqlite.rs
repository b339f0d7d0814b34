//! SQLite: a file of its own for each figure.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Database, Meters};
use crate::Outcome;

/// How every contestant is to open it.
pub const SETTINGS: &str = "journal_mode=WAL, synchronous=FULL";

/// A file in a folder that is gone with it. What it costs is spent by those who use it.
pub struct File {
    url: String,
    folder: TempDir,
}

impl File {
    pub fn new(directory: &Path) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("sqlite-").tempdir_in(directory)?;
        let url = format!("sqlite://{}", folder.path().join("bench.db").display());
        Ok(Self { url, folder })
    }

    fn connect(&self) -> Outcome<Connection> {
        Ok(Connection::open(self.folder.path().join("bench.db"))?)
    }
}

impl Database for File {
    fn url(&self) -> &str {
        &self.url
    }

    /// The log goes into the file. Nobody brings statistics up to date by itself, so they stay as they come.
    fn rest(&mut self) -> Outcome {
        Ok(self.connect()?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    fn meters(&mut self) -> Outcome<Meters> {
        Ok(Meters::default())
    }

    fn count(&mut self, statement: &str) -> Outcome<i64> {
        Ok(self.connect()?.query_row(statement, [], |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_empty_and_gone_with_its_figure() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = File::new(directory.path()).unwrap();
        first.connect().unwrap().execute_batch("CREATE TABLE job (id); INSERT INTO job VALUES (1)").unwrap();
        first.rest().unwrap();
        assert_eq!(first.count("SELECT count(*) FROM job").unwrap(), 1);
        let mut second = File::new(directory.path()).unwrap();
        assert_eq!(second.count("SELECT count(*) FROM sqlite_schema").unwrap(), 0);
        drop((first, second));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
