//! Looking at records and journals.

use tenure_core::{Document, JournalEntry, Name, Record, RecordKey, Subject, Timestamp, limits};
use tenure_store::{EntriesAsk, EntryPage, Fault, Order, RecordPage, RecordsAsk};
use tokio_postgres::Row;

use crate::fault::{Effect, unreadable};
use crate::link::Link;
use crate::prefix::end_of;
use crate::query::Query;
use crate::time::NOW;
use crate::value::{self, bound, signed};

const ONE: &str = "SELECT r.shelf, r.key, r.version, r.expires, r.value, n.now
     FROM (SELECT coalesce($3::bigint, micros()) AS now) n
     CROSS JOIN LATERAL (SELECT * FROM record WHERE shelf = $1 AND key = $2 LIMIT 1) r";
/// Keys and when they expire: what they say may be large, and is read of those that are answered.
const GLIMPSE: &str = "SELECT key, expires FROM record
     WHERE shelf = $1 AND key >= $2 AND key > $3 AND key < $5 ORDER BY key LIMIT $4";
const GLIMPSE_TO_THE_END: &str = "SELECT key, expires FROM record
     WHERE shelf = $1 AND key >= $2 AND key > $3 ORDER BY key LIMIT $4";
const THESE: &str = "SELECT r.shelf, r.key, r.version, r.expires, r.value FROM unnest($2::text[]) u (key)
     CROSS JOIN LATERAL (SELECT * FROM record WHERE shelf = $1 AND key = u.key LIMIT 1) r ORDER BY r.key";
const KEPT: &str = "SELECT shelf, key, version, expires, value FROM record
     WHERE (shelf, key) > ($1, $2) ORDER BY shelf, key LIMIT $3";

const ALL_OLDEST: &str = "SELECT number, at, expires FROM journal_entry
     WHERE journal = $1 AND number > $2 ORDER BY number LIMIT $3";
const ALL_NEWEST: &str = "SELECT number, at, expires FROM journal_entry
     WHERE journal = $1 AND number < $2 ORDER BY number DESC LIMIT $3";
const SUBJECT_OLDEST: &str = "SELECT number, at, expires FROM journal_entry
     WHERE journal = $1 AND subject = $4 AND number > $2 ORDER BY number LIMIT $3";
const SUBJECT_NEWEST: &str = "SELECT number, at, expires FROM journal_entry
     WHERE journal = $1 AND subject = $4 AND number < $2 ORDER BY number DESC LIMIT $3";
const THESE_ENTRIES: &str =
    "SELECT e.number, e.at, e.expires, e.journal, e.subject, e.value FROM unnest($2::bigint[]) u (number)
     CROSS JOIN LATERAL (SELECT * FROM journal_entry WHERE journal = $1 AND number = u.number LIMIT 1) e
     ORDER BY e.number";
const ENTRIES_KEPT: &str = "SELECT number, at, expires, journal, subject, value FROM journal_entry
     WHERE (journal, number) > ($1, $2) ORDER BY journal, number LIMIT $3";

/// Reads, and what the clock shows.
async fn look(link: &mut Link, query: Query) -> Result<(Vec<Row>, Timestamp), Fault> {
    let queries = [Query::new(NOW).with(link.database.time.told()), query];
    let mut answered = link.connection().await?.run(&queries, Effect::None).await?;
    let rows = answered.pop().map(|answered| answered.rows).unwrap_or_default();
    let now = answered.first().and_then(|answered| answered.rows.first());
    let now = value::instant(now.ok_or_else(|| unreadable("no clock"))?, 0)?;
    Ok((rows, now))
}

/// One record, if it has not expired.
pub(super) async fn one(link: &mut Link, shelf: &Name, key: &RecordKey) -> Result<Option<Record>, Fault> {
    let find = Query::new(ONE).with(shelf.as_str().to_owned()).with(key.as_str().to_owned());
    let find = find.with(link.database.time.told());
    let rows = link.connection().await?.read(find).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (found, now) = (record(row)?, value::instant(row, 5)?);
    Ok(Some(found).filter(|record| record.is_alive(now)))
}

