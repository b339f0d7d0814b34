//! Ending ownerships.

use rusqlite::{CachedStatement, Result, params};
use tenure_core::{Next, Settlement, State, StateName};
use tenure_store::Settled;

use crate::fault::is_unreadable;
use crate::grants::Grant;
use crate::rows::row_of;
use crate::writing::Writing;
use crate::{code, value};

macro_rules! succeed {
    ($fence:literal) => {
        concat!(
            "UPDATE standing SET state = 2, due = NULL, until = NULL, lapse = NULL, ended = ?3,
                 expires = ?4, output = ?5, place = ?6, cancel = NULL
             WHERE seq = ?1 AND fence ",
            $fence,
            " ?2 AND state = 1"
        )
    };
}

// Its own memory of grants checks the fence, but another program may have granted the job since.
pub(crate) const SUCCEED: &str =
    if cfg!(mutant = "sqlite-success-unfenced") { succeed!(">=") } else { succeed!("=") };

impl Writing<'_> {
    /// Ends each ownership under its own fence.
    pub(crate) fn settle(&mut self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let conn = self.conn;
        let mut succeed = conn.prepare_cached(SUCCEED)?;
        let mut settled = Vec::with_capacity(settlements.len());
        let mut wait_gated = Vec::new();
        let mut left = settlements;
        while !left.is_empty() {
            let (alike, behind) = left.split_at(self.alike(left).max(1));
            left = behind;
            if self.succeed_together(alike)? {
                settled.resize(settled.len() + alike.len(), Settled::Done(StateName::Succeeded));
                continue;
            }
            for settlement in alike {
                let answer = match self.succeed(settlement, &mut succeed)? {
                    Some(answer) => answer,
                    None => self.settle_one(settlement, settled.len(), &mut wait_gated)?,
                };
                settled.push(answer);
            }
        }
        for (index, seq) in wait_gated {
            // What was settled after it may have moved it: its state now is told.
            if let Some(stored) = self.find_by_seq(seq)? {
                settled[index] = Settled::Done(stored.job.state.name(self.now));
            }
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
        let Some(grant) = self.memory.grants.of(seq, fence, id) else { return Ok(None) };
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
        self.succeeded(&grant)?;
        Ok(Some(Settled::Done(StateName::Succeeded)))
    }

    /// Counts a written success, and unblocks the jobs that wait for it.
    pub(crate) fn succeeded(&mut self, grant: &Grant) -> Result<()> {
        self.memory.lanes.count(grant.lane, StateName::Running, -1)?;
        self.memory.lanes.count(grant.lane, StateName::Succeeded, 1)?;
        self.note_end(grant.seq, grant.id, Some(code::SUCCEEDED))?;
        if grant.has_needs {
            self.keep_no_more_for(grant.seq)?;
        }
        if grant.limit.is_some() || grant.chain.is_some() {
            self.end_keyed(grant)?;
        }
        self.call_for_room(grant.lane)?;
        self.tell_became(grant.lane, grant.id, StateName::Succeeded, None)
    }

    /// What the end of a granted job means to those that share its keys.
    fn end_keyed(&mut self, grant: &Grant) -> Result<()> {
        if let Some(limit) = grant.limit {
            self.ended_in_limit(limit)?;
        }
        if let Some(chain) = grant.chain {
            self.end_in_chain(chain, value::signed(grant.seq))?;
        }
        self.settle_keys()
    }

    /// Every other end, by the whole job. One that waits again behind gates is noted.
    fn settle_one(
        &mut self,
        settlement: &Settlement,
        index: usize,
        wait_gated: &mut Vec<(usize, i64)>,
    ) -> Result<Settled> {
        // Places are never used again: another job there means that this one is gone.
        let stored = match row_of(self.conn, value::signed(settlement.seq())) {
            Err(error) if is_unreadable(&error) => {
                // Only this job cannot be settled.
                tracing::error!(id = %settlement.id(), %error, "cannot settle an unreadable job");
                return Ok(Settled::Fenced);
            }
            stored => stored?,
        };
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
                if stored.job.terms.are_gated() && !transition.state.is_finished() {
                    wait_gated.push((index, value::signed(settlement.seq())));
                }
                self.enter(stored, transition).map(Settled::Done)
            }
        }
    }
}
