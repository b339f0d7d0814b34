//! Writing records and appending to journals, all of it or nothing.

use std::collections::BTreeMap;

use tenure_core::{JournalEntry, Name, Record, RecordKey, Timestamp};
use tenure_store::engine::records::{self, Changes, NewEntry, NewRecord, Numbers, RecordTxn};
use tenure_store::{Fault, Put, Writes, Written};
use tokio_postgres::Row;

use super::views;
use crate::fault::unreadable;
use crate::link::Link;
use crate::news::News;
use crate::query::Query;
use crate::time::NOW;
use crate::transaction::{Gate, Transaction};
use crate::value;

/// Locks keys and journals, each by a number, in the order of these numbers: no two who wait for each other. Two that
/// share a number only wait for each other longer than they need.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1413827150, n.number)
     FROM (SELECT DISTINCT hashtext(current_schema()::text || ' ' || u.name) AS number FROM unnest($1::text[]) u (name)
         ORDER BY number) n";
const THERE: &str = "SELECT r.shelf, r.key, r.version, r.expires, r.value
     FROM unnest($1::text[], $2::text[]) u (shelf, key)
     CROSS JOIN LATERAL (SELECT * FROM record WHERE shelf = u.shelf AND key = u.key LIMIT 1) r";
const PUT: &str = "INSERT INTO record (shelf, key, version, expires, value)
     SELECT u.shelf, u.key, nextval('record_version'), u.expires, u.value
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) WITH ORDINALITY
         u (shelf, key, expires, value, place)
     ORDER BY u.place
     ON CONFLICT (shelf, key) DO UPDATE SET
         version = excluded.version, expires = excluded.expires, value = excluded.value
     RETURNING version";
const REMOVE: &str = "DELETE FROM record WHERE ctid = ANY (ARRAY(SELECT r.ctid
         FROM unnest($1::text[], $2::text[]) u (shelf, key)
         CROSS JOIN LATERAL (SELECT ctid FROM record WHERE shelf = u.shelf AND key = u.key LIMIT 1 FOR UPDATE) r))";
const APPEND: &str = "INSERT INTO journal_entry (journal, at, expires, subject, value)
     SELECT u.journal, $1, u.expires, u.subject, u.value
     FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bytea[]) WITH ORDINALITY
         u (journal, expires, subject, value, place)
     ORDER BY u.place RETURNING number";
const COPIED: &str = "INSERT INTO record (shelf, key, version, expires, value) VALUES ($1, $2, $3, $4, $5)";
const COPIED_ENTRY: &str = "INSERT INTO journal_entry (journal, number, at, expires, subject, value)
     OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6)";

/// Writes all or nothing.
pub(super) async fn write(link: &mut Link, writes: &Writes) -> Result<Written, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_write(link, writes).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_write(link: &mut Link, writes: &Writes) -> Result<Written, Fault> {
    let time = link.database.time.clone();
    let (shelves, keys) = places(writes.records.iter().map(|put| (&put.shelf, &put.key)));
    let reads = vec![
        Query::new(LOCK).with(locks(writes)),
        // After the locks: what happens is not older than what it waited for.
        Query::new(NOW).with(time.told()),
        Query::new(THERE).with(shelves).with(keys),
    ];
    let (txn, read) = Transaction::begin(link.connection().await?, Gate::Open, &time, reads).await?;
    let [_, clock, there] = read.as_slice() else { return Err(unreadable("an answer too few")) };
    let now = value::instant(clock.first().ok_or_else(|| unreadable("no clock"))?, 0)?;
    let mut writing = Locked { txn, now, there: BTreeMap::new(), asks: false };
    for row in there {
        let record = views::record(row)?;
        writing.there.insert((record.shelf.clone(), record.key.clone()), record);
    }
    let written = records::write(&mut writing, writes).await?;
    let Locked { txn, asks, .. } = writing;
    match written {
        Written::Refused(_) => txn.roll_back().await?,
        Written::Done { .. } => txn.commit().await?,
    }
    if asks {
        link.memory.publish(News::of_asking());
    }
    Ok(written)
}

/// A transaction that has locked the records and journals of a call, and read the records, in one round trip.
struct Locked<'c> {
    txn: Transaction<'c>,
    now: Timestamp,
    there: BTreeMap<(Name, RecordKey), Record>,
    asks: bool,
}

