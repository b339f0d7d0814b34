//! The line of a limit's due jobs in one lane.
//!
//! It is passed through from its head: those that were granted lie at its start until some of them are deleted
//! together, then come those that are queued, then those that are blocked. `last_gone` and `last_queued` of
//! [`Rooms`](crate::limit_row::Rooms) say where each part ends.

use rusqlite::{Result, Row, params};
use tenure_core::{Key, StateName};

use crate::fault::unreadable;
use crate::limit_row::READ_AHEAD;
use crate::place::OUT_OF_LINE;
use crate::reserve::Place;
use crate::value;
use crate::writing::Writing;

const JOIN: &str = "INSERT INTO limit_line (limit_id, lane, priority, round, due, seq, begun)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const LEAVE: &str = "DELETE FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND priority = ?3 AND round = ?4 AND due = ?5 AND seq = ?6";
pub(crate) const CUT: &str = "DELETE FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) <= (?3, ?4, ?5, ?6)";
pub(crate) const FIRST_BEHIND: &str = "SELECT priority, round, due, seq, begun FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6)
     ORDER BY priority, round, due, seq LIMIT ?7 + 0";
pub(crate) const LAST_UP_TO: &str = "SELECT priority, round, due, seq, begun FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) <= (?3, ?4, ?5, ?6)
     ORDER BY priority DESC, round DESC, due DESC, seq DESC LIMIT ?7 + 0";
pub(crate) const NTH_BEHIND: &str = "SELECT priority, round, due, seq FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6)
     ORDER BY priority, round, due, seq LIMIT 1 OFFSET ?7 + 0";
pub(crate) const COUNT_BETWEEN: &str = "SELECT count(*) FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6)
         AND (priority, round, due, seq) <= (?7, ?8, ?9, ?10)";
pub(crate) const LET_MANY_IN: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun, limit_id)
     SELECT lane, priority, round, due, seq, begun, limit_id FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6)
         AND (priority, round, due, seq) <= (?7, ?8, ?9, ?10)";

/// Before every place: no priority is as small as this.
pub(crate) const START: Place = (i64::MIN, 0, 0, 0);
/// Jobs that are pushed out at once.
const PUSHED_AT_ONCE: usize = 256;

