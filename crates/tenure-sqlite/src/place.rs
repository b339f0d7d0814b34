//! The place of a waiting job: in line if it is due, in the diary if it is due later.

use rusqlite::{Result, params};
use tenure_core::{State, StateName, Timestamp};

use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

/// Where a waiting job is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A turn finds it.
    InLine,
    /// Its time has to come first.
    InDiary,
}

impl Place {
    fn counted(self) -> StateName {
        match self {
            Self::InLine => StateName::Queued,
            Self::InDiary => StateName::Scheduled,
        }
    }
}

impl Writing<'_> {
    /// Gives a waiting job its place and counts it there.
    pub(crate) fn place(&mut self, stored: &Stored, due: Timestamp) -> Result<StateName> {
        let place = if due <= self.now { Place::InLine } else { Place::InDiary };
        self.place_in(place, stored, due)
    }

    /// Gives a waiting job this very place and counts it there.
    pub(crate) fn place_in(&mut self, place: Place, stored: &Stored, due: Timestamp) -> Result<StateName> {
        let Stored { job, lane, begun } = stored;
        let (seq, priority) = (value::signed(job.seq), job.priority.number());
        let sql = match place {
            Place::InLine => {
                "INSERT INTO ready (lane, priority, due, seq, begun) VALUES (?1, ?2, ?3, ?4, ?5)"
            }
            Place::InDiary => {
                "INSERT INTO later (lane, priority, due, seq, begun) VALUES (?1, ?2, ?3, ?4, ?5)"
            }
        };
        self.conn.prepare_cached(sql)?.execute(params![lane, priority, due.as_micros(), seq, begun])?;
        self.memory.lanes.count(*lane, place.counted(), 1)?;
        self.news.due = true;
        Ok(place.counted())
    }

    /// Takes a waiting job out of its place; answers which it was. A job that came due stays in the
    /// diary until a turn finds it there.
    pub(crate) fn unplace(&mut self, stored: &Stored, due: Timestamp) -> Result<Place> {
        let Stored { job, lane, .. } = stored;
        let (seq, priority) = (value::signed(job.seq), job.priority.number());
        let in_line = self
            .conn
            .prepare_cached("DELETE FROM ready WHERE lane = ?1 AND priority = ?2 AND due = ?3 AND seq = ?4")?
            .execute(params![lane, priority, due.as_micros(), seq])?;
        let place = if in_line > 0 { Place::InLine } else { Place::InDiary };
        if in_line == 0 {
            self.conn
                .prepare_cached("DELETE FROM later WHERE due = ?1 AND seq = ?2")?
                .execute(params![due.as_micros(), seq])?;
        }
        self.memory.lanes.count(*lane, place.counted(), -1)?;
        Ok(place)
    }

    /// Takes a job out of what it is counted as: its place if it waits.
    pub(crate) fn uncount(&mut self, stored: &Stored) -> Result<()> {
        match stored.job.state {
            State::Waiting { due, .. } => self.unplace(stored, due).map(drop),
            State::Blocked { .. } => self.memory.lanes.count(stored.lane, StateName::Blocked, -1),
            State::Running { .. } => self.memory.lanes.count(stored.lane, StateName::Running, -1),
            State::Finished { end, .. } => self.memory.lanes.count(stored.lane, end.name(), -1),
        }
    }
}
