//! Writing records and appending to journals, all of it or nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{JournalEntry, Record, Timestamp};
use tenure_store::{Append, Fault, NewValue, Put, Writes, Written};

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
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) u (shelf, key, expires, value)
     ON CONFLICT (shelf, key) DO UPDATE SET
         version = excluded.version, expires = excluded.expires, value = excluded.value
     RETURNING shelf, key, version";
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
    let (shelves, keys) = places(&writes.records);
    let reads = vec![
        Query::new(LOCK).with(locks(writes)),
        // After the locks: what happens is not older than what it waited for.
        Query::new(NOW).with(time.told()),
        Query::new(THERE).with(shelves).with(keys),
    ];
    let (mut txn, read) = Transaction::begin(link.connection().await?, Gate::Open, &time, reads).await?;
    let [_, clock, there] = read.as_slice() else { return Err(unreadable("an answer too few")) };
    let now = value::instant(clock.first().ok_or_else(|| unreadable("no clock"))?, 0)?;
    let mut found = BTreeMap::new();
    for row in there {
        let record = views::record(row)?;
        found.insert((record.shelf.clone(), record.key.clone()), record);
    }
    let there = writes.records.iter().map(|put| found.remove(&(put.shelf.clone(), put.key.clone())));
    let unmet = writes.unmet(there.collect(), now);
    if !unmet.is_empty() {
        txn.roll_back().await?;
        return Ok(Written::Refused(unmet));
    }
    let written = do_write(&mut txn, writes, now).await?;
    txn.commit().await?;
    if writes.asks {
        link.memory.publish(News::of_asking());
    }
    Ok(written)
}

async fn do_write(txn: &mut Transaction<'_>, writes: &Writes, now: Timestamp) -> Result<Written, Fault> {
    let new = |put: &Put| put.to.clone().map(|to| (put.clone(), to));
    let new: Vec<(Put, NewValue)> = writes.records.iter().filter_map(new).collect();
    let gone: Vec<Put> = writes.records.iter().filter(|put| put.to.is_none()).cloned().collect();
    if !gone.is_empty() {
        let (shelves, keys) = places(&gone);
        txn.write(Query::new(REMOVE).with(shelves).with(keys));
    }
    let mut queries = Vec::new();
    if !new.is_empty() {
        queries.push(put(&new, now));
    }
    if !writes.entries.is_empty() {
        queries.push(append(&writes.entries, now));
    }
    let mut answered = txn.read(queries).await?.into_iter();
    let mut given: BTreeMap<(String, String), u64> = BTreeMap::new();
    if !new.is_empty() {
        for row in answered.next().unwrap_or_default() {
            given.insert((row.get(0), row.get(1)), value::seq(row.get(2))?);
        }
    }
    let place = |put: &Put| (put.shelf.as_str().to_owned(), put.key.as_str().to_owned());
    let versions = writes.records.iter().map(|put| given.get(&place(put)).copied()).collect();
    let rows = answered.next().unwrap_or_default();
    let mut numbers = rows.iter().map(|row| value::seq(row.get(0))).collect::<Result<Vec<u64>, Fault>>()?;
    // They were given in the order of the call.
    numbers.sort_unstable();
    Ok(Written::Done { versions, numbers })
}

/// What is locked: a journal has a name that no place of a record has, since no name has a blank.
fn locks(writes: &Writes) -> Vec<String> {
    let records = writes.records.iter().map(|put| format!("{} {}", put.shelf, put.key));
    records.chain(writes.entries.iter().map(|entry| entry.journal.to_string())).collect()
}

fn places(puts: &[Put]) -> (Vec<String>, Vec<String>) {
    puts.iter().map(|put| (put.shelf.as_str().to_owned(), put.key.as_str().to_owned())).unzip()
}

fn until(keep: Option<Duration>, now: Timestamp) -> Option<i64> {
    keep.map(|keep| now.after(keep).as_micros())
}

fn put(new: &[(Put, NewValue)], now: Timestamp) -> Query {
    Query::new(PUT)
        .with(new.iter().map(|(put, _)| put.shelf.as_str().to_owned()).collect::<Vec<_>>())
        .with(new.iter().map(|(put, _)| put.key.as_str().to_owned()).collect::<Vec<_>>())
        .with(new.iter().map(|(_, to)| until(to.keep, now)).collect::<Vec<_>>())
        .with(new.iter().map(|(_, to)| to.value.as_bytes().to_vec()).collect::<Vec<_>>())
}

fn append(entries: &[Append], now: Timestamp) -> Query {
    Query::new(APPEND)
        .with(now.as_micros())
        .with(entries.iter().map(|entry| entry.journal.as_str().to_owned()).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| until(entry.keep, now)).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| entry.subject.as_str().to_owned()).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| entry.value.as_bytes().to_vec()).collect::<Vec<_>>())
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