impl RecordTxn for Locked<'_> {
    type Error = Fault;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn find(&mut self, puts: &[Put]) -> Result<Vec<Option<Record>>, Fault> {
        Ok(puts.iter().map(|put| self.there.remove(&(put.shelf.clone(), put.key.clone()))).collect())
    }

    async fn write(&mut self, changes: &Changes<'_>) -> Result<Numbers, Fault> {
        if !changes.gone.is_empty() {
            let (shelves, keys) = places(changes.gone.iter().copied());
            self.txn.write(Query::new(REMOVE).with(shelves).with(keys));
        }
        let mut queries = Vec::new();
        if !changes.kept.is_empty() {
            queries.push(put(&changes.kept));
        }
        if !changes.entries.is_empty() {
            queries.push(append(&changes.entries, changes.at));
        }
        let mut drawn = self.txn.read(queries).await?.into_iter();
        let mut numbers = Numbers::default();
        if !changes.kept.is_empty() {
            numbers.versions = in_order(&drawn.next().unwrap_or_default())?;
        }
        numbers.entries = in_order(&drawn.next().unwrap_or_default())?;
        Ok(numbers)
    }

    fn notify_asked(&mut self) -> Result<(), Fault> {
        self.asks = true;
        Ok(())
    }
}

/// Returns the numbers that a statement drew, sorted: PostgreSQL draws them in the order of the call.
fn in_order(rows: &[Row]) -> Result<Vec<u64>, Fault> {
    let mut numbers = rows.iter().map(|row| value::seq(row.get(0))).collect::<Result<Vec<u64>, Fault>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// What is locked: a journal has a name that no place of a record has, since no name has a blank.
fn locks(writes: &Writes) -> Vec<String> {
    let records = writes.records.iter().map(|put| format!("{} {}", put.shelf, put.key));
    records.chain(writes.entries.iter().map(|entry| entry.journal.to_string())).collect()
}

fn places<'p>(places: impl Iterator<Item = (&'p Name, &'p RecordKey)>) -> (Vec<String>, Vec<String>) {
    places.map(|(shelf, key)| (shelf.as_str().to_owned(), key.as_str().to_owned())).unzip()
}

fn put(new: &[NewRecord<'_>]) -> Query {
    let (shelves, keys) = places(new.iter().map(|new| (new.shelf, new.key)));
    Query::new(PUT)
        .with(shelves)
        .with(keys)
        .with(new.iter().map(|new| new.expires.map(Timestamp::as_micros)).collect::<Vec<_>>())
        .with(new.iter().map(|new| new.value.as_bytes().to_vec()).collect::<Vec<_>>())
}

fn append(new: &[NewEntry<'_>], at: Timestamp) -> Query {
    Query::new(APPEND)
        .with(at.as_micros())
        .with(new.iter().map(|new| new.journal.as_str().to_owned()).collect::<Vec<_>>())
        .with(new.iter().map(|new| new.expires.map(Timestamp::as_micros)).collect::<Vec<_>>())
        .with(new.iter().map(|new| new.subject.as_str().to_owned()).collect::<Vec<_>>())
        .with(new.iter().map(|new| new.value.as_bytes().to_vec()).collect::<Vec<_>>())
}

/// Keeps a record as it was copied.
pub(crate) fn copied(record: &Record) -> Query {
    Query::new(COPIED)
        .with(record.shelf.as_str().to_owned())
        .with(record.key.as_str().to_owned())
        .with(value::signed(record.version))
        .with(record.expires.map(Timestamp::as_micros))
        .with(record.value.as_bytes().to_vec())
}

/// Keeps an entry as it was copied.
pub(crate) fn copied_entry(entry: &JournalEntry) -> Query {
    Query::new(COPIED_ENTRY)
        .with(entry.journal.as_str().to_owned())
        .with(value::signed(entry.number))
        .with(entry.at.as_micros())
        .with(entry.expires.map(Timestamp::as_micros))
        .with(entry.subject.as_str().to_owned())
        .with(entry.value.as_bytes().to_vec())
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 4] = [THERE, PUT, REMOVE, APPEND];
