//! Limits of limit keys: which of their due jobs there is room for.
//!
//! In each lane the due jobs of a key stand in one line. The first of them, as many as there is room for, are
//! in the lane's line (`ready`), the others wait behind them (`limit_line`). Whatever touches a key is followed
//! by a look at it, which moves jobs from the one to the other until that is so again.

use rusqlite::{OptionalExtension, Result, Row, params};
use tenure_core::{Bucket, Key, Limit, LimitKey, StateName, limits};

use crate::fault::unreadable;
use crate::front::{Before, Front, READ_AHEAD};
use crate::limit_row::{LimitRow, Rooms};
use crate::reserve::Place;
use crate::value;
use crate::writing::Writing;

pub(crate) const FIND: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows FROM limit_key WHERE key = ?1";
const FIND_BY_ID: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows FROM limit_key WHERE id = ?1";
const MAKE: &str = "INSERT INTO limit_key (key) VALUES (?1)";
const SET: &str = "UPDATE limit_key SET set_to = ?2 WHERE id = ?1";
pub(crate) const KEEP: &str = "UPDATE limit_key
     SET said = ?2, named = ?3, running = ?4, bucket = ?5, lanes = ?6, grows = ?7 WHERE id = ?1";
const DROP: &str = "DELETE FROM limit_key WHERE id = ?1";
pub(crate) const GROWN: &str =
    "SELECT id FROM limit_key WHERE grows IS NOT NULL AND grows <= ?1 ORDER BY grows LIMIT ?2 + 0";
pub(crate) const FIRST_GROWS: &str =
    "SELECT grows FROM limit_key WHERE grows IS NOT NULL ORDER BY grows LIMIT 1";

const WAIT: &str = "INSERT INTO limit_line (limit_id, lane, priority, round, due, seq, begun)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const LEAVE: &str = "DELETE FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND priority = ?3 AND round = ?4 AND due = ?5 AND seq = ?6";
pub(crate) const LAST_QUEUED: &str = "SELECT priority, round, due, seq FROM ready INDEXED BY ready_limit
     WHERE limit_id = ?1 AND lane = ?2
     ORDER BY priority DESC, round DESC, due DESC, seq DESC LIMIT 1 OFFSET ?3 + 0";
pub(crate) const FIRST: &str = "SELECT priority, round, due, seq, begun FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 ORDER BY priority, round, due, seq LIMIT ?3 + 0";
pub(crate) const CUT: &str = "DELETE FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) <= (?3, ?4, ?5, ?6)";
// The statements for many move all up to (or from) a place that was looked up before.
pub(crate) const NEXT_BLOCKED: &str = "SELECT priority, round, due, seq FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 ORDER BY priority, round, due, seq LIMIT 1 OFFSET ?3 + 0";
pub(crate) const LET_IN: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun, limit_id)
     SELECT lane, priority, round, due, seq, begun, limit_id FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) <= (?3, ?4, ?5, ?6)";
