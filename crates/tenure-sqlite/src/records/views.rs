//! Looking at records and journals.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{Document, JournalEntry, Name, Record, RecordKey, Subject, Timestamp, limits};
use tenure_store::{EntriesAsk, EntryPage, Order, RecordPage, RecordsAsk};

use crate::fault::{is_unreadable, unreadable};
use crate::prefix::{end_of, first_of};
use crate::value;

pub(crate) const ONE: &str =
    "SELECT shelf, key, version, expires, value FROM record WHERE shelf = ?1 AND key = ?2";
pub(crate) const PAGE: &str = "SELECT shelf, key, version, expires, value FROM record
     WHERE shelf = ?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT ?4 + 0";
pub(crate) const KEPT: &str = "SELECT shelf, key, version, expires, value FROM record
     WHERE (shelf, key) > (?1, ?2) ORDER BY shelf, key LIMIT ?3 + 0";

pub(crate) const ALL_OLDEST: &str = "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE journal = ?1 AND number > ?2 ORDER BY number LIMIT ?3 + 0";
pub(crate) const ALL_NEWEST: &str = "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE journal = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3 + 0";
pub(crate) const SUBJECT_OLDEST: &str =
    "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE journal = ?1 AND subject = ?4 AND number > ?2 ORDER BY number LIMIT ?3 + 0";
pub(crate) const SUBJECT_NEWEST: &str =
    "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE journal = ?1 AND subject = ?4 AND number < ?2 ORDER BY number DESC LIMIT ?3 + 0";
pub(crate) const ENTRIES_KEPT: &str = "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE (journal, number) > (?1, ?2) ORDER BY journal, number LIMIT ?3 + 0";

/// One record, if it has not expired.
pub(crate) fn one(
    conn: &Connection,
    shelf: &Name,
    key: &RecordKey,
    now: Timestamp,
) -> Result<Option<Record>> {
    Ok(find(conn, shelf, key)?.filter(|record| record.is_alive(now)))
}

/// One record, whether it has expired or not.
pub(super) fn find(conn: &Connection, shelf: &Name, key: &RecordKey) -> Result<Option<Record>> {
    conn.prepare_cached(ONE)?.query_row([shelf.as_str(), key.as_str()], record).optional()
}

/// A page of records. One that cannot be read is left out.
pub(crate) fn page(conn: &Connection, ask: &RecordsAsk, now: Timestamp) -> Result<RecordPage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_RECORDS);
    let mut statement = conn.prepare_cached(PAGE)?;
    let first = first_of(&ask.prefix, ask.behind.as_ref().map(RecordKey::as_str));
    let looked_at = value::bound(limits::PAGE_EXAMINED);
    let mut rows = statement.query(params![ask.shelf.as_str(), first, end_of(&ask.prefix), looked_at])?;
    let (mut page, mut examined) = (RecordPage::default(), 0);
    while let Some(row) = rows.next()? {
        examined += 1;
        if examined == limits::PAGE_EXAMINED {
            page.next = RecordKey::new(row.get_ref(1)?.as_str()?).ok();
        }
        if !is_alive(value::maybe_instant(row, 3)?, now) {
            continue;
        }
        if page.records.len() == at_most {
            page.next = page.records.last().map(|record| record.key.clone());
            break;
        }
        page.records.extend(readable(record(row))?);
    }
    Ok(page)
}

/// A page of a journal. An entry that cannot be read is left out.
pub(crate) fn entries(conn: &Connection, ask: &EntriesAsk, now: Timestamp) -> Result<EntryPage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_ENTRIES);
    let (sql, start) = match (&ask.subject, ask.order) {
        (None, Order::OldestFirst) => (ALL_OLDEST, 0),
        (None, Order::NewestFirst) => (ALL_NEWEST, i64::MAX),
        (Some(_), Order::OldestFirst) => (SUBJECT_OLDEST, 0),
        (Some(_), Order::NewestFirst) => (SUBJECT_NEWEST, i64::MAX),
    };
    let behind = ask.behind.map_or(start, value::signed);
    let looked_at = value::bound(limits::PAGE_EXAMINED);
    let journal = ask.journal.as_str();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = match &ask.subject {
        Some(subject) => statement.query(params![journal, behind, looked_at, subject.as_str()])?,
        None => statement.query(params![journal, behind, looked_at])?,
    };
    let (mut page, mut examined) = (EntryPage::default(), 0);
    while let Some(row) = rows.next()? {
        examined += 1;
        if examined == limits::PAGE_EXAMINED {
            page.next = Some(value::seq(row.get(0)?)?);
        }
        if !ask.means_time(value::instant(row, 1)?) || !is_alive(value::maybe_instant(row, 2)?, now) {
            continue;
        }
        if page.entries.len() == at_most {
            page.next = page.entries.last().map(|entry| entry.number);
            break;
        }
        page.entries.extend(readable(entry(row))?);
    }
    Ok(page)
}

/// A page of all records.
pub(crate) fn records_kept(
    conn: &Connection,
    behind: Option<&(Name, RecordKey)>,
    at_most: usize,
) -> Result<Vec<Record>> {
    let (shelf, key) = behind.map_or(("", ""), |(shelf, key)| (shelf.as_str(), key.as_str()));
    let mut kept = conn.prepare_cached(KEPT)?;
    kept.query_map(params![shelf, key, value::bound(at_most)], record)?.collect()
}

/// A page of all entries of journals.
pub(crate) fn entries_kept(
    conn: &Connection,
    behind: Option<&(Name, u64)>,
    at_most: usize,
) -> Result<Vec<JournalEntry>> {
    let (journal, number) =
        behind.map_or(("", 0), |(journal, number)| (journal.as_str(), value::signed(*number)));
    let mut kept = conn.prepare_cached(ENTRIES_KEPT)?;
    kept.query_map(params![journal, number, value::bound(at_most)], entry)?.collect()
}

fn is_alive(expires: Option<Timestamp>, now: Timestamp) -> bool {
    expires.is_none_or(|expires| expires > now)
}

/// What can be read; a complaint of what cannot.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if is_unreadable(&error) => {
            tracing::error!(%error, "skipping an unreadable record or journal entry; update this program");
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn record(row: &Row<'_>) -> Result<Record> {
    Ok(Record {
        shelf: Name::new("shelf", row.get_ref(0)?.as_str()?).map_err(unreadable)?,
        key: RecordKey::new(row.get_ref(1)?.as_str()?).map_err(unreadable)?,
        version: value::seq(row.get(2)?)?,
        expires: value::maybe_instant(row, 3)?,
        value: Document::new(row.get_ref(4)?.as_blob()?).map_err(unreadable)?,
    })
}

fn entry(row: &Row<'_>) -> Result<JournalEntry> {
    Ok(JournalEntry {
        number: value::seq(row.get(0)?)?,
        at: value::instant(row, 1)?,
        expires: value::maybe_instant(row, 2)?,
        journal: Name::new("journal", row.get_ref(3)?.as_str()?).map_err(unreadable)?,
        subject: Subject::new(row.get_ref(4)?.as_str()?).map_err(unreadable)?,
        value: Document::new(row.get_ref(5)?.as_blob()?).map_err(unreadable)?,
    })
}
