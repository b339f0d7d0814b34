//! Counting a limit anew by the jobs that name it.

use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};
use tenure_core::{Bucket, Key, Limit, LimitKey};

use super::damage::{Damage, Damaged};
use super::keep::Keeper;
use super::shared::{limit_key, names};
use crate::limit_row::LimitRow;
use crate::reserve::Place;
use crate::value;
use crate::writing::Writing;

/// Unfinished jobs with the limit that they name.
const NAMED: &str = "named AS (SELECT j.seq, ifnull(s.state, 0) AS state, s.limit_id,
         CASE WHEN json_valid(j.terms) THEN j.terms ->> '$.limit.key' END AS key,
         CASE WHEN json_valid(j.terms) THEN j.terms ->> '$.limit.most' END AS most
     FROM job j LEFT JOIN standing s ON s.seq = j.seq WHERE j.terms IS NOT NULL AND ifnull(s.state, 0) < 2)";

/// Repairs limits that no unfinished job names: one that was not set is removed, and one that was set counts no jobs.
const NEEDED_NO_MORE: &str = "DELETE FROM limit_key WHERE set_to IS NULL
     AND key NOT IN (SELECT key FROM named WHERE key IS NOT NULL)";
const SET_AND_UNUSED: &str =
    "UPDATE limit_key SET named = 0, running = 0, lanes = '[]', grows = NULL, blocks = 0
     WHERE key NOT IN (SELECT key FROM named WHERE key IS NOT NULL)";

/// Limits that jobs name, and that are not there or not where the jobs look for them.
fn lost() -> String {
    format!(
        "WITH {NAMED} SELECT DISTINCT n.key FROM named n LEFT JOIN limit_key l ON l.key = n.key
         WHERE n.key IS NOT NULL AND (l.id IS NULL OR (n.state = 1 AND n.limit_id IS NOT l.id)
             OR n.seq IN (SELECT r.seq FROM ready r JOIN named m ON m.seq = r.seq
                 LEFT JOIN limit_key k ON k.key = m.key WHERE r.limit_id IS NOT k.id)) ORDER BY n.key"
    )
}

/// Finds limits that jobs name in vain.
pub(super) fn damages(conn: &Connection, at_most: usize, found: &mut Vec<Damage>) -> Result<()> {
    for key in names(conn, &lost())?.iter().filter_map(|key| limit_key(key)) {
        let is_known = found.iter().any(|damage| damage.what == Damaged::LostLimit(key.clone()));
        if found.len() < at_most && !is_known {
            let reason = "jobs that name it do not find it".to_owned();
            found.push(Damage { seq: 0, what: Damaged::LostLimit(key), reason });
        }
    }
    Ok(())
}

/// The settings of a limit that is counted anew.
pub(super) struct Lost {
    key: Key,
    set: Option<Limit>,
    said: Option<u32>,
    bucket: Bucket,
}

/// Takes a limit away until the jobs that cannot be read are gone. Answers how many rows were moved, and what its key and
/// its settings were. Where a setting cannot be read, one job at a time may run until it is set again.
pub(super) fn take(keeper: &Keeper<'_>, conn: &Connection) -> Result<(u64, Option<Lost>)> {
    let settings = |which: &str, by: &dyn ToSql| {
        let sql = format!("SELECT key, set_to, said, bucket FROM limit_key WHERE {which}");
        conn.prepare(&sql)?
            .query_row([by], |row| {
                let one = || Limit { most: Some(1), rate: None };
                let set = value::maybe_json(row, 1).unwrap_or_else(|_| Some(one()));
                let (said, bucket) = (row.get(2).unwrap_or(None), value::instant(row, 3));
                let bucket = bucket.map_or(Bucket::FULL, Bucket);
                Ok(value::key(row, 0).ok().map(|key| Lost { key, set, said, bucket }))
            })
            .optional()
    };
    match &keeper.damage().what {
        Damaged::Limit(id) => {
            let lost = settings("id = ?1", id)?.flatten();
            Ok((keeper.take("limit_key", "id = ?1", &[id])?, lost))
        }
        Damaged::LostLimit(key) => {
            let new = || Lost { key: key.clone(), set: None, said: None, bucket: Bucket::FULL };
            let lost = settings("key = ?1", &key.as_str())?.flatten().unwrap_or_else(new);
            conn.execute("DELETE FROM limit_key WHERE key = ?1", [key.as_str()])?;
            Ok((0, Some(lost)))
        }
        Damaged::Job
        | Damaged::Attempt(_)
        | Damaged::Line(..)
        | Damaged::Lane(_)
        | Damaged::Queue(_)
        | Damaged::LostQueue(_)
        | Damaged::UniqueKey(_) => Ok((0, None)),
    }
}