impl Writing<'_> {
    /// A due job of the limit joins its line in a lane.
    pub(crate) fn join_limit(&mut self, key: &Key, lane: i64, place: Place, begun: bool) -> Result<()> {
        let (id, now) = (self.limit_for(key)?, self.now);
        let limit = self.touch_limit(id)?;
        let room = i64::from(limit.meter().room(now));
        let rooms = limit.room_in(lane);
        let fits = rooms.blocked == 0 && rooms.queued < room;
        // Those behind it are pushed out by the look that follows, if there are too many now.
        let is_queued = fits || rooms.last_queued.is_some_and(|last| place < last);
        let is_among_gone = rooms.last_gone.is_some_and(|last| place <= last);
        if is_queued {
            rooms.queued += 1;
            rooms.last_queued = rooms.last_queued.max(Some(place));
        } else {
            rooms.block(place, begun);
        }
        if is_among_gone && let Some(last) = rooms.cut(0) {
            self.cut_limit_line(id, lane, last)?;
        }
        let (priority, round, due, seq) = place;
        self.conn.prepare_cached(JOIN)?.execute(params![id, lane, priority, round, due, seq, begun])?;
        match is_queued {
            true => self.put_in_line(lane, place, begun, Some(id)),
            false => self.memory.lanes.count(lane, StateName::Blocked, 1),
        }
    }

    /// A job that was queued under the limit, and stands in its lane's line no more, leaves that of the limit.
    pub(crate) fn leave_queued(&mut self, id: i64, lane: i64, place: Place) -> Result<()> {
        self.delete_from_limit_line(id, lane, place)?;
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.queued -= 1;
        if rooms.last_queued != Some(place) {
            return Ok(());
        }
        let is_last = rooms.queued == 0;
        let before = if is_last { None } else { self.last_up_to(id, lane, place, 1)?.pop() };
        self.touch_limit(id)?.room_in(lane).last_queued = before.map(|(place, _)| place);
        Ok(())
    }

    /// A job that the limit blocks leaves its line.
    pub(crate) fn leave_blocked(&mut self, id: i64, lane: i64, place: Place) -> Result<()> {
        self.delete_from_limit_line(id, lane, place)?;
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.blocked -= 1;
        rooms.front.retain(|(read, _)| *read != place);
        self.memory.lanes.count(lane, StateName::Blocked, -1)
    }

    fn delete_from_limit_line(&self, id: i64, lane: i64, place: Place) -> Result<()> {
        let (priority, round, due, seq) = place;
        self.conn.prepare_cached(LEAVE)?.execute([id, lane, priority, round, due, seq])?;
        Ok(())
    }

    /// Deletes those that are gone, up to the last of them.
    pub(crate) fn cut_limit_line(&self, id: i64, lane: i64, last: Place) -> Result<()> {
        let (priority, round, due, seq) = last;
        self.conn.prepare_cached(CUT)?.execute([id, lane, priority, round, due, seq])?;
        Ok(())
    }

    /// Deletes all that are gone.
    pub(crate) fn cut_limit_lines(&mut self, id: i64) -> Result<()> {
        let lines: Vec<_> =
            self.touch_limit(id)?.rooms.iter_mut().map(|(lane, rooms)| (*lane, rooms.cut(0))).collect();
        for (lane, last) in lines {
            if let Some(last) = last {
                self.cut_limit_line(id, lane, last)?;
            }
        }
        Ok(())
    }

    /// Blocks the last so many that are queued in a lane.
    pub(crate) fn push_out(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        self.write_line()?;
        let mut left = usize::try_from(jobs).unwrap_or(0);
        while left > 0 {
            let now = left.min(PUSHED_AT_ONCE);
            let last = self.touch_limit(id)?.room_in(lane).last_queued;
            let Some(last) = last else { return Err(miscounted(id)) };
            // One more: it will be the last.
            let mut found = self.last_up_to(id, lane, last, now + 1)?;
            let before = if found.len() > now { found.pop() } else { None };
            if found.len() < now {
                return Err(miscounted(id));
            }
            let mut out_of_line = self.conn.prepare_cached(OUT_OF_LINE)?;
            for (place, _) in &found {
                let (priority, round, due, seq) = *place;
                out_of_line.execute([lane, priority, round, due, seq])?;
            }
            left -= now;
            let rooms = self.touch_limit(id)?.room_in(lane);
            rooms.queued -= value::bound(now);
            rooms.blocked += value::bound(now);
            rooms.last_queued = before.map(|(place, _)| place).filter(|_| rooms.queued > 0);
            for pushed in found {
                rooms.front.push_front(pushed);
            }
            rooms.front.truncate(READ_AHEAD);
        }
        self.memory.lanes.count(lane, StateName::Queued, -jobs)?;
        self.memory.lanes.count(lane, StateName::Blocked, jobs)
    }

    /// How many are queued in a lane behind a place.
    pub(crate) fn queued_behind(&mut self, id: i64, lane: i64, place: Place) -> Result<i64> {
        let Some(last) = self.touch_limit(id)?.room_in(lane).last_queued else { return Ok(0) };
        let (p, r, d, s) = place;
        let (priority, round, due, seq) = last;
        let these = [id, lane, p, r, d, s, priority, round, due, seq];
        self.conn.prepare_cached(COUNT_BETWEEN)?.query_row(these, |row| row.get(0))
    }

    /// Queues the first so many that are blocked in a lane.
    pub(crate) fn let_in(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        if jobs > value::bound(READ_AHEAD) {
            return self.let_many_in(id, lane, jobs);
        }
        for _ in 0..jobs {
            let (place, begun) = self.first_blocked(id, lane)?;
            let rooms = self.touch_limit(id)?.room_in(lane);
            rooms.front.pop_front();
            rooms.queued += 1;
            rooms.blocked -= 1;
            rooms.last_queued = Some(place);
            self.put_in_line(lane, place, begun, Some(id))?;
        }
        self.memory.lanes.count(lane, StateName::Blocked, -jobs)
    }

    fn first_blocked(&mut self, id: i64, lane: i64) -> Result<(Place, bool)> {
        let rooms = self.touch_limit(id)?.room_in(lane);
        if let Some(first) = rooms.front.front() {
            return Ok(*first);
        }
        let (priority, round, due, seq) = rooms.end_of_queued().unwrap_or(START);
        let behind = [id, lane, priority, round, due, seq, value::bound(READ_AHEAD)];
        let read =
            self.conn.prepare_cached(FIRST_BEHIND)?.query_map(behind, read_row)?.collect::<Result<_>>()?;
        let front = &mut self.touch_limit(id)?.room_in(lane).front;
        *front = read;
        front.front().copied().ok_or_else(|| miscounted(id))
    }

    fn let_many_in(&mut self, id: i64, lane: i64, jobs: i64) -> Result<()> {
        let rooms = self.touch_limit(id)?.room_in(lane);
        let (p, r, d, s) = rooms.end_of_queued().unwrap_or(START);
        let nth =
            self.conn.prepare_cached(NTH_BEHIND)?.query_row([id, lane, p, r, d, s, jobs - 1], read_place)?;
        let (priority, round, due, seq) = nth;
        let these = [id, lane, p, r, d, s, priority, round, due, seq];
        self.conn.prepare_cached(LET_MANY_IN)?.execute(these)?;
        let rooms = self.touch_limit(id)?.room_in(lane);
        rooms.queued += jobs;
        rooms.blocked -= jobs;
        rooms.last_queued = Some(nth);
        rooms.front.clear();
        self.news.due = true;
        self.memory.lanes.count(lane, StateName::Queued, jobs)?;
        self.memory.lanes.count(lane, StateName::Blocked, -jobs)
    }

    /// The last so many of a line up to a place, from behind.
    fn last_up_to(&self, id: i64, lane: i64, last: Place, most: usize) -> Result<Vec<(Place, bool)>> {
        let (priority, round, due, seq) = last;
        let up_to = [id, lane, priority, round, due, seq, value::bound(most)];
        self.conn.prepare_cached(LAST_UP_TO)?.query_map(up_to, read_row)?.collect()
    }
}

fn read_row(row: &Row<'_>) -> Result<(Place, bool)> {
    Ok((read_place(row)?, row.get(4)?))
}

fn read_place(row: &Row<'_>) -> Result<Place> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn miscounted(id: i64) -> rusqlite::Error {
    unreadable(format_args!("limit {id}, whose line is shorter than it says"))
}
