//! Rows that this version cannot read: set aside for a while, so that they stop nobody.
//!
//! A newer version that shares the file reads them when their time comes again, and so does this
//! program once it has been updated.

use std::time::Duration;

use rusqlite::{Error, Result, params};
use tenure_core::StateName;

use crate::reserve::Place;
use crate::writing::Writing;

/// How long such a row is left alone.
const SET_ASIDE: Duration = Duration::from_secs(60);

pub(crate) const OUT_OF_PLACE: &str = "DELETE FROM ready
     WHERE lane = ?1 AND (priority, round, due, seq) = (?2, ?3, ?4, ?5) RETURNING begun, limit_id";

impl Writing<'_> {
    /// Leaves a running job to its holder for longer.
    pub(crate) fn set_running_aside(&self, seq: i64, error: &Error) -> Result<()> {
        self.put_off("UPDATE standing SET lapse = ?2 WHERE seq = ?1 AND state = 1", seq, error)
    }

    /// Leaves a limit in which time has made room alone for longer.
    pub(crate) fn set_limit_aside(&self, id: i64, error: &Error) -> Result<()> {
        self.put_off("UPDATE limit_key SET grows = ?2 WHERE id = ?1", id, error)
    }

    /// Keeps a finished job for longer.
    pub(crate) fn set_expired_aside(&self, seq: i64, error: &Error) -> Result<()> {
        self.put_off("UPDATE standing SET expires = ?2 WHERE seq = ?1", seq, error)
    }

    /// Takes a waiting job out of its line and lets it come due later.
    pub(crate) fn set_waiting_aside(&mut self, lane: i64, place: Place, error: &Error) -> Result<()> {
        let (priority, round, due, seq) = place;
        let (begun, limit): (bool, Option<i64>) = self
            .conn
            .prepare_cached(OUT_OF_PLACE)?
            .query_row([lane, priority, round, due, seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.memory.lanes.count(lane, StateName::Queued, -1)?;
        if let Some(limit) = limit {
            self.leave_queued(limit, lane, place)?;
        }
        self.conn.prepare_cached("DELETE FROM fair_place WHERE seq = ?1")?.execute([seq])?;
        self.put_in_diary_aside(lane, priority, seq, begun, error)?;
        self.settle_keys()
    }

    /// Lets a waiting job that has no place come due later.
    pub(crate) fn put_in_diary_aside(
        &mut self,
        lane: i64,
        priority: i64,
        seq: i64,
        begun: bool,
        error: &Error,
    ) -> Result<()> {
        let again = self.now.after(SET_ASIDE).as_micros();
        self.conn
            .prepare_cached(
                "INSERT INTO later (due, seq, lane, priority, begun, singly)
                 SELECT ?1, ?2, ?3, ?4, ?5, singly FROM job WHERE seq = ?2",
            )?
            .execute(params![again, seq, lane, priority, begun])?;
        self.memory.lanes.count(lane, StateName::Scheduled, 1)?;
        // Who looks for its place goes by the due that its row tells.
        let sql = match begun {
            false => "UPDATE job SET due = ?2 WHERE seq = ?1",
            true if cfg!(mutant = "sqlite-aside-keeps-due") => "UPDATE job SET due = ?2 WHERE seq = ?1",
            true => "UPDATE standing SET due = ?2 WHERE seq = ?1",
        };
        self.put_off(sql, seq, error)
    }

    fn put_off(&self, sql: &str, row: i64, error: &Error) -> Result<()> {
        tracing::error!(row, %error, "skipping an unreadable row for a minute; update this program");
        self.conn.prepare_cached(sql)?.execute([row, self.now.after(SET_ASIDE).as_micros()])?;
        Ok(())
    }
}
