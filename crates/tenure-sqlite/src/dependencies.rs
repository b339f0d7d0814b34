//! Jobs that wait for other jobs.
//!
//! That a job has ended is written beside those that wait for it (`awaited_end`), however many they are; a
//! turn notices it for some of them at a time. A job that nobody waits for costs nothing.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{AfterJobs, Block, Cancel, End, Job, JobId, Noticed, limits};

use crate::fault::is_unreadable;
use crate::rows::{Stored, row_of};
use crate::value;
use crate::writing::Writing;
use crate::{code, gates};

/// How long an end is left alone that one of those who wait for it, written by a newer version, cannot notice.
const SET_ASIDE: Duration = Duration::from_secs(60);

const STANDS: &str =
    "SELECT j.seq, ifnull(s.state, 0) FROM job j LEFT JOIN standing s ON s.seq = j.seq WHERE j.id = ?1";
const WAIT: &str = "INSERT OR IGNORE INTO dependency (on_seq, seq) VALUES (?1, ?2)";
const ENDED: &str = "INSERT INTO awaited_end (seq, id, how) VALUES (?1, ?2, ?3)
     ON CONFLICT (seq) DO UPDATE SET how = excluded.how";
pub(crate) const ENDED_IF_AWAITED: &str = "INSERT INTO awaited_end (seq, id, how)
     SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM dependency WHERE on_seq = ?1)
     ON CONFLICT (seq) DO UPDATE SET how = excluded.how";
const GOES_ON: &str = "DELETE FROM awaited_end WHERE seq = ?1";
pub(crate) const WAIT_NO_MORE: &str = "DELETE FROM dependency WHERE seq = ?1 RETURNING on_seq";
pub(crate) const WAIT_NOT_FOR: &str = "DELETE FROM dependency WHERE on_seq = ?1 AND seq = ?2";
pub(crate) const IS_WAITING_FOR: &str = "SELECT 1 FROM dependency WHERE on_seq = ?1 AND seq = ?2";
pub(crate) const IS_WAITING_FOR_ANOTHER: &str =
    "SELECT 1 FROM dependency WHERE seq = ?1 AND on_seq <> ?2 LIMIT 1";
/// Only terms that say so let a job run after any end. The rest of a job is read when that matters.
pub(crate) const RUNS_ANYWAY: &str = "SELECT 1 FROM job
     WHERE seq = ?1 AND CASE WHEN json_valid(terms) THEN terms ->> '$.after.if_failed' END = 'run'";
pub(crate) const NOTICED_BY_ALL: &str = "DELETE FROM awaited_end
     WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM dependency WHERE on_seq = ?1)";
pub(crate) const OVER: &str = "SELECT d.seq, e.seq, e.id, e.how
     FROM awaited_end e CROSS JOIN dependency d ON d.on_seq = e.seq
     WHERE e.again <= ?1 ORDER BY e.seq, d.seq LIMIT ?2 + 0";
pub(crate) const IS_NEWS: &str = "SELECT EXISTS (SELECT 1 FROM awaited_end WHERE again <= ?1)";

/// A wait that is over.
struct Over {
    waiter: i64,
    on: i64,
    id: JobId,
    end: Option<End>,
}

/// For what a job that comes in has to wait.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Jobs that have not ended.
    unended: Vec<i64>,
    /// Jobs that have ended so that this one has to be cancelled.
    spoiled: Vec<(i64, JobId, i64)>,
}

impl Waits {
    /// One more job, in this state, which has ended or not.
    pub(crate) fn add(&mut self, id: JobId, seq: i64, state: i64) {
        match code::end(state) {
            Some(_) => self.spoiled.push((seq, id, state)),
            None => self.unended.push(seq),
        }
    }
}

