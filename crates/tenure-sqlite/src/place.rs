//! The place of a waiting job: in line if it is due, in the diary if it is due later, nowhere while it is
//! blocked by something else than its limit.

use rusqlite::{Result, params, params_from_iter};
use tenure_core::{Priority, State, StateName, Timestamp};

use crate::reserve::Place;
use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

pub(crate) const IN_LINE: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun, limit_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
/// As many as [`AT_ONCE`].
pub(crate) const MANY_IN_LINE: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun, limit_id)
     VALUES (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?),
         (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?)";
const IN_DIARY: &str =
    "INSERT INTO later (lane, priority, due, seq, begun, singly) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(crate) const OUT_OF_LINE: &str = "DELETE FROM ready
     WHERE lane = ?1 AND priority = ?2 AND round = ?3 AND due = ?4 AND seq = ?5";
pub(crate) const OUT_OF_DIARY: &str = "DELETE FROM later WHERE due = ?1 AND seq = ?2";

/// Jobs that are written into lines with one statement.
const AT_ONCE: usize = 8;
/// Most that have joined lines and are not written.
const UNWRITTEN: usize = 64;

/// A job that has joined its lane's line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joined {
    lane: i64,
    place: Place,
    begun: bool,
    limit: Option<i64>,
}

impl Joined {
    fn columns(&self) -> [Option<i64>; 7] {
        let (priority, round, due, seq) = self.place;
        let begun = i64::from(self.begun);
        [Some(self.lane), Some(priority), Some(round), Some(due), Some(seq), Some(begun), self.limit]
    }
}

/// Where a waiting job is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A turn finds it.
    InLine,
    /// Its time has to come first.
    InDiary,
    /// Its limit has to have room first.
    Shut,
    /// Other jobs have to come first.
    Blocked,
}

impl Writing<'_> {
    /// Gives a waiting job its place and counts it there.
    pub(crate) fn place(&mut self, stored: &Stored, due: Timestamp) -> Result<()> {
        if self.is_gated(stored)? {
            return self.place_gated(stored, due);
        }
        match due <= self.now {
            true => self.put_in_line(stored.lane, place_of(stored, due, 0), stored.begun, None),
            false => self.put_in_diary(stored, due),
        }
    }

    /// Gives a waiting job a place as it had before it was changed: what no turn has found due waits on.
    pub(crate) fn place_again(&mut self, kept: Kept, stored: &Stored, due: Timestamp) -> Result<()> {
        match kept {
            Kept::InDiary => {
                self.step_aside(stored)?;
                self.put_in_diary(stored, due)
            }
            Kept::InLine if !self.is_gated(stored)? => {
                self.put_in_line(stored.lane, place_of(stored, due, 0), stored.begun, None)
            }
            Kept::InLine | Kept::Shut => self.join_line_again(stored, due),
            Kept::Blocked => self.block_again(stored),
        }
    }

    /// Puts a due job into its lane's line and counts it there. It is written with others that join in the same
    /// transaction, before anybody looks at the line ([`Writing::write_line`]).
    pub(crate) fn put_in_line(
        &mut self,
        lane: i64,
        place: Place,
        begun: bool,
        limit: Option<i64>,
    ) -> Result<()> {
        self.line.push(Joined { lane, place, begun, limit });
        if self.line.len() >= UNWRITTEN {
            self.write_line()?;
        }
        self.news.due = true;
        self.memory.lanes.count(lane, StateName::Queued, 1)
    }

    /// Writes who has joined lines.
    pub(crate) fn write_line(&mut self) -> Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let joined = std::mem::take(&mut self.line);
        let (many, few) = joined.as_chunks::<AT_ONCE>();
        if !many.is_empty() {
            let mut statement = self.conn.prepare_cached(MANY_IN_LINE)?;
            for these in many {
                statement.execute(params_from_iter(these.iter().flat_map(Joined::columns)))?;
            }
        }
        let mut statement = self.conn.prepare_cached(IN_LINE)?;
        for one in few {
            statement.execute(params_from_iter(one.columns()))?;
        }
        Ok(())
    }

    /// Lets a job wait for its time and counts it there.
    pub(crate) fn put_in_diary(&mut self, stored: &Stored, due: Timestamp) -> Result<()> {
        let Stored { job, lane, begun } = stored;
        let (seq, priority) = (value::signed(job.seq), job.priority.number());
        let singly = job.terms.are_gated();
        self.conn.prepare_cached(IN_DIARY)?.execute(params![
            lane,
            priority,
            due.as_micros(),
            seq,
            begun,
            singly
        ])?;
        self.news.due = true;
        self.memory.lanes.count(*lane, StateName::Scheduled, 1)
    }

    /// Takes a waiting job out of its place; answers which it was. A job that came due stays in the
    /// diary until a turn finds it there.
    pub(crate) fn unplace(&mut self, stored: &Stored, due: Timestamp) -> Result<Kept> {
        if self.is_gated(stored)? {
            return self.unplace_gated(stored, due);
        }
        self.take_from_line_or_diary(stored, place_of(stored, due, 0))
    }

    pub(crate) fn take_from_line_or_diary(&mut self, stored: &Stored, place: Place) -> Result<Kept> {
        self.write_line()?;
        let (priority, round, due, seq) = place;
        let lane = stored.lane;
        if self.conn.prepare_cached(OUT_OF_LINE)?.execute([lane, priority, round, due, seq])? > 0 {
            self.memory.lanes.count(lane, StateName::Queued, -1)?;
            return Ok(Kept::InLine);
        }
        self.conn.prepare_cached(OUT_OF_DIARY)?.execute([due, seq])?;
        self.memory.lanes.count(lane, StateName::Scheduled, -1)?;
        Ok(Kept::InDiary)
    }

    /// Takes a job out of what it is counted as: its place if it waits.
    pub(crate) fn uncount(&mut self, stored: &Stored) -> Result<()> {
        match stored.job.state {
            State::Waiting { due, .. } | State::Blocked { due, .. } => self.unplace(stored, due).map(drop),
            State::Running { .. } => {
                self.stop_running(stored)?;
                self.memory.lanes.count(stored.lane, StateName::Running, -1)
            }
            State::Finished { end, .. } => self.memory.lanes.count(stored.lane, end.name(), -1),
        }
    }
}

/// The place of a job in its lane's line, in this round.
pub(crate) fn place_of(stored: &Stored, due: Timestamp, round: i64) -> Place {
    let priority: Priority = stored.job.priority;
    (priority.number(), round, due.as_micros(), value::signed(stored.job.seq))
}
