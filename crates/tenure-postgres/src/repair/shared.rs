//! Rows that jobs share and that cannot be read, or that name what is not there: lanes, queues, limits and unique keys.

use serde_json::{Map, Value};
use tenure_core::{Bucket, Key, Limit, QueueName, QueueTerms, UniqueKey, Window};
use tenure_store::Fault;
use tokio_postgres::Row;

use super::damage::{Damage, Damaged};
use crate::connection::Connection;
use crate::fault::{unreadable, what_is_unreadable};
use crate::keyed::{LimitRow, is_limit_readable};
use crate::query::Query;
use crate::value;
use crate::writing::Writing;

const LANES: &str = r#"SELECT id, queue AS "lane.queue", kind AS "lane.kind" FROM lane ORDER BY id"#;
const QUEUES: &str = r#"SELECT name AS "queue.name", limit_to AS "queue.limit_to", terms AS "queue.terms",
     bucket AS "queue.bucket" FROM queue ORDER BY name"#;
const LIMITS: &str = r#"SELECT key AS "limit_key.key", kept AS "limit_key.kept", grows_at AS "limit_key.grows_at"
     FROM limit_key ORDER BY key"#;
const UNIQUE_KEYS: &str = r#"SELECT u.key AS "unique_key.key", u.seq AS "unique_key.seq", u.until AS "unique_key.until",
         u.id, u.until IS NULL AND (j.seq IS NULL OR EXISTS (SELECT FROM standing s WHERE s.seq = j.seq AND s.state > 1)
             OR EXISTS (SELECT FROM receipt r WHERE r.lane = j.lane AND r.block = j.seq >> 8 AND has_bit(r.seqs, j.seq)))
     FROM unique_key u LEFT JOIN LATERAL (SELECT seq, lane FROM job WHERE id = u.id LIMIT 1) j ON true
     WHERE $1::bytea IS NULL OR u.key > $1 ORDER BY u.key LIMIT $2"#;
/// Queues of lanes that are not there: nothing is claimed from them.
const LOST_QUEUES: &str = "SELECT DISTINCT l.queue FROM lane l
     WHERE NOT EXISTS (SELECT FROM queue q WHERE q.name = l.queue) ORDER BY l.queue";
/// Limits that jobs name and that are not there.
const LOST_LIMITS: &str = "SELECT DISTINCT k.limit_key FROM keyed k WHERE k.limit_key IS NOT NULL
         AND NOT EXISTS (SELECT FROM limit_key l WHERE l.key = k.limit_key) ORDER BY k.limit_key";

const TAKE_LANE: &str = "WITH taken AS (DELETE FROM lane WHERE id = $5
             AND NOT EXISTS (SELECT FROM job WHERE lane = $5) RETURNING *),
         counted AS (DELETE FROM tally WHERE lane IN (SELECT id FROM taken))
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'lane', $3::text, row_to_json(t)::text FROM taken t";
const TAKE_QUEUE: &str = "WITH taken AS (DELETE FROM queue WHERE name = $5 RETURNING *)
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'queue', $3::text, row_to_json(t)::text FROM taken t";
/// Makes a queue whose settings are lost: it is paused.
const MAKE_QUEUE: &str = "INSERT INTO queue (name, paused, fair) SELECT $1, true,
         EXISTS (SELECT FROM served WHERE queue = $1) OR EXISTS (SELECT FROM keyed WHERE fair_queue = $1)
     ON CONFLICT DO NOTHING";
const TAKE_LIMIT: &str = "WITH taken AS (DELETE FROM limit_key WHERE key = $5 RETURNING *)
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'limit_key', $3::text, row_to_json(t)::text FROM taken t";
const SETTINGS: &str = "SELECT kept FROM limit_key WHERE key = $1";
const TAKE_UNIQUE_KEY: &str = "WITH taken AS (DELETE FROM unique_key WHERE key = $5 AND seq = $1 RETURNING *)
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'unique_key', $3::text, row_to_json(t)::text FROM taken t";
const GIVE_UNIQUE_KEY: &str =
    "INSERT INTO unique_key (key, seq, id, until) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// Unique keys that one statement reads.
const AT_ONCE: usize = 1000;

fn shared(what: Damaged, reason: String) -> Damage {
    Damage { seq: 0, id: None, what, reason }
}

fn text(row: &Row, column: usize) -> String {
    row.get::<_, Option<String>>(column).unwrap_or_default()
}

/// Finds limits that cannot be read or are not there. They are counted again before jobs are let go.
pub(super) async fn limits(connection: &mut Connection) -> Result<Vec<Damage>, Fault> {
    let mut found = Vec::new();
    for row in &connection.read(Query::new(LIMITS)).await? {
        if let Err(fault) = is_limit_readable(row) {
            found.push(shared(Damaged::Limit(text(row, 0)), what_is_unreadable(&fault)));
        }
    }
    for row in &connection.read(Query::new(LOST_LIMITS)).await? {
        if let Ok(key) = Key::new("limit", &text(row, 0)) {
            found.push(shared(Damaged::LostLimit(key), "jobs that name it do not find it".to_owned()));
        }
    }
    Ok(found)
}

