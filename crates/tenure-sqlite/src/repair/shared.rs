//! Rows that jobs share and that cannot be read or do not agree with the jobs: lanes, queues, limits and unique keys.

use rusqlite::{Connection, Result, Row, params};
use tenure_core::{Key, QueueName, UniqueKey, Window};

use super::damage::{Damage, Damaged, scan};
use super::keep::Keeper;
use crate::limit_keys::{ALL, read_limit};
use crate::rows::row_of;
use crate::writing::Writing;
use crate::{lanes, value};

const LANES: &str = "SELECT queue AS 'lane.queue', kind AS 'lane.kind', id FROM lane ORDER BY id";
const UNIQUE_KEYS: &str = "SELECT key AS 'unique_key.key', seq AS 'unique_key.seq', id AS 'unique_key.id',
     until AS 'unique_key.until' FROM unique_key ORDER BY key";
/// Keys that are held until a job ends that is not there or has ended.
const HELD_FOR_NOTHING: &str = "SELECT u.key, u.seq FROM unique_key u LEFT JOIN job j ON j.seq = u.seq
     LEFT JOIN standing s ON s.seq = u.seq WHERE u.until IS NULL AND (j.seq IS NULL OR s.state > 1) ORDER BY u.key";
/// Queues of lanes that are not there.
const LOST_QUEUES: &str =
    "SELECT DISTINCT queue FROM lane WHERE queue NOT IN (SELECT name FROM queue) ORDER BY queue";
/// Makes such a queue. Its settings are lost, so it is paused.
const MAKE_QUEUE: &str = "INSERT OR IGNORE INTO queue (name, paused, fair)
     VALUES (?1, 1, EXISTS (SELECT 1 FROM share WHERE queue = ?1))";
/// A lane that stands for one that cannot be read or is not there until its jobs are gone.
const STAND_IN: &str =
    "INSERT INTO lane (id, queue, kind) VALUES (?1, 'unreadable', 'unreadable-' || abs(?1))
     ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, kind = excluded.kind";
const LANES_OF_NO_ROW: &str = "SELECT lane FROM job WHERE seq = ?1 AND lane NOT IN (SELECT id FROM lane)";

/// Finds rows that jobs share and that cannot be read, or that name what is not there.
pub(super) fn damages(conn: &Connection, at_most: usize, found: &mut Vec<Damage>) -> Result<()> {
    let lane = |row: &Row<'_>| value::queue(row, 0).and_then(|_| value::kind(row, 1)).map(drop);
    scan(conn, LANES, at_most, lane, |row| Ok((0, Damaged::Lane(row.get(2)?))), found)?;
    let queue = |row: &Row<'_>| lanes::read_queue(row).map(drop);
    scan(conn, lanes::QUEUES, at_most, queue, |row| Ok((0, Damaged::Queue(bytes(row, 0)?))), found)?;
    let limit = |row: &Row<'_>| read_limit(row).map(drop);
    scan(conn, ALL, at_most, limit, |row| Ok((0, Damaged::Limit(row.get(0)?))), found)?;
    let key = |row: &Row<'_>| {
        value::get::<[u8; 16]>(row, 0)?;
        value::seq_at(row, 1)?;
        value::job_id(row, 2)?;
        value::maybe_instant(row, 3).map(drop)
    };
    let of_key = |row: &Row<'_>| Ok((row.get(1)?, Damaged::UniqueKey(bytes(row, 0)?)));
    scan(conn, UNIQUE_KEYS, at_most, key, of_key, found)?;
    for (key, seq) in pairs(conn, HELD_FOR_NOTHING)? {
        let what = Damaged::UniqueKey(key);
        if found.len() < at_most && found.iter().all(|damage| damage.what != what) {
            found.push(Damage { seq, what, reason: "the job has ended or does not exist".to_owned() });
        }
    }
    for queue in lost_queues(conn)? {
        if found.len() < at_most {
            let reason = "it has lanes, and no settings".to_owned();
            found.push(Damage { seq: 0, what: Damaged::LostQueue(queue), reason });
        }
    }
    Ok(())
}

/// Text or bytes, also text that is none.
fn bytes(row: &Row<'_>, column: usize) -> Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec())
}

