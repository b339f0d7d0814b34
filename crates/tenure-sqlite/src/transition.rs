//! Writing a transition: the one way by which a job leaves a state, but for ordinary grants and ends.

use rusqlite::Result;
use tenure_core::{Job, State, StateName, Transition};

use crate::rows::{Stored, write_standing};
use crate::writing::Writing;
use crate::{attempts, code, value};

impl Writing<'_> {
    /// Writes what a job becomes; answers the name of its state then, by its own rows: if it waits, keys may
    /// block it.
    pub(crate) fn enter(&mut self, stored: Stored, transition: Transition) -> Result<StateName> {
        let was_finished = stored.job.state.is_finished();
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
        match stored.job.state {
            State::Waiting { due, .. } | State::Blocked { due, .. } => {
                if was_finished {
                    self.begin_again(&stored)?;
                }
                self.place(&stored, due)?;
            }
            State::Running { .. } => self.memory.lanes.count(lane, StateName::Running, 1)?,
            State::Finished { end, .. } => {
                self.free_key_at_end(&stored.job)?;
                self.memory.lanes.count(lane, end.name(), 1)?;
                self.let_others_go_on(&stored.job, Some(code::of_end(end)))?;
                self.call_for_room(lane)?;
            }
        }
        self.settle_keys()?;
        if self.is_heard() {
            let state = self.name_now(&stored)?;
            self.tell_became(lane, stored.job.id, state, failure.as_ref())?;
        }
        Ok(stored.job.state.name(self.now))
    }

    /// A finished job is to be done again: its keys count again.
    fn begin_again(&mut self, stored: &Stored) -> Result<()> {
        self.goes_on(stored.job.seq)?;
        self.keep_for(&stored.job)?;
        match &stored.job.terms.limit {
            Some(limit) => self.name_limit_again(limit),
            None => Ok(()),
        }
    }

    /// The name of a job's state as this step has left it.
    pub(crate) fn name_now(&mut self, stored: &Stored) -> Result<StateName> {
        if stored.may_be_blocked() {
            return self.name_of_waiting(stored);
        }
        Ok(stored.job.state.name(self.now))
    }

    /// Removes a job and all that is kept of it, but for a unique key.
    pub(crate) fn remove(&mut self, stored: &Stored) -> Result<()> {
        self.uncount(stored)?;
        if !stored.job.state.is_finished() {
            self.let_others_go_on(&stored.job, None)?;
            self.settle_keys()?;
        }
        let seq = value::signed(stored.job.seq);
        for sql in [
            "DELETE FROM standing WHERE seq = ?1",
            "DELETE FROM attempt WHERE seq = ?1",
            "DELETE FROM log WHERE seq = ?1",
            "DELETE FROM job WHERE seq = ?1",
        ] {
            self.conn.prepare_cached(sql)?.execute([seq])?;
        }
        self.untag(&stored.job)?;
        self.retire_seq(seq)
    }

    pub(crate) fn untag(&self, job: &Job) -> Result<()> {
        for tag in &job.terms.tags {
            self.conn
                .prepare_cached("DELETE FROM tag WHERE tag = ?1 AND seq = ?2")?
                .execute((tag.as_str(), value::signed(job.seq)))?;
        }
        Ok(())
    }
}
