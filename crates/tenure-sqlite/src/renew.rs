//! Extending ownerships.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{CancelRequest, Fence, Timestamp};
use tenure_store::{Held, Holds, Renew, Renewal};

use crate::code;
use crate::fault::of_job;
use crate::value;
use crate::writing::Writing;

const HELD: &str =
    "SELECT s.state, s.fence, s.until, s.cancel FROM job j CROSS JOIN standing s ON s.seq = j.seq
     WHERE j.seq = ?1 AND j.id = ?2";
const EXTEND: &str = "UPDATE standing SET until = ?3, lapse = ?4 WHERE seq = ?1 AND fence = ?2 AND state = 1";

struct Ownership {
    until: Timestamp,
    cancel: Option<CancelRequest>,
}

impl Writing<'_> {
    /// Extends each ownership that is still held.
    pub(crate) fn renew(&self, ask: &Renew) -> Result<Vec<Renewal>> {
        let until = self.now.after(ask.ttl);
        ask.held.iter().map(|held| self.renew_one(*held, until)).collect()
    }

    fn renew_one(&self, held: Held, until: Timestamp) -> Result<Renewal> {
        let Some(ownership) = self.ownership(held)? else { return Ok(Renewal::Lost) };
        if ownership.until <= self.now {
            return Ok(Renewal::Lapsed);
        }
        let deadline = ownership.cancel.as_ref().map(|request| request.deadline);
        let lapse = deadline.map_or(until, |deadline| until.min(deadline));
        self.conn.prepare_cached(EXTEND)?.execute([
            value::signed(held.seq),
            value::signed(held.fence.number()),
            until.as_micros(),
            lapse.as_micros(),
        ])?;
        Ok(Renewal::Held(Holds { until, cancel: ownership.cancel }))
    }

    /// The running ownership with this fence; `None` if it is not held any more.
    fn ownership(&self, held: Held) -> Result<Option<Ownership>> {
        let row = self
            .conn
            .prepare_cached(HELD)?
            .query_row(params![value::signed(held.seq), held.id.as_bytes()], |row| {
                let (state, fence): (i64, Fence) = (row.get(0)?, value::fence(row.get(1)?)?);
                if state != code::RUNNING || fence != held.fence {
                    return Ok(None);
                }
                Ok(Some(Ownership { until: value::instant(row, 2)?, cancel: value::maybe_json(row, 3)? }))
            })
            .optional()
            .map_err(|error| of_job(held.id, error))?;
        Ok(row.flatten())
    }
}
