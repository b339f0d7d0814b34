//! The place of a waiting job: in line if it is due, in the diary if it is due later.

use rusqlite::{Result, params};
use tenure_core::{State, StateName, Timestamp};

use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

impl Writing<'_> {
    /// Gives a waiting job its place and counts it there.
    pub(crate) fn place(&mut self, stored: &Stored, due: Timestamp) -> Result<StateName> {
        let Stored { job, lane, begun } = stored;
        let (seq, priority) = (value::signed(job.seq), job.priority.number());
        let state = if due <= self.now { StateName::Queued } else { StateName::Scheduled };
        let sql = match state {
            StateName::Queued => {
                "INSERT INTO ready (lane, priority, due, seq, begun) VALUES (?1, ?2, ?3, ?4, ?5)"
            }
            _ => "INSERT INTO later (lane, priority, due, seq, begun) VALUES (?1, ?2, ?3, ?4, ?5)",
        };
        self.conn.prepare_cached(sql)?.execute(params![lane, priority, due.as_micros(), seq, begun])?;
        self.memory.lanes.count(*lane, state, 1)?;
        self.news.due = true;
        Ok(state)
    }

    /// Takes a waiting job out of its place; answers as what it was counted there.
    pub(crate) fn unplace(&mut self, stored: &Stored, due: Timestamp) -> Result<StateName> {
        let Stored { job, lane, .. } = stored;
        let (seq, priority) = (value::signed(job.seq), job.priority.number());
        let in_line = self
            .conn
            .prepare_cached("DELETE FROM ready WHERE lane = ?1 AND priority = ?2 AND due = ?3 AND seq = ?4")?
            .execute(params![lane, priority, due.as_micros(), seq])?;
        let state = if in_line > 0 { StateName::Queued } else { StateName::Scheduled };
        if in_line == 0 {
            self.conn
                .prepare_cached("DELETE FROM later WHERE due = ?1 AND seq = ?2")?
                .execute(params![due.as_micros(), seq])?;
        }
        self.memory.lanes.count(*lane, state, -1)?;
        Ok(state)
    }

    /// Takes a job out of what it is counted as: its place if it waits.
    pub(crate) fn uncount(&mut self, stored: &Stored) -> Result<()> {
        match stored.job.state {
            State::Waiting { due, .. } => self.unplace(stored, due).map(drop),
            State::Running { .. } => self.memory.lanes.count(stored.lane, StateName::Running, -1),
            State::Finished { end, .. } => self.memory.lanes.count(stored.lane, end.name(), -1),
        }
    }
}