impl Writing<'_> {
    /// For what a job with these terms has to wait; the first of the others that is not there, if one is not.
    pub(crate) fn waits_of(&self, after: &AfterJobs) -> Result<std::result::Result<Waits, JobId>> {
        let mut waits = Waits::default();
        for id in &after.jobs {
            let other = self
                .conn
                .prepare_cached(STANDS)?
                .query_row([id.as_bytes()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
                .optional()?;
            let Some((seq, state)) = other else { return Ok(Err(*id)) };
            let Some(end) = code::end(state) else {
                waits.unended.push(seq);
                continue;
            };
            match after.noticed(*id, Some(end), self.now) {
                Noticed::Ended => {}
                Noticed::Cancels(_) => waits.spoiled.push((seq, *id, state)),
            }
        }
        Ok(Ok(waits))
    }

    /// Lets a job that has come in wait.
    pub(crate) fn let_wait(&mut self, seq: i64, waits: &Waits) -> Result<()> {
        for on in waits.unended.iter().chain(waits.spoiled.iter().map(|(on, ..)| on)) {
            self.conn.prepare_cached(WAIT)?.execute([*on, seq])?;
            self.memory.keyed.awaits();
        }
        for (on, id, how) in &waits.spoiled {
            self.conn.prepare_cached(ENDED)?.execute(params![on, id.as_bytes(), how])?;
            self.news.due = true;
        }
        Ok(())
    }

    /// Notes that a job has ended, or is gone without an end, for those that wait for it.
    pub(crate) fn note_end(&mut self, seq: u64, id: JobId, how: Option<i64>) -> Result<()> {
        if !self.memory.keyed.is_any_awaited(self.conn)? {
            return Ok(());
        }
        let noted = params![value::signed(seq), id.as_bytes(), how];
        self.news.due |= self.conn.prepare_cached(ENDED_IF_AWAITED)?.execute(noted)? > 0;
        Ok(())
    }

    /// A job is done again: who has not noticed its end waits for it again.
    pub(crate) fn goes_on(&mut self, seq: u64) -> Result<()> {
        if self.memory.keyed.is_any_awaited(self.conn)? {
            self.conn.prepare_cached(GOES_ON)?.execute([value::signed(seq)])?;
        }
        Ok(())
    }

    /// Lets a job that has ended or is gone wait for nothing.
    pub(crate) fn forget_waits(&mut self, job: &Job) -> Result<()> {
        if !self.memory.keyed.is_any_awaited(self.conn)? {
            return Ok(());
        }
        let others = self
            .conn
            .prepare_cached(WAIT_NO_MORE)?
            .query_map([value::signed(job.seq)], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        for on in others {
            self.conn.prepare_cached(NOTICED_BY_ALL)?.execute([on])?;
            self.memory.keyed.awaits_less();
        }
        Ok(())
    }

    /// Whether anything has ended that no turn has noticed.
    pub(crate) fn has_unnoticed(&mut self) -> Result<bool> {
        if !self.memory.keyed.is_any_awaited(self.conn)? {
            return Ok(false);
        }
        self.conn.prepare_cached(IS_NEWS)?.query_row([self.now.as_micros()], |row| row.get(0))
    }

    /// Notices what has ended since the last turn, for a bounded number of jobs that wait; answers how many
    /// of them wait no more. What ends by that is for the next turn.
    pub(crate) fn notice_ended(&mut self) -> Result<usize> {
        if !self.memory.keyed.is_any_awaited(self.conn)? {
            return Ok(0);
        }
        let over = self
            .conn
            .prepare_cached(OVER)?
            .query_map([self.now.as_micros(), value::bound(limits::SWEEP_ROWS)], |row| {
                let end = row.get::<_, Option<i64>>(3)?.and_then(code::end);
                Ok(Over { waiter: row.get(0)?, on: row.get(1)?, id: value::job_id(row, 2)?, end })
            })?
            .collect::<Result<Vec<_>>>()?;
        let mut freed = 0;
        for wait in over {
            freed += usize::from(self.notice(&wait)?);
            self.settle_keys()?;
        }
        Ok(freed)
    }

    fn notice(&mut self, wait: &Over) -> Result<bool> {
        // It may have been cancelled for another of them a moment ago.
        let edge = [wait.on, wait.waiter];
        if !self.conn.prepare_cached(IS_WAITING_FOR)?.exists(edge)? {
            return Ok(false);
        }
        // A waiter that also waits for other jobs need not be read.
        if self.conn.prepare_cached(IS_WAITING_FOR_ANOTHER)?.exists([wait.waiter, wait.on])?
            && (wait.end == Some(End::Succeeded)
                || self.conn.prepare_cached(RUNS_ANYWAY)?.exists([wait.waiter])?)
        {
            self.wait_not_for(wait.waiter, wait.on)?;
            return Ok(false);
        }
        let stored = match row_of(self.conn, wait.waiter) {
            Err(error) if is_unreadable(&error) => {
                tracing::error!(seq = wait.waiter, %error, "unreadable waiting job; update this program");
                let again = self.now.after(SET_ASIDE).as_micros();
                self.conn
                    .prepare_cached("UPDATE awaited_end SET again = ?2 WHERE seq = ?1")?
                    .execute([wait.on, again])?;
                return Ok(false);
            }
            found => found?.map(|stored| stored.blocked(Some(Block::Jobs))),
        };
        let Some((stored, after)) =
            stored.and_then(|stored| stored.job.terms.after.clone().map(|after| (stored, after)))
        else {
            return Ok(false);
        };
        match after.noticed(wait.id, wait.end, self.now) {
            Noticed::Cancels(request) => match Cancel::decide(&stored.job, request) {
                Cancel::Ends(transition) => self.enter(stored, *transition).map(|_| true),
                Cancel::Asks(_) | Cancel::AlreadyAsked | Cancel::AlreadyEnded(_) => Ok(false),
            },
            Noticed::Ended => self.go_on_without(stored, wait.on),
        }
    }

    fn wait_not_for(&mut self, waiter: i64, on: i64) -> Result<()> {
        self.conn.prepare_cached(WAIT_NOT_FOR)?.execute([on, waiter])?;
        self.conn.prepare_cached(NOTICED_BY_ALL)?.execute([on])?;
        self.memory.keyed.awaits_less();
        Ok(())
    }

    /// Ends one wait of a job, and lets it go on if that was the last.
    fn go_on_without(&mut self, stored: Stored, on: i64) -> Result<bool> {
        let seq = value::signed(stored.job.seq);
        self.wait_not_for(seq, on)?;
        if self.conn.prepare_cached(gates::WAITS_FOR_JOBS)?.query_row([seq], |_| Ok(())).optional()?.is_some()
        {
            return Ok(false);
        }
        let due = stored.job.state.due().unwrap_or(self.now);
        self.unplace_gated(&stored, due)?;
        self.place_gated(&stored, due)?;
        Ok(true)
    }
}