impl Writing<'_> {
    /// Counts limits anew that were taken away, and those that jobs still name in vain.
    pub(super) fn count_limits_anew(&mut self, mut lost: Vec<Lost>) -> Result<()> {
        let of_none = "DELETE FROM limit_line WHERE limit_id NOT IN (SELECT id FROM limit_key)";
        let in_vain = names(self.conn, &self::lost())?;
        for key in in_vain.iter().filter_map(|key| limit_key(key)) {
            if lost.iter().all(|known| known.key != key) {
                lost.push(Lost { key, set: None, said: None, bucket: Bucket::FULL });
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        for limit in lost {
            self.count_limit_anew(&limit)?;
            self.settle_keys()?;
            self.write_line()?;
            self.flush_keys()?;
        }
        for sql in [NEEDED_NO_MORE, SET_AND_UNUSED] {
            self.conn.execute(&format!("WITH {NAMED} {sql}"), [])?;
        }
        self.conn.execute(of_none, [])?;
        Ok(())
    }

    fn count_limit_anew(&mut self, lost: &Lost) -> Result<()> {
        let Lost { key, set, said, bucket } = lost;
        let id = self.limit_for(key)?;
        let text = value::maybe_to_json(set.as_ref())?;
        self.conn.execute("UPDATE limit_key SET set_to = ?2 WHERE id = ?1", params![id, text])?;
        let places = self.take_places(key)?;
        let before = LimitRow { said: *said, set: *set, bucket: *bucket, ..LimitRow::default() };
        let limit = self.touch_limit(id)?;
        *limit = LimitRow { is_touched: true, is_listed: limit.is_listed, ..before };
        let jobs = self
            .conn
            .prepare(&format!("WITH {NAMED} SELECT state, most FROM named WHERE key = ?1 ORDER BY seq"))?
            .query_map([key.as_str()], |row| Ok((row.get(0)?, row.get(1).unwrap_or(None))))?
            .collect::<Result<Vec<(i64, Option<u32>)>>>()?;
        for (state, most) in jobs {
            self.name_limit(&LimitKey { key: key.clone(), most })?;
            if state == crate::code::RUNNING {
                self.touch_limit(id)?.running += 1;
            }
        }
        let running = format!(
            "WITH {NAMED} UPDATE standing SET limit_id = ?2
             WHERE state = 1 AND seq IN (SELECT seq FROM named WHERE key = ?1)"
        );
        self.conn.execute(&running, params![key.as_str(), id])?;
        for (lane, place, begun) in places {
            self.join_limit(key, lane, place, begun)?;
        }
        Ok(())
    }

    /// Takes the due jobs of a limit out of all lines; answers their places.
    fn take_places(&self, key: &Key) -> Result<Vec<(i64, Place, bool)>> {
        let of_limit = "seq IN (SELECT seq FROM named WHERE key = ?1 AND state = 0)";
        let places = self
            .conn
            .prepare(&format!(
                "WITH {NAMED} SELECT lane, priority, round, due, seq, begun FROM ready WHERE {of_limit}
                 UNION SELECT lane, priority, round, due, seq, begun FROM limit_line WHERE {of_limit}
                 ORDER BY priority, round, due, seq"
            ))?
            .query_map([key.as_str()], |row| {
                let place = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((row.get(0)?, place, row.get(5)?))
            })?
            .collect::<Result<Vec<_>>>()?;
        for table in ["ready", "limit_line"] {
            let sql = format!("WITH {NAMED} DELETE FROM {table} WHERE {of_limit}");
            self.conn.execute(&sql, [key.as_str()])?;
        }
        Ok(places)
    }
}
