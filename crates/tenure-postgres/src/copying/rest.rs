//! What no view shows of a database.

use tenure_core::{Bucket, UniqueKey};
use tenure_store::{Fault, KeyHold, Rest, Totals};
use tokio_postgres::Row;

use crate::epoch;
use crate::fault::unreadable;
use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const EPOCH: &str = "SELECT value, coalesce((SELECT last_value FROM pg_sequences
         WHERE schemaname = current_schema()::text AND sequencename = 'job_seq_seq'), 0) FROM meta WHERE name = 'floor'";
const LAST: &str = "SELECT
         coalesce((SELECT last_value FROM pg_sequences
             WHERE schemaname = current_schema()::text AND sequencename = 'record_version'), 0),
         coalesce((SELECT last_value FROM pg_sequences
             WHERE schemaname = current_schema()::text AND sequencename = 'journal_entry_number_seq'), 0)";
const BUCKETS: &str = "SELECT name, bucket FROM queue WHERE limit_to IS NOT NULL ORDER BY name";
const KEYS: &str = "SELECT key, seq, id, until FROM unique_key WHERE key > $1 ORDER BY key LIMIT $2";
const TOTALS: &str = "SELECT
         (SELECT coalesce(sum(coalesce(scheduled, 0) + coalesce(queued, 0) + coalesce(blocked, 0) + coalesce(running, 0)
             + coalesce(succeeded, 0) + coalesce(failed, 0) + coalesce(cancelled, 0)), 0)::bigint FROM tally),
         (SELECT count(*) FROM unique_key), (SELECT count(*) FROM lease WHERE NOT forgotten),
         (SELECT count(*) FROM ledger), (SELECT count(*) FROM timer), (SELECT count(*) FROM timer_slot),
         (SELECT count(*) FROM record), (SELECT count(*) FROM journal_entry)";
/// Besides what is counted.
const ANYTHING: &str = "SELECT CASE
         WHEN EXISTS (SELECT FROM job) THEN 'jobs' WHEN EXISTS (SELECT FROM lease) THEN 'leases'
         WHEN EXISTS (SELECT FROM queue) THEN 'queues' WHEN EXISTS (SELECT FROM limit_key) THEN 'limit keys'
         WHEN EXISTS (SELECT FROM app) THEN 'app ids'
         WHEN EXISTS (SELECT FROM host WHERE until > coalesce($1::bigint, micros())) THEN 'live hosts'
         WHEN EXISTS (SELECT FROM meta WHERE name = 'copying') THEN 'parts of another copy' END";

/// Counts the arrivals, and tells whether one of them is due.
const LEFT: &str =
    "SELECT count(*), coalesce(bool_or(again <= coalesce($1::bigint, micros())), false) FROM arrival";
/// More rounds than that are not tried: somebody goes on leaving something.
const ROUNDS: usize = 1_000;

/// What no view shows. What was left to do is done before: until then its jobs are not counted.
pub(super) async fn rest(link: &mut Link) -> Result<Rest, Fault> {
    for _ in 0..ROUNDS {
        let look = Query::new(LEFT).with(link.database.time.told());
        let left = link.connection().await?.read(look).await?;
        let (count, is_due): (i64, bool) = left.first().map_or((0, false), |row| (row.get(0), row.get(1)));
        if !is_due && count > 0 {
            return Err(unreadable(format_args!(
                "{count} arrivals of jobs wait for it: after `tenure db repair`, copy again"
            )));
        }
        if !is_due {
            break;
        }
        let (writing, _) = Writing::begin(link, Gate::Keys, Vec::new()).await?;
        writing.commit().await?;
    }
    let queries = [Query::new(EPOCH), Query::new(BUCKETS), Query::new(TOTALS), Query::new(LAST)];
    let mut read = Vec::new();
    for query in queries {
        read.push(link.connection().await?.read(query).await?);
    }
    let first = read[0].first().ok_or_else(|| unreadable("a store without an epoch"))?;
    let epoch = epoch::of_number(first.get(0))?;
    let last_seq = value::seq(first.get(1))?;
    let bucket = |row: &Row| Ok((value::queue(row, 0)?, Bucket(value::instant(row, 1)?)));
    let buckets = read[1].iter().map(bucket).collect::<Result<Vec<_>, Fault>>()?;
    let last = read[3].first().ok_or_else(|| unreadable("a store without counters"))?;
    let (last_version, last_number) = (value::seq(last.get(0))?, value::seq(last.get(1))?);
    let totals = totals(&read[2])?;
    Ok(Rest { epoch, last_seq, last_version, last_number, buckets, is_new_backup: false, totals })
}

fn totals(rows: &[Row]) -> Result<Totals, Fault> {
    let row = rows.first().ok_or_else(|| unreadable("a store without counts"))?;
    let count = |column| value::seq(row.get(column));
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
}

/// What tells whether there is anything.
pub(super) fn anything(now: Option<i64>) -> Vec<Query> {
    vec![Query::new(TOTALS), Query::new(ANYTHING).with(now)]
}

/// What there is, in a word; `None` if there is nothing.
pub(super) fn found(read: &[Vec<Row>]) -> Result<Option<String>, Fault> {
    if let Some(what) =
        read.first().map(|rows| totals(rows)).transpose()?.and_then(|totals| totals.anything())
    {
        return Ok(Some(what.to_owned()));
    }
    Ok(read.get(1).and_then(|rows| rows.first()).and_then(|row| row.get(0)))
}

/// A page of the unique keys that are held, by key.
pub(super) async fn keys_held(
    link: &mut Link,
    behind: Option<UniqueKey>,
    at_most: usize,
) -> Result<Vec<KeyHold>, Fault> {
    // Nothing is smaller than no bytes.
    let behind = behind.map_or_else(Vec::new, |key| key.0.to_vec());
    let keys = Query::new(KEYS).with(behind).with(value::bound(at_most));
    let rows = link.connection().await?.read(keys).await?;
    rows.iter().map(hold).collect()
}

fn hold(row: &Row) -> Result<KeyHold, Fault> {
    let key: &[u8] = row.get(0);
    let key = key.try_into().map(UniqueKey).map_err(|_| unreadable("a unique key of another length"))?;
    let (seq, until) = (value::seq(row.get(1))?, value::maybe_instant(row, 3)?);
    Ok(KeyHold { key, job: value::job_id(row, 2), seq, until })
}
