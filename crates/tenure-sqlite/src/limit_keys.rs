//! Limits of limit keys: which of their due jobs there is room for.
//!
//! In each lane the due jobs of a key stand in one line (`limit_line`). The first of them, as many as there is
//! room for, also stand in the lane's line (`ready`); the others are blocked. Whatever touches a key is followed
//! by a look at it, which lets jobs in or pushes them out until that is so again. A call lets in a bounded number
//! of jobs, and later sweeps the rest.

use rusqlite::{OptionalExtension, Result, Row, params};
use tenure_core::{Bucket, Key, Limit, LimitKey, limits};

use crate::fault::{is_unreadable, unreadable};
use crate::limit_row::{LimitRow, READ_AHEAD, Rooms};
use crate::reserve::Place;
use crate::value;
use crate::writing::Writing;

pub(crate) const FIND: &str = "SELECT id, key, said, set_to, named, running, bucket, lanes, grows, blocks FROM limit_key WHERE key = ?1";
/// All limits, as [`read_limit`] reads them.
pub(crate) const ALL: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows, blocks FROM limit_key ORDER BY id";
const FIND_BY_ID: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows, blocks FROM limit_key WHERE id = ?1";
const MAKE: &str = "INSERT INTO limit_key (key) VALUES (?1)";
const SET: &str = "UPDATE limit_key SET set_to = ?2 WHERE id = ?1";
pub(crate) const KEEP: &str = "UPDATE limit_key
     SET said = ?2, named = ?3, running = ?4, bucket = ?5, lanes = ?6, grows = ?7 WHERE id = ?1";
const DROP: &str = "DELETE FROM limit_key WHERE id = ?1";
pub(crate) const GROWN: &str =
    "SELECT id FROM limit_key WHERE grows IS NOT NULL AND grows <= ?1 ORDER BY grows LIMIT ?2 + 0";
pub(crate) const FIRST_GROWS: &str =
    "SELECT grows FROM limit_key WHERE grows IS NOT NULL ORDER BY grows LIMIT 1";

pub(crate) const BLOCKING: &str =
    "SELECT id FROM limit_key WHERE blocks = 1 AND id > ?1 ORDER BY id LIMIT ?2 + 0";

/// Lists it, or not, among those that block jobs.
const LIST: &str = "UPDATE limit_key SET blocks = ?2 WHERE id = ?1";