/// A page of records. One that cannot be read is left out, and so is one that is gone by the time it is read.
pub(super) async fn page(link: &mut Link, ask: &RecordsAsk) -> Result<RecordPage, Fault> {
    // No key holds such a character, and no text of the server's can.
    if ask.prefix.contains('\0') {
        return Ok(RecordPage::default());
    }
    let at_most = ask.at_most.clamp(1, limits::PAGE_RECORDS);
    let (mut wanted, mut next) = (Vec::new(), None);
    // Few have expired: so many are looked at first, and more only if the page is not full.
    for looked_at in [at_most + 1, limits::PAGE_EXAMINED] {
        let (rows, now) = look(link, glimpse(ask, looked_at)).await?;
        let alive = rows.iter().filter(|row| is_alive(row, 1, now)).map(|row| row.get::<_, String>(0));
        wanted = alive.collect();
        let is_cut = wanted.len() > at_most;
        wanted.truncate(at_most);
        let last = if is_cut { wanted.last().cloned() } else { rows.last().map(|row| row.get(0)) };
        let goes_on = is_cut || rows.len() == looked_at;
        next = last.filter(|_| goes_on).and_then(|key: String| RecordKey::new(&key).ok());
        if is_cut || rows.len() < looked_at {
            break;
        }
    }
    if wanted.is_empty() {
        return Ok(RecordPage { records: Vec::new(), next });
    }
    let these = Query::new(THESE).with(ask.shelf.as_str().to_owned()).with(wanted);
    let (rows, now) = look(link, these).await?;
    let mut records: Vec<Record> = rows.iter().filter_map(|row| readable(record(row))).collect();
    records.retain(|record| record.is_alive(now));
    Ok(RecordPage { records, next })
}

fn glimpse(ask: &RecordsAsk, looked_at: usize) -> Query {
    let behind = ask.behind.as_ref().map_or_else(String::new, |key| key.as_str().to_owned());
    let end = end_of(&ask.prefix);
    let query = Query::new(if end.is_some() { GLIMPSE } else { GLIMPSE_TO_THE_END })
        .with(ask.shelf.as_str().to_owned())
        .with(ask.prefix.clone())
        .with(behind)
        .with(bound(looked_at));
    end.into_iter().fold(query, Query::with)
}

/// A page of a journal. An entry that cannot be read is left out, and so is one that is gone by the time it is read.
pub(super) async fn entries(link: &mut Link, ask: &EntriesAsk) -> Result<EntryPage, Fault> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_ENTRIES);
    let (mut wanted, mut next) = (Vec::new(), None);
    for looked_at in [at_most + 1, limits::PAGE_EXAMINED] {
        let (rows, now) = look(link, of_journal(ask, looked_at)).await?;
        wanted.clear();
        for row in &rows {
            if ask.means_time(value::instant(row, 1)?) && is_alive(row, 2, now) {
                wanted.push(row.get::<_, i64>(0));
            }
        }
        let is_cut = wanted.len() > at_most;
        wanted.truncate(at_most);
        let last = if is_cut { wanted.last().copied() } else { rows.last().map(|row| row.get(0)) };
        let goes_on = is_cut || rows.len() == looked_at;
        next = last.filter(|_| goes_on).map(value::seq).transpose()?;
        if is_cut || rows.len() < looked_at {
            break;
        }
    }
    if wanted.is_empty() {
        return Ok(EntryPage { entries: Vec::new(), next });
    }
    let these = Query::new(THESE_ENTRIES).with(ask.journal.as_str().to_owned()).with(wanted);
    let (rows, now) = look(link, these).await?;
    let mut entries: Vec<JournalEntry> = rows.iter().filter_map(|row| readable(entry(row))).collect();
    entries.retain(|entry| entry.is_alive(now));
    if ask.order == Order::NewestFirst {
        entries.reverse();
    }
    Ok(EntryPage { entries, next })
}

