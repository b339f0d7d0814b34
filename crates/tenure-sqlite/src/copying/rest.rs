//! What no view shows of a file.

use rusqlite::{Connection, Result, Row, params};
use tenure_core::{Bucket, Timestamp, UniqueKey};
use tenure_store::{KeyHold, Rest, Totals};

use crate::{epoch, value};

const LAST_SEQ: &str =
    "SELECT max((SELECT ifnull(max(seq), 0) FROM job), value) FROM meta WHERE name = 'removed'";
const LAST: &str = "SELECT value, ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'journal_entry'), 0)
     FROM meta WHERE name = 'versions'";
const BUCKETS: &str = "SELECT name, bucket FROM queue WHERE limit_to IS NOT NULL ORDER BY name";
const KEYS: &str =
    "SELECT key, seq, id, until FROM unique_key WHERE key > ?1 OR ?2 ORDER BY key LIMIT ?3 + 0";
const TOTALS: &str = "SELECT
         (SELECT ifnull(sum(scheduled + queued + blocked + running + succeeded + failed + cancelled), 0) FROM lane),
         (SELECT count(*) FROM unique_key), (SELECT count(*) FROM lease WHERE forgotten = 0),
         (SELECT count(*) FROM ledger), (SELECT count(*) FROM timer), (SELECT count(*) FROM timer_slot),
         (SELECT count(*) FROM record), (SELECT count(*) FROM journal_entry)";
/// Besides what is counted.
const ANYTHING: &str = "SELECT CASE
         WHEN EXISTS (SELECT 1 FROM job) THEN 'jobs' WHEN EXISTS (SELECT 1 FROM lease) THEN 'leases'
         WHEN EXISTS (SELECT 1 FROM queue) THEN 'queues' WHEN EXISTS (SELECT 1 FROM limit_key) THEN 'limit keys'
         WHEN EXISTS (SELECT 1 FROM app) THEN 'app ids'
         WHEN EXISTS (SELECT 1 FROM host WHERE until > ?1) THEN 'live hosts'
         WHEN EXISTS (SELECT 1 FROM meta WHERE name = 'copying') THEN 'parts of another copy' END";

/// What no view shows.
pub(crate) fn rest(conn: &Connection, is_new_backup: bool) -> Result<Rest> {
    let (epoch, last_seq) = (epoch::read(conn)?, conn.query_row(LAST_SEQ, [], |row| row.get(0))?);
    let bucket = |row: &Row<'_>| Ok((value::queue(row, 0)?, Bucket(value::instant(row, 1)?)));
    let buckets = conn.prepare_cached(BUCKETS)?.query_map([], bucket)?.collect::<Result<Vec<_>>>()?;
    let last = |row: &Row<'_>| Ok((value::seq(row.get(0)?)?, value::seq(row.get(1)?)?));
    let (last_version, last_number) = conn.query_row(LAST, [], last)?;
    let (last_seq, totals) = (value::seq(last_seq)?, totals(conn)?);
    Ok(Rest { epoch, last_seq, last_version, last_number, buckets, is_new_backup, totals })
}

fn totals(conn: &Connection) -> Result<Totals> {
    conn.query_row(TOTALS, [], |row| {
        let count = |column| value::seq(row.get(column)?);
        Ok(Totals {
            jobs: count(0)?,
            keys: count(1)?,
            leases: count(2)?,
            entries: count(3)?,
            timers: count(4)?,
            slots: count(5)?,
            records: count(6)?,
            journal_entries: count(7)?,
        })
    })
}

/// What there is, in a word; `None` if there is nothing.
pub(super) fn anything(conn: &Connection, now: Timestamp) -> Result<Option<String>> {
    match totals(conn)?.anything() {
        Some(what) => Ok(Some(what.to_owned())),
        None => conn.query_row(ANYTHING, [now.as_micros()], |row| row.get(0)),
    }
}

/// A page of the unique keys that are held, by key.
pub(crate) fn keys_held(
    conn: &Connection,
    behind: Option<UniqueKey>,
    at_most: usize,
) -> Result<Vec<KeyHold>> {
    let first = behind.is_none();
    let behind = behind.map_or([0; 16], |key| key.0);
    let mut keys = conn.prepare_cached(KEYS)?;
    let rows = keys.query_map(params![behind, first, value::bound(at_most)], |row| {
        Ok(KeyHold {
            key: UniqueKey(row.get(0)?),
            seq: value::seq(row.get(1)?)?,
            job: value::job_id(row, 2)?,
            until: value::maybe_instant(row, 3)?,
        })
    })?;
    rows.collect()
}