impl Writing<'_> {
    /// The limit of this key, if there is one.
    pub(crate) fn limit_of(&mut self, key: &Key) -> Result<Option<i64>> {
        match self.memory.keyed.limits.id(key) {
            Some(id) => Ok(Some(id)),
            None => self.learn_limit(FIND, key.as_str()),
        }
    }

    fn learn_limit(&mut self, sql: &str, by: impl rusqlite::ToSql) -> Result<Option<i64>> {
        let found = self.conn.prepare_cached(sql)?.query_row([by], read_limit).optional()?;
        Ok(found.map(|(id, key, limit)| {
            self.memory.keyed.limits.learn(id, key, limit);
            id
        }))
    }

    pub(crate) fn limit_for(&mut self, key: &Key) -> Result<i64> {
        if let Some(id) = self.limit_of(key)? {
            return Ok(id);
        }
        let id = self.conn.prepare_cached(MAKE)?.insert([key.as_str()])?;
        self.memory.keyed.limits.learn(id, key.clone(), LimitRow::default());
        Ok(id)
    }

    /// The limit, as it is.
    pub(crate) fn limit(&mut self, id: i64) -> Result<&LimitRow> {
        if self.memory.keyed.limits.get(id).is_none() {
            self.learn_limit(FIND_BY_ID, id)?;
        }
        self.memory.keyed.limits.get(id).ok_or_else(|| unreadable(format_args!("limit {id}")))
    }

    /// The limit, as it is, or why this version cannot read it.
    pub(crate) fn readable_limit(
        &mut self,
        id: i64,
    ) -> Result<std::result::Result<&LimitRow, rusqlite::Error>> {
        match self.limit(id) {
            Ok(limit) => Ok(Ok(limit)),
            Err(error) if is_unreadable(&error) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// The limit, to be changed and looked at before the present step ends.
    pub(crate) fn touch_limit(&mut self, id: i64) -> Result<&mut LimitRow> {
        if self.memory.keyed.limits.get(id).is_none() {
            self.learn_limit(FIND_BY_ID, id)?;
        }
        let keyed = &mut self.memory.keyed;
        let limit = keyed.limits.change(id).ok_or_else(|| unreadable(format_args!("limit {id}")))?;
        if !limit.is_touched {
            limit.is_touched = true;
            keyed.touched_limits.push(id);
        }
        Ok(limit)
    }

    /// A job that names a limit was accepted: what it says counts.
    pub(crate) fn name_limit(&mut self, named: &LimitKey) -> Result<()> {
        let id = self.limit_for(&named.key)?;
        let limit = self.touch_limit(id)?;
        limit.named += 1;
        limit.said = named.most.or(limit.said);
        Ok(())
    }

    /// A job that names a limit is done again: it says nothing new if others have spoken since.
    pub(crate) fn name_limit_again(&mut self, named: &LimitKey) -> Result<()> {
        let id = self.limit_for(&named.key)?;
        let limit = self.touch_limit(id)?;
        limit.named += 1;
        limit.said = limit.said.or(named.most);
        Ok(())
    }

    /// A job of the limit has ended or is gone.
    pub(crate) fn unname_limit(&mut self, id: i64) -> Result<()> {
        self.touch_limit(id)?.named -= 1;
        Ok(())
    }

    /// A running job of the limit has ended.
    pub(crate) fn ended_in_limit(&mut self, id: i64) -> Result<()> {
        let limit = self.touch_limit(id)?;
        limit.running = limit.running.saturating_sub(1);
        limit.named -= 1;
        Ok(())
    }

    /// A job of the limit does not run any more.
    pub(crate) fn stopped_in_limit(&mut self, id: i64) -> Result<()> {
        let limit = self.touch_limit(id)?;
        limit.running = limit.running.saturating_sub(1);
        Ok(())
    }

    /// A job of the limit, queued in this lane, was granted: as the first of those that were, or not.
    pub(crate) fn granted_in_limit(
        &mut self,
        id: i64,
        lane: i64,
        place: Place,
        is_first: bool,
    ) -> Result<()> {
        let now = self.now;
        let limit = self.touch_limit(id)?;
        let meter = limit.meter().started(1, now);
        (limit.running, limit.bucket) = (meter.running, meter.bucket);
        if !is_first {
            return self.leave_queued(id, lane, place);
        }
        let rooms = limit.room_in(lane);
        rooms.let_go(place);
        match rooms.cut(READ_AHEAD) {
            Some(last) => self.cut_limit_line(id, lane, last),
            None => Ok(()),
        }
    }

    /// Sets the limit of a key, whatever its jobs say; or lets them say again.
    pub(crate) fn set_limit(&mut self, key: &Key, to: Option<Limit>) -> Result<()> {
        let id = match to {
            Some(_) => self.limit_for(key)?,
            None => match self.limit_of(key)? {
                Some(id) => id,
                None => return Ok(()),
            },
        };
        self.conn.prepare_cached(SET)?.execute(params![id, value::maybe_to_json(to.as_ref())?])?;
        let now = self.now;
        let limit = self.touch_limit(id)?;
        let before = limit.meter();
        limit.set = to;
        limit.bucket = before.limited(limit.limit(), now).bucket;
        self.news.due = true;
        self.settle_keys()
    }

    /// Looks at limits in which time has made room; answers at how many.
    pub(crate) fn notice_room(&mut self) -> Result<usize> {
        let has_grown_less = self.memory.set_back.is_noticed(self.now);
        if !self.memory.keyed.may_grow(self.conn)? {
            self.memory.set_back.looked_behind(None);
            return Ok(0);
        }
        // Calls that change limits leave a sweep as much to let in as ever.
        self.jobs_let_in = 0;
        let again = if has_grown_less { self.look_again()? } else { 0 };
        let grown = self
            .conn
            .prepare_cached(GROWN)?
            .query_map([self.now.as_micros(), value::bound(limits::SWEEP_ROWS)], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        for id in &grown {
            match self.readable_limit(*id)? {
                Ok(_) => self.touch_limit(*id).map(drop)?,
                Err(error) => self.set_limit_aside(*id, &error)?,
            }
            self.settle_keys()?;
            if self.may_let_in() == 0 {
                return Ok(limits::SWEEP_ROWS);
            }
        }
        Ok(grown.len().max(again))
    }

    /// Returns the number of jobs that limits may still let in.
    fn may_let_in(&self) -> i64 {
        (value::bound(limits::LET_IN_JOBS) - self.jobs_let_in).max(0)
    }

    /// Looks at limits for which time runs anew, because the clock was put back; answers at how many.
    fn look_again(&mut self) -> Result<usize> {
        let behind = self.memory.set_back.behind();
        let page = [behind, value::bound(limits::SWEEP_ROWS)];
        let blocking = self
            .conn
            .prepare_cached(BLOCKING)?
            .query_map(page, |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        for id in &blocking {
            if self.readable_limit(*id)?.is_ok_and(|limit| limit.grows.is_some()) {
                self.touch_limit(*id)?;
                self.settle_keys()?;
            }
        }
        let last = blocking.last().filter(|_| blocking.len() >= limits::SWEEP_ROWS);
        self.memory.set_back.looked_behind(last.copied());
        Ok(blocking.len())
    }

    /// Makes the limit keep its promise: of each lane's line the first are queued, as many as it has room for. If
    /// that would let in too many at once, a sweep goes on.
    pub(crate) fn look_at_limit(&mut self, id: i64) -> Result<()> {
        let now = self.now;
        let limit = self.touch_limit(id)?;
        let meter = limit.meter().seen(now);
        limit.bucket = meter.bucket;
        let (before, mut is_cut_short) = (self.jobs_let_in, false);
        for (lane, surplus) in self.touch_limit(id)?.surpluses(i64::from(meter.room(now))) {
            if surplus > 0 {
                self.push_out(id, lane, surplus)?;
                continue;
            }
            let jobs = self.may_let_in().min(-surplus);
            self.let_in(id, lane, jobs)?;
            self.jobs_let_in += jobs;
            is_cut_short |= jobs < -surplus;
        }
        if self.touch_limit(id)?.has_gone_idle() {
            self.cut_limit_lines(id)?;
        }
        let has_let_in = self.jobs_let_in > before;
        let limit = self.touch_limit(id)?;
        // A limit that has let none in goes on before those that have.
        let since = limit.grows.filter(|since| *since < now && !has_let_in).unwrap_or(now);
        limit.settle(now, is_cut_short.then_some(since));
        limit.is_touched = false;
        if limit.grows.is_some() {
            self.memory.keyed.will_grow();
        }
        Ok(())
    }

    /// Writes what changed.
    pub(crate) fn flush_limits(&mut self) -> Result<()> {
        let changed = self.memory.keyed.limits.take_changed();
        if changed.is_empty() {
            return Ok(());
        }
        let mut keep = self.conn.prepare_cached(KEEP)?;
        for id in changed {
            let Some(limit) = self.memory.keyed.limits.peek(id) else { continue };
            if limit.is_idle() {
                self.conn.prepare_cached(DROP)?.execute([id])?;
                self.memory.keyed.limits.remove(id);
                continue;
            }
            keep.execute(params![
                id,
                limit.said,
                limit.named,
                limit.running,
                limit.bucket.0.as_micros(),
                value::to_json(&limit.rooms.values().collect::<Vec<_>>())?,
                limit.grows.map(|at| at.as_micros()),
            ])?;
            if limit.is_listed != limit.blocks() {
                limit.is_listed = limit.blocks();
                self.conn.prepare_cached(LIST)?.execute(params![id, limit.is_listed])?;
            }
        }
        Ok(())
    }
}

/// Reads a limit with its id and key.
pub(crate) fn read_limit(row: &Row<'_>) -> Result<(i64, Key, LimitRow)> {
    let rooms: Vec<Rooms> = value::maybe_json(row, 7)?.unwrap_or_default();
    let limit = LimitRow {
        said: row.get(2)?,
        set: value::maybe_json(row, 3)?,
        named: row.get(4)?,
        running: row.get(5)?,
        bucket: Bucket(value::instant(row, 6)?),
        rooms: rooms.into_iter().map(|rooms| (rooms.lane, rooms)).collect(),
        grows: value::maybe_instant(row, 8)?,
        is_listed: row.get(9)?,
        is_touched: false,
    };
    Ok((row.get(0)?, value::key(row, 1)?, limit))
}