/// Finds unique keys that cannot be read, or that are held until a job ends that is not there or has ended.
pub(super) async fn unique_keys(connection: &mut Connection, at_most: usize) -> Result<Vec<Damage>, Fault> {
    let (mut found, mut behind) = (Vec::new(), None::<Vec<u8>>);
    while found.len() < at_most {
        let query = Query::new(UNIQUE_KEYS).with(behind).with(value::bound(AT_ONCE));
        let read = connection.read(query).await?;
        let Some(last) = read.last() else { break };
        behind = Some(last.get(0));
        for row in &read {
            let reason = match is_key_readable(row) {
                Err(fault) => what_is_unreadable(&fault),
                Ok(()) if row.get(4) => "the job has ended or does not exist".to_owned(),
                Ok(()) => continue,
            };
            let (seq, id) = (row.get(1), value::maybe_job_id(row, 3));
            found.push(Damage { seq, id, what: Damaged::UniqueKey(row.get(0)), reason });
        }
    }
    Ok(found)
}

fn is_key_readable(row: &Row) -> Result<(), Fault> {
    let key: &[u8] = row.get(0);
    if key.len() != size_of::<UniqueKey>() {
        return Err(unreadable(format_args!("column unique_key.key: {} bytes", key.len())));
    }
    value::seq_at(row, 1)?;
    value::maybe_instant(row, 2).map(drop)
}

/// Finds queues and lanes that cannot be read, and queues of lanes that are not there.
pub(super) async fn queues_and_lanes(connection: &mut Connection) -> Result<Vec<Damage>, Fault> {
    let mut found = Vec::new();
    for row in &connection.read(Query::new(QUEUES)).await? {
        let read = value::queue(row, 0)
            .and_then(|_| value::maybe_json::<Limit>(row, 1))
            .and_then(|_| value::maybe_json::<QueueTerms>(row, 2))
            .and_then(|_| value::instant(row, 3));
        if let Err(fault) = read {
            found.push(shared(Damaged::Queue(text(row, 0)), what_is_unreadable(&fault)));
        }
    }
    for row in &connection.read(Query::new(LANES)).await? {
        if let Err(fault) = value::queue(row, 1).and_then(|_| value::kind(row, 2)) {
            found.push(shared(Damaged::Lane(row.get(0)), what_is_unreadable(&fault)));
        }
    }
    for row in &connection.read(Query::new(LOST_QUEUES)).await? {
        let name = text(row, 0);
        if QueueName::new(&name).is_ok() {
            found.push(shared(Damaged::LostQueue(name), "it has lanes, and no settings".to_owned()));
        }
    }
    Ok(found)
}

impl Writing<'_> {
    /// Takes a lane away in which no job is left.
    pub(super) async fn take_lane(&mut self, damage: &Damage, lane: i32) -> Result<u64, Fault> {
        let query = self.keeping(TAKE_LANE, damage).with(lane);
        self.count(vec![query]).await
    }

    /// Takes a queue away, and makes it again, paused, if it has a name.
    pub(super) async fn take_queue(&mut self, damage: &Damage, name: &str) -> Result<u64, Fault> {
        let query = self.keeping(TAKE_QUEUE, damage).with(name.to_owned());
        let rows = self.count(vec![query]).await?;
        if QueueName::new(name).is_ok() {
            self.make_queue(name)?;
        }
        Ok(rows)
    }

    pub(super) fn make_queue(&mut self, name: &str) -> Result<(), Fault> {
        self.write(Query::new(MAKE_QUEUE).with(name.to_owned()))
    }

    /// Takes a limit away, and counts it again by the jobs that name it. Where its settings cannot be read, one job at a
    /// time may run until it is set again.
    pub(super) async fn take_limit(&mut self, damage: &Damage, name: &str) -> Result<u64, Fault> {
        let read = self.read(vec![Query::new(SETTINGS).with(name.to_owned())]).await?;
        let kept = read.iter().flatten().next().map(|row| text(row, 0)).unwrap_or_default();
        let query = self.keeping(TAKE_LIMIT, damage).with(name.to_owned());
        let rows = self.count(vec![query]).await?;
        if let Ok(key) = Key::new("limit", name) {
            self.count_limit_anew(&key, settings(&kept)).await?;
        }
        Ok(rows)
    }

    /// Takes a unique key away. An unfinished job that says in its terms that it holds one gets it again.
    pub(super) async fn take_unique_key(&mut self, damage: &Damage, key: &[u8]) -> Result<u64, Fault> {
        let query = self.keeping(TAKE_UNIQUE_KEY, damage).with(key.to_vec());
        let rows = self.count(vec![query]).await?;
        let Some(id) = damage.id else { return Ok(rows) };
        let Ok(Some(stored)) = self.find(id).await else { return Ok(rows) };
        let Some(unique) = stored.job.terms.unique.filter(|_| !stored.job.state.is_finished()) else {
            return Ok(rows);
        };
        let until = match unique.window {
            Window::WhileUnfinished => None,
            Window::For(span) => Some(stored.job.created.after(span).as_micros()),
        };
        let give = Query::new(GIVE_UNIQUE_KEY)
            .with(unique.key.0.to_vec())
            .with(value::signed(stored.job.seq))
            .with(value::of_job(id))
            .with(until);
        self.write(give)?;
        Ok(rows)
    }
}

/// The settings of a limit as far as they can be read, and no jobs.
fn settings(kept: &str) -> LimitRow {
    let one = Limit { most: Some(1), rate: None };
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(kept) else {
        return LimitRow::anew(Some(one), None, Bucket::FULL);
    };
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let set = serde_json::from_value(field("set")).unwrap_or(Some(one));
    let said = serde_json::from_value(field("said")).unwrap_or(None);
    let bucket = serde_json::from_value(field("bucket")).unwrap_or(Bucket::FULL);
    LimitRow::anew(set, said, bucket)
}