fn of_journal(ask: &EntriesAsk, looked_at: usize) -> Query {
    let (sql, start) = match (&ask.subject, ask.order) {
        (None, Order::OldestFirst) => (ALL_OLDEST, 0),
        (None, Order::NewestFirst) => (ALL_NEWEST, i64::MAX),
        (Some(_), Order::OldestFirst) => (SUBJECT_OLDEST, 0),
        (Some(_), Order::NewestFirst) => (SUBJECT_NEWEST, i64::MAX),
    };
    let query = Query::new(sql)
        .with(ask.journal.as_str().to_owned())
        .with(ask.behind.map_or(start, signed))
        .with(bound(looked_at));
    ask.subject.iter().fold(query, |query, subject| query.with(subject.as_str().to_owned()))
}

/// A page of all records.
pub(crate) async fn records_kept(
    link: &mut Link,
    behind: Option<(Name, RecordKey)>,
    at_most: usize,
) -> Result<Vec<Record>, Fault> {
    let (shelf, key) = behind
        .map_or_else(Default::default, |(shelf, key)| (shelf.as_str().to_owned(), key.as_str().to_owned()));
    let kept = Query::new(KEPT).with(shelf).with(key).with(bound(at_most));
    link.connection().await?.read(kept).await?.iter().map(record).collect()
}

/// A page of all entries of journals.
pub(crate) async fn entries_kept(
    link: &mut Link,
    behind: Option<(Name, u64)>,
    at_most: usize,
) -> Result<Vec<JournalEntry>, Fault> {
    let (journal, number) = behind.map_or_else(
        || (String::new(), 0),
        |(journal, number)| (journal.as_str().to_owned(), signed(number)),
    );
    let kept = Query::new(ENTRIES_KEPT).with(journal).with(number).with(bound(at_most));
    link.connection().await?.read(kept).await?.iter().map(entry).collect()
}

fn is_alive(row: &Row, column: usize, now: Timestamp) -> bool {
    row.get::<_, Option<i64>>(column).is_none_or(|expires| expires > now.as_micros())
}

/// What can be read; a complaint of what cannot.
fn readable<T>(read: Result<T, Fault>) -> Option<T> {
    read.inspect_err(|fault| {
        tracing::error!(%fault, "skipping an unreadable record or journal entry; update this program");
    })
    .ok()
}

/// Reads a record.
pub(super) fn record(row: &Row) -> Result<Record, Fault> {
    Ok(Record {
        shelf: Name::new("shelf", row.get(0)).map_err(unreadable)?,
        key: RecordKey::new(row.get(1)).map_err(unreadable)?,
        version: value::seq(row.get(2))?,
        expires: value::maybe_instant(row, 3)?,
        value: Document::new(row.get::<_, &[u8]>(4)).map_err(unreadable)?,
    })
}

fn entry(row: &Row) -> Result<JournalEntry, Fault> {
    Ok(JournalEntry {
        number: value::seq(row.get(0))?,
        at: value::instant(row, 1)?,
        expires: value::maybe_instant(row, 2)?,
        journal: Name::new("journal", row.get(3)).map_err(unreadable)?,
        subject: Subject::new(row.get(4)).map_err(unreadable)?,
        value: Document::new(row.get::<_, &[u8]>(5)).map_err(unreadable)?,
    })
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 11] = [
    ONE,
    GLIMPSE,
    GLIMPSE_TO_THE_END,
    THESE,
    KEPT,
    ALL_OLDEST,
    ALL_NEWEST,
    SUBJECT_OLDEST,
    SUBJECT_NEWEST,
    THESE_ENTRIES,
    ENTRIES_KEPT,
];
