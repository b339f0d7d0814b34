//! Reads and writes the rows of records and journals for the engine, and removes expired ones.

mod views;

use rusqlite::{Error, OptionalExtension, Result, params};
use tenure_core::{JournalEntry, Record, Timestamp, limits};
use tenure_store::Put;
use tenure_store::engine::records::{Changes, NewEntry, Numbers, RecordTxn, prunes_on};

use crate::value;
use crate::writing::Writing;

#[cfg(test)]
pub(crate) use views::{
    ALL_NEWEST, ALL_OLDEST, ENTRIES_KEPT, KEPT, ONE, PAGE, SUBJECT_NEWEST, SUBJECT_OLDEST,
};
pub(crate) use views::{entries, entries_kept, one, page, records_kept};

const NEXT_VERSION: &str = "UPDATE meta SET value = value + 1 WHERE name = 'versions' RETURNING value";
pub(crate) const PUT: &str =
    "INSERT INTO record (shelf, key, version, expires, value) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (shelf, key) DO UPDATE SET
         version = excluded.version, expires = excluded.expires, value = excluded.value";
pub(crate) const REMOVE: &str = "DELETE FROM record WHERE shelf = ?1 AND key = ?2";
const APPEND: &str = "INSERT INTO journal_entry (number, journal, at, expires, subject, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(crate) const EXPIRED: &str =
    "SELECT rowid FROM record WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT ?2 + 0";
pub(crate) const PRUNE: &str = "DELETE FROM record WHERE rowid = ?1";
pub(crate) const EXPIRED_ENTRIES: &str = "SELECT number FROM journal_entry WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT ?2 + 0";
pub(crate) const PRUNE_ENTRY: &str = "DELETE FROM journal_entry WHERE number = ?1";

impl Writing<'_> {
    /// Keeps a record as it is from now on.
    pub(crate) fn keep_record(&self, record: &Record) -> Result<()> {
        self.conn.prepare_cached(PUT)?.execute(params![
            record.shelf.as_str(),
            record.key.as_str(),
            value::signed(record.version),
            record.expires.map(Timestamp::as_micros),
            record.value.as_bytes(),
        ])?;
        Ok(())
    }

    /// Keeps an entry as it was copied.
    pub(crate) fn keep_entry(&self, entry: &JournalEntry) -> Result<()> {
        self.conn.prepare_cached(APPEND)?.execute(params![
            value::signed(entry.number),
            entry.journal.as_str(),
            entry.at.as_micros(),
            entry.expires.map(Timestamp::as_micros),
            entry.subject.as_str(),
            entry.value.as_bytes(),
        ])?;
        Ok(())
    }

    /// Gives no version and no number again up to these: the copy is whole.
    pub(crate) fn go_on_behind(&self, version: u64, number: u64) -> Result<()> {
        let version = value::signed(version);
        self.conn.execute("UPDATE meta SET value = max(value, ?1) WHERE name = 'versions'", [version])?;
        let name = "journal_entry";
        let is_there = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        let last: Option<i64> = self.conn.query_row(is_there, [name], |row| row.get(0)).optional()?;
        let number = value::signed(number).max(last.unwrap_or(0));
        // The table has no constraint that would replace an old row.
        self.conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [name])?;
        self.conn
            .execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![name, number])?;
        Ok(())
    }

    /// Removes a bounded number of expired records and journal entries. Returns true if more may have expired.
    pub(crate) fn prune_records(&self) -> Result<bool> {
        let records = self.prune_by(EXPIRED, PRUNE)?;
        let entries = self.prune_by(EXPIRED_ENTRIES, PRUNE_ENTRY)?;
        Ok(prunes_on(records.max(entries)))
    }

    fn prune_by(&self, expired: &str, prune: &str) -> Result<usize> {
        let rows = self
            .conn
            .prepare_cached(expired)?
            .query_map(params![self.now.as_micros(), value::bound(limits::PRUNE_RECORDS)], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        let mut prune = self.conn.prepare_cached(prune)?;
        for row in &rows {
            prune.execute([row])?;
        }
        Ok(rows.len())
    }
}

impl RecordTxn for Writing<'_> {
    type Error = Error;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn find(&mut self, puts: &[Put]) -> Result<Vec<Option<Record>>> {
        puts.iter().map(|put| views::find(self.conn, &put.shelf, &put.key)).collect()
    }

    async fn write(&mut self, changes: &Changes<'_>) -> Result<Numbers> {
        let mut numbers = Numbers::default();
        for (shelf, key) in &changes.gone {
            self.conn.prepare_cached(REMOVE)?.execute([shelf.as_str(), key.as_str()])?;
        }
        for new in &changes.kept {
            let version = self.conn.prepare_cached(NEXT_VERSION)?.query_row([], |row| row.get(0))?;
            let version = value::seq(version)?;
            self.keep_record(&new.numbered(version))?;
            numbers.versions.push(version);
        }
        for NewEntry { journal, subject, value, expires } in &changes.entries {
            let number = self.conn.prepare_cached(APPEND)?.insert(params![
                None::<i64>,
                journal.as_str(),
                changes.at.as_micros(),
                expires.map(Timestamp::as_micros),
                subject.as_str(),
                value.as_bytes(),
            ])?;
            numbers.entries.push(value::seq(number)?);
        }
        Ok(numbers)
    }

    fn notify_asked(&mut self) -> Result<()> {
        self.call_asked()
    }
}