fn pairs(conn: &Connection, sql: &str) -> Result<Vec<(Vec<u8>, i64)>> {
    conn.prepare(sql)?.query_map([], |row| Ok((bytes(row, 0)?, row.get(1)?)))?.collect()
}

fn lost_queues(conn: &Connection) -> Result<Vec<String>> {
    let mut queues = names(conn, LOST_QUEUES)?;
    queues.retain(|name| QueueName::new(name).is_ok());
    Ok(queues)
}

/// Names that can be read; the rows of others are found by themselves.
pub(super) fn names(conn: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = conn.prepare(sql)?;
    let found = statement.query_map([], |row| Ok(row.get(0).ok()))?.collect::<Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Makes lanes and queues readable that are not, or not there, so that jobs can be let go. Answers how many rows were
/// moved for each damage, and the lanes that are to be removed once their jobs are gone.
pub(super) fn make_readable(keepers: &[Keeper<'_>], conn: &Connection) -> Result<(Vec<u64>, Vec<i64>)> {
    let (mut rows, mut stand_ins) = (Vec::with_capacity(keepers.len()), Vec::new());
    for keeper in keepers {
        let damage = keeper.damage();
        rows.push(match &damage.what {
            Damaged::Lane(id) => {
                stand_ins.push(*id);
                keeper.copy("lane", "id = ?1", [*id])?
            }
            Damaged::Queue(name) => {
                let kept = keeper.take("queue", "CAST(name AS BLOB) = ?1", &[name])?;
                if let Some(name) = std::str::from_utf8(name).ok().filter(|name| QueueName::new(name).is_ok())
                {
                    conn.execute(MAKE_QUEUE, [name])?;
                }
                kept
            }
            Damaged::LostQueue(name) => {
                conn.execute(MAKE_QUEUE, [name])?;
                0
            }
            Damaged::Job => {
                let mut lane = conn.prepare_cached(LANES_OF_NO_ROW)?;
                let of_job = lane.query_map([damage.seq], |row| row.get(0))?;
                stand_ins.extend(of_job.collect::<Result<Vec<i64>>>()?);
                0
            }
            Damaged::Attempt(_)
            | Damaged::Line(..)
            | Damaged::Limit(_)
            | Damaged::LostLimit(_)
            | Damaged::UniqueKey(_) => 0,
        });
    }
    for id in &stand_ins {
        conn.execute(STAND_IN, [id])?;
    }
    Ok((rows, stand_ins))
}

/// Removes lanes that stood for others, and makes the queues that still have none of their settings.
pub(super) fn finish(conn: &Connection, stand_ins: &[i64]) -> Result<()> {
    for id in stand_ins {
        conn.execute("DELETE FROM lane WHERE id = ?1", [id])?;
    }
    for queue in lost_queues(conn)? {
        conn.execute(MAKE_QUEUE, [queue])?;
    }
    Ok(())
}

impl Writing<'_> {
    /// Takes a unique key away. An unfinished job that says in its terms that it holds one gets it again.
    pub(super) fn take_unique_key(&mut self, keeper: &Keeper<'_>, key: &[u8]) -> Result<u64> {
        let kept = keeper.take("unique_key", "key = ?1", &[&key])?;
        let Ok(Some(stored)) = row_of(self.conn, keeper.damage().seq) else { return Ok(kept) };
        let Some(unique) = stored.job.terms.unique.filter(|_| !stored.job.state.is_finished()) else {
            return Ok(kept);
        };
        let until = match unique.window {
            Window::WhileUnfinished => None,
            Window::For(span) => Some(stored.job.created.after(span).as_micros()),
        };
        let UniqueKey(key) = unique.key;
        let give = "INSERT OR IGNORE INTO unique_key (key, seq, id, until) VALUES (?1, ?2, ?3, ?4)";
        let seq = value::signed(stored.job.seq);
        self.conn.execute(give, params![key, seq, stored.job.id.as_bytes(), until])?;
        Ok(kept)
    }
}

/// A key of a limit, if it is one.
pub(super) fn limit_key(text: &str) -> Option<Key> {
    Key::new("limit", text).ok()
}
