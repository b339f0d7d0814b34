//! Ending ownerships.

use rusqlite::{CachedStatement, Result, params};
use tenure_core::{Next, Settlement, State, StateName};
use tenure_store::Settled;

use crate::rows::find_by_seq;
use crate::value;
use crate::writing::Writing;

pub(crate) const SUCCEED: &str =
    "UPDATE standing SET state = 2, due = NULL, until = NULL, lapse = NULL, ended = ?3,
         expires = ?4, output = ?5, place = ?6, cancel = NULL
     WHERE seq = ?1 AND fence = ?2 AND state = 1";

impl Writing<'_> {
    /// Ends each ownership under its own fence.
    pub(crate) fn settle(&mut self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let conn = self.conn;
        let mut succeed = conn.prepare_cached(SUCCEED)?;
        let mut settled = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            let answer = match self.succeed(settlement, &mut succeed)? {
                Some(answer) => answer,
                None => self.settle_one(settlement)?,
            };
            settled.push(answer);
        }
        Ok(settled)
    }

    /// The ordinary end: a grant that this writer remembers has succeeded. `None` if it is another.
    fn succeed(
        &mut self,
        settlement: &Settlement,
        statement: &mut CachedStatement<'_>,
    ) -> Result<Option<Settled>> {
        match settlement.next() {
            Next::Succeed => {}
            Next::Fail | Next::Cancel | Next::Wait { .. } => return Ok(None),
        }
        let (seq, fence, id) = (settlement.seq(), settlement.fence(), settlement.id());
        let Some(lane) = self.memory.grants.lane(seq, fence, id) else { return Ok(None) };
        let transition = settlement.resolve(self.now, None);
        let written = statement.execute(params![
            value::signed(seq),
            value::signed(fence.number()),
            self.now.as_micros(),
            transition.expires.map(|at| at.as_micros()),
            transition.output.as_ref().map(|output| output.value.as_slice()),
            transition.output.as_ref().and_then(|output| output.place.as_deref()),
        ])?;
        if written == 0 {
            return Ok(None);
        }
        self.memory.lanes.count(lane, StateName::Running, -1)?;
        self.memory.lanes.count(lane, StateName::Succeeded, 1)?;
        self.tell_became(lane, id, StateName::Succeeded, None)?;
        Ok(Some(Settled::Done(StateName::Succeeded)))
    }

    /// Every other end, by the whole job.
    fn settle_one(&mut self, settlement: &Settlement) -> Result<Settled> {
        // Places are never used again: another job there means that this one is gone.
        let stored = find_by_seq(self.conn, value::signed(settlement.seq()))?;
        let Some(stored) = stored.filter(|stored| stored.job.id == settlement.id()) else {
            return Ok(Settled::Gone);
        };
        if stored.job.fence != settlement.fence() {
            return Ok(Settled::Fenced);
        }
        match stored.job.state {
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => Ok(Settled::Repeated),
            State::Running { .. } => {
                let asked = stored.job.cancel.as_ref().map(|request| request.reason.as_str());
                let transition = settlement.resolve(self.now, asked);
                self.enter(stored, transition).map(Settled::Done)
            }
        }
    }
}
