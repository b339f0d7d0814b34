//! Writing a transition: the one way by which a job leaves a state, but for ordinary grants and ends.

use rusqlite::Result;
use tenure_core::{State, StateName, Transition};

use crate::rows::{Stored, write_standing};
use crate::writing::Writing;
use crate::{attempts, value};

impl Writing<'_> {
    /// Writes what a job becomes; answers the name of its state then.
    pub(crate) fn enter(&mut self, stored: Stored, transition: Transition) -> Result<StateName> {
        self.uncount(&stored)?;
        let Stored { job, lane, .. } = stored;
        match transition.ended {
            Some(tenure_core::AttemptEnd::Succeeded) => {}
            Some(ended) => attempts::record(self.conn, &job, ended, transition.failure.as_ref(), self.now)?,
            None => attempts::record_success(self.conn, &job)?,
        }
        let failure = transition.failure.clone();
        let stored = Stored { job: job.after(transition), lane, begun: true };
        write_standing(self.conn, &stored)?;
        let state = match stored.job.state {
            State::Waiting { due, .. } => self.place(&stored, due)?,
            State::Blocked { .. } => {
                self.memory.lanes.count(lane, StateName::Blocked, 1)?;
                StateName::Blocked
            }
            State::Running { .. } => {
                self.memory.lanes.count(lane, StateName::Running, 1)?;
                StateName::Running
            }
            State::Finished { end, .. } => {
                self.free_key_at_end(&stored.job)?;
                self.memory.lanes.count(lane, end.name(), 1)?;
                end.name()
            }
        };
        self.tell_became(lane, stored.job.id, state, failure.as_ref())?;
        Ok(state)
    }

    /// Removes a job and all that is kept of it, but for a unique key.
    pub(crate) fn remove(&mut self, stored: &Stored) -> Result<()> {
        self.uncount(stored)?;
        let seq = value::signed(stored.job.seq);
        for sql in [
            "DELETE FROM standing WHERE seq = ?1",
            "DELETE FROM attempt WHERE seq = ?1",
            "DELETE FROM log WHERE seq = ?1",
            "DELETE FROM job WHERE seq = ?1",
        ] {
            self.conn.prepare_cached(sql)?.execute([seq])?;
        }
        for tag in &stored.job.terms.tags {
            self.conn
                .prepare_cached("DELETE FROM tag WHERE tag = ?1 AND seq = ?2")?
                .execute((tag.as_str(), seq))?;
        }
        self.retire_seq(seq)
    }
}
