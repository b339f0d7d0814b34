//! Who waits for a lease.

use rusqlite::{Result, params};
use tenure_core::{LeaseAct, LeaseId, Line, Ticket, Timestamp, limits};

use crate::value;
use crate::writing::Writing;

/// How many wait, how many of them came before this one, and until when its own place is kept. A place
/// whose time is over is none.
pub(crate) const LINE: &str = "SELECT count(*), count(*) FILTER (WHERE place < ifnull(
         (SELECT place FROM lease_line WHERE lease = ?1 AND id = ?2 AND until > ?3), 9223372036854775807)),
         (SELECT until FROM lease_line WHERE lease = ?1 AND id = ?2 AND until > ?3)
     FROM lease_line WHERE lease = ?1 AND until > ?3";
pub(crate) const SIT: &str = "INSERT OR REPLACE INTO lease_line (lease, id, place, until)
     VALUES (?1, ?2, (SELECT ifnull(max(place), 0) + 1 FROM lease_line WHERE lease = ?1), ?3)";
pub(crate) const STAY: &str = "UPDATE lease_line SET until = ?3 WHERE lease = ?1 AND id = ?2";
pub(crate) const STAND_UP: &str = "DELETE FROM lease_line WHERE lease = ?1 AND id = ?2";
pub(crate) const GONE: &str = "DELETE FROM lease_line WHERE (lease, id) IN
     (SELECT lease, id FROM lease_line WHERE until <= ?1 ORDER BY until LIMIT ?2 + 0)";

/// How many places whose time is over make room for a new one. With more than one, those that nobody
/// tends cannot pile up.
const MAKE_ROOM: usize = 2;

/// The line before a lease, and whoever asks in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stand {
    pub line: Line,
    /// Until when whoever asks has a place of its own.
    kept: Option<Timestamp>,
    is_full: bool,
}

/// The acquisition that a wish is about, if it may have a place in line.
pub(super) fn acquisition(act: &LeaseAct) -> Option<LeaseId> {
    match act {
        LeaseAct::Acquire { id, .. } | LeaseAct::Leave { id } => Some(*id),
        LeaseAct::Renew { .. }
        | LeaseAct::Change { .. }
        | LeaseAct::Release { .. }
        | LeaseAct::Break { .. }
        | LeaseAct::Forget { .. } => None,
    }
}

impl Writing<'_> {
    /// The line before a lease.
    pub(super) fn stand(&self, lease: i64, id: Option<LeaseId>) -> Result<Stand> {
        let key = params![lease, id.map(|id| *id.as_bytes()), self.now.as_micros()];
        self.conn.prepare_cached(LINE)?.query_row(key, |row| {
            let (all, ahead): (u32, u32) = (row.get(0)?, row.get(1)?);
            let kept = value::maybe_instant(row, 2)?;
            let waiting = all - u32::from(kept.is_some());
            let is_full = usize::try_from(all).is_ok_and(|all| all >= limits::LEASE_WAITERS);
            Ok(Stand { line: Line { ahead, waiting }, kept, is_full })
        })
    }

    /// Does to a place in line what was decided.
    pub(super) fn seat(&self, lease: i64, id: LeaseId, stand: Stand, ticket: Ticket) -> Result<()> {
        let at = (lease, id.as_bytes());
        match (ticket, stand.kept) {
            (Ticket::AsIs, _) | (Ticket::GivenUp, None) => {}
            (Ticket::GivenUp, Some(_)) => drop(self.conn.prepare_cached(STAND_UP)?.execute(at)?),
            (Ticket::Kept(_), Some(kept)) => {
                let Some(until) = ticket.prolongs(kept, self.now) else { return Ok(()) };
                self.conn.prepare_cached(STAY)?.execute(params![at.0, at.1, until.as_micros()])?;
            }
            (Ticket::Kept(until), None) if !stand.is_full => {
                self.clear_line(MAKE_ROOM)?;
                self.conn.prepare_cached(SIT)?.execute(params![at.0, at.1, until.as_micros()])?;
            }
            (Ticket::Kept(_), None) => {}
        }
        Ok(())
    }

    /// Removes some places whose time is over; answers how many.
    pub(crate) fn clear_line(&self, at_most: usize) -> Result<usize> {
        self.conn.prepare_cached(GONE)?.execute([self.now.as_micros(), value::bound(at_most)])
    }
}