pub(crate) const PUSH_OUT: &str = "INSERT INTO limit_line (limit_id, lane, priority, round, due, seq, begun)
     SELECT limit_id, lane, priority, round, due, seq, begun FROM ready INDEXED BY ready_limit
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) >= (?3, ?4, ?5, ?6)";
pub(crate) const PUSHED_OUT: &str = "DELETE FROM ready INDEXED BY ready_limit
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) >= (?3, ?4, ?5, ?6)";

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

    fn limit_for(&mut self, key: &Key) -> Result<i64> {
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

    /// The limit, to be changed and looked at before the present step ends.
    pub(crate) fn touch_limit(&mut self, id: i64) -> Result<&mut LimitRow> {
        self.limit(id)?;
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

    /// A job of the limit does not run any more.
    pub(crate) fn stopped_in_limit(&mut self, id: i64) -> Result<()> {
        let limit = self.touch_limit(id)?;
        limit.running = limit.running.saturating_sub(1);
        Ok(())
    }

    /// So many jobs of the limit, queued in this lane before, were granted.
    pub(crate) fn granted_in_limit(&mut self, id: i64, lane: i64, jobs: u32) -> Result<()> {
        let now = self.now;
        let limit = self.touch_limit(id)?;
        let meter = limit.meter().started(jobs, now);
        (limit.running, limit.bucket) = (meter.running, meter.bucket);
        limit.room_in(lane).queued -= i64::from(jobs);
        Ok(())
    }

    /// A due job of the limit joins its line in a lane.
    pub(crate) fn join_limit(&mut self, key: &Key, lane: i64, place: Place, begun: bool) -> Result<()> {
        let (id, now) = (self.limit_for(key)?, self.now);
        let limit = self.touch_limit(id)?;
        let room = i64::from(limit.meter().room(now));
        let &mut Rooms { queued, blocked, .. } = limit.room_in(lane);
        let fits = queued < room && blocked == 0;
        // Those behind it are pushed out by the look that follows, if there are too many now.
        if fits || (queued > 0 && place < self.last_queued(id, lane)?) {
            self.touch_limit(id)?.room_in(lane).queued += 1;
            return self.put_in_line(lane, place, begun, Some(id));
        }
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.blocked += 1;
        let before = rooms.front.join(place);
        self.cut_limit_line(id, lane, before)?;
        let (priority, round, due, seq) = place;
        self.conn.prepare_cached(WAIT)?.execute(params![id, lane, priority, round, due, seq, begun])?;
        self.memory.lanes.count(lane, StateName::Blocked, 1)
    }

    fn last_queued(&self, id: i64, lane: i64) -> Result<Place> {
        self.conn.prepare_cached(LAST_QUEUED)?.query_row([id, lane, 0], read_place)
    }

    /// A job that was queued under the limit has been taken out of its lane's line.
    pub(crate) fn left_line_of_limit(&mut self, id: i64, lane: i64) -> Result<()> {
        self.touch_limit(id)?.room_in(lane).queued -= 1;
        Ok(())
    }

    /// Takes a job that its limit blocks out of the limit's line.
    pub(crate) fn leave_limit_line(&mut self, id: i64, lane: i64, place: Place) -> Result<()> {
        let (priority, round, due, seq) = place;
        self.conn.prepare_cached(LEAVE)?.execute([id, lane, priority, round, due, seq])?;
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.blocked -= 1;
        rooms.front.leave(place);
        self.memory.lanes.count(lane, StateName::Blocked, -1)
    }

    fn cut_limit_line(&self, id: i64, lane: i64, before: Before<Place>) -> Result<()> {
        if let Before::Cut((priority, round, due, seq)) = before {
            self.conn.prepare_cached(CUT)?.execute([id, lane, priority, round, due, seq])?;
        }
        Ok(())
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

    /// Looks at limits in which time has made room.
    pub(crate) fn notice_room(&mut self) -> Result<()> {
        if !self.memory.keyed.may_grow(self.conn)? {
            return Ok(());
        }
        let grown = self
            .conn
            .prepare_cached(GROWN)?
            .query_map([self.now.as_micros(), value::bound(limits::SWEEP_ROWS)], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        for id in grown {
            self.touch_limit(id)?;
            self.settle_keys()?;
        }
        Ok(())
    }

    /// Makes the limit keep its promise: of each lane's line the first are queued, as many as it has room for.
    pub(crate) fn look_at_limit(&mut self, id: i64) -> Result<()> {
        let now = self.now;
        let limit = self.touch_limit(id)?;
        let room = i64::from(limit.meter().room(now));
        for (lane, surplus) in limit.surpluses(room) {
            match surplus {
                1.. => self.push_out(id, lane, surplus)?,
                _ => self.let_in(id, lane, -surplus)?,
            }
        }
        for (lane, passed) in self.touch_limit(id)?.passed_wholly() {
            self.cut_limit_line(id, lane, Before::Cut(passed))?;
        }
        let limit = self.touch_limit(id)?;
        limit.settle(now);
        limit.is_touched = false;
        if limit.grows.is_some() {
            self.memory.keyed.will_grow();
        }
        Ok(())
    }

    /// Blocks the last so many that are queued in a lane.
    pub(crate) fn push_out(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        let first @ (priority, round, due, seq) =
            self.conn.prepare_cached(LAST_QUEUED)?.query_row([id, lane, jobs - 1], read_place)?;
        let before = self.touch_limit(id)?.room_in(lane).front.join(first);
        self.cut_limit_line(id, lane, before)?;
        let from = [id, lane, priority, round, due, seq];
        self.conn.prepare_cached(PUSH_OUT)?.execute(from)?;
        self.conn.prepare_cached(PUSHED_OUT)?.execute(from)?;
        self.memory.lanes.count(lane, StateName::Queued, -jobs)?;
        self.moved_in_limit(id, lane, -jobs)
    }

    /// Queues the first so many that are blocked in a lane.
    fn let_in(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        if jobs > READ_AHEAD {
            return self.let_many_in(id, lane, jobs);
        }
        for _ in 0..jobs {
            let (place, begun) = self.take_first_blocked(id, lane)?;
            self.put_in_line(lane, place, begun, Some(id))?;
        }
        self.moved_in_limit(id, lane, jobs)
    }

    fn take_first_blocked(&mut self, id: i64, lane: i64) -> Result<(Place, bool)> {
        let conn = self.conn;
        let front = &mut self.touch_limit(id)?.room_in(lane).front;
        if let Some(first) = front.take() {
            return Ok(first);
        }
        let passed = front.passed.take();
        self.cut_limit_line(id, lane, passed.map_or(Before::Nothing, Before::Cut))?;
        let read = conn
            .prepare_cached(FIRST)?
            .query_map([id, lane, READ_AHEAD], |row| Ok((read_place(row)?, row.get(4)?)))?
            .collect::<Result<Vec<_>>>()?;
        let front = &mut self.touch_limit(id)?.room_in(lane).front;
        front.read_ahead(read);
        front.take().ok_or_else(|| unreadable(format_args!("limit {id}, which blocks fewer than it says")))
    }

    fn let_many_in(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        let passed =
            std::mem::replace(&mut self.touch_limit(id)?.room_in(lane).front, Front::new(None)).passed;
        self.cut_limit_line(id, lane, passed.map_or(Before::Nothing, Before::Cut))?;
        let last @ (priority, round, due, seq) =
            self.conn.prepare_cached(NEXT_BLOCKED)?.query_row([id, lane, jobs - 1], read_place)?;
        self.conn.prepare_cached(LET_IN)?.execute([id, lane, priority, round, due, seq])?;
        self.cut_limit_line(id, lane, Before::Cut(last))?;
        self.news.due = true;
        self.memory.lanes.count(lane, StateName::Queued, jobs)?;
        self.moved_in_limit(id, lane, jobs)
    }

    fn moved_in_limit(&mut self, id: i64, lane: i64, into_line: i64) -> Result<()> {
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.queued += into_line;
        rooms.blocked -= into_line;
        self.memory.lanes.count(lane, StateName::Blocked, -into_line)
    }

    /// Writes what changed.
    pub(crate) fn flush_limits(&mut self) -> Result<()> {
        let changed = self.memory.keyed.limits.take_changed();
        if changed.is_empty() {
            return Ok(());
        }
        let mut keep = self.conn.prepare_cached(KEEP)?;
        for id in changed {
            let Some(limit) = self.memory.keyed.limits.get(id) else { continue };
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
                value::to_json(&limit.rooms)?,
                limit.grows.map(|at| at.as_micros()),
            ])?;
        }
        Ok(())
    }
}

/// Reads a limit with its id and key.
pub(crate) fn read_limit(row: &Row<'_>) -> Result<(i64, Key, LimitRow)> {
    let limit = LimitRow {
        said: row.get(2)?,
        set: value::maybe_json(row, 3)?,
        named: row.get(4)?,
        running: row.get(5)?,
        bucket: Bucket(value::instant(row, 6)?),
        rooms: value::maybe_json(row, 7)?.unwrap_or_default(),
        grows: value::maybe_instant(row, 8)?,
        is_touched: false,
    };
    Ok((row.get(0)?, value::key(row, 1)?, limit))
}

fn read_place(row: &Row<'_>) -> Result<Place> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}
