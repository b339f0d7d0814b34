//! Fair shares: in which round a job of a fair queue is served.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{Job, Why, limits, round_of};

use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

pub(crate) const FIND: &str = "SELECT id, granted, (SELECT max(round) FROM fair_place WHERE share = id)
     FROM share WHERE queue = ?1 AND priority = ?2 AND key = ?3";
const MAKE: &str = "INSERT INTO share (queue, priority, key) VALUES (?1, ?2, ?3)";
const PRESENT: &str = "SELECT round FROM present_round WHERE queue = ?1 AND priority = ?2";
const ADVANCE: &str = "INSERT INTO present_round (queue, priority, round) VALUES (?1, ?2, ?3)
     ON CONFLICT (queue, priority) DO UPDATE SET round = excluded.round WHERE round < excluded.round";
const JOIN: &str = "INSERT INTO fair_place (seq, share, round) VALUES (?1, ?2, ?3)";
const LEAVE: &str = "DELETE FROM fair_place WHERE seq = ?1 RETURNING share, round";
const GRANT: &str = "UPDATE share SET granted = ?2 WHERE id = ?1 AND ifnull(granted, -1) < ?2";
/// Shares that say nothing any more, among the next so many.
pub(crate) const MEANINGLESS: &str = "SELECT s.id, ifnull(s.granted, -1) < ifnull(p.round, 0)
         AND NOT EXISTS (SELECT 1 FROM fair_place WHERE share = s.id)
     FROM (SELECT id, queue, priority, granted FROM share WHERE id > ?1 ORDER BY id LIMIT ?2 + 0) s
     LEFT JOIN present_round p ON p.queue = s.queue AND p.priority = s.priority";
const DROP: &str = "DELETE FROM share WHERE id = ?1";

/// A share as it stands when a job joins.
struct Share {
    id: i64,
    /// The last round in which it has or had a job.
    last: Option<u64>,
}

impl Writing<'_> {
    /// The round of a job that joins the line; 0 in a queue that is not fair.
    pub(crate) fn join_round(&mut self, stored: &Stored, why: Why) -> Result<i64> {
        let Stored { job, lane, .. } = stored;
        if job.terms.share.is_some() {
            self.memory.lanes.make_fair(self.conn, &job.queue)?;
        } else if !self.memory.lanes.is_fair(*lane)? {
            return Ok(0);
        }
        let present = self.present_round(job)?;
        let share = self.share_of(job)?;
        let round = match why {
            Why::Released | Why::Lost => present,
            Why::Enqueued | Why::Retry | Why::Snoozed | Why::Asked => round_of(share.last, present),
        };
        let round = value::signed(round);
        self.conn.prepare_cached(JOIN)?.execute([value::signed(job.seq), share.id, round])?;
        Ok(round)
    }

    fn present_round(&self, job: &Job) -> Result<u64> {
        let round = self
            .conn
            .prepare_cached(PRESENT)?
            .query_row(params![job.queue.as_str(), job.priority.number()], |row| row.get(0))
            .optional()?;
        value::seq(round.unwrap_or(0))
    }

    fn share_of(&self, job: &Job) -> Result<Share> {
        let key = job.terms.share.as_ref().map_or("", |key| key.as_str());
        let of = params![job.queue.as_str(), job.priority.number(), key];
        let found = self
            .conn
            .prepare_cached(FIND)?
            .query_row(of, |row| {
                let (granted, in_line): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
                let last = granted.max(in_line).map(value::seq).transpose()?;
                Ok(Share { id: row.get(0)?, last })
            })
            .optional()?;
        match found {
            Some(share) => Ok(share),
            None => Ok(Share { id: self.conn.prepare_cached(MAKE)?.insert(of)?, last: None }),
        }
    }

    /// Takes a job that leaves the line out of its round; answers which it was.
    pub(crate) fn leave_round(&self, stored: &Stored) -> Result<i64> {
        if !self.memory.lanes.is_fair(stored.lane)? {
            return Ok(0);
        }
        Ok(self.take_round(value::signed(stored.job.seq))?.map_or(0, |(_, round)| round))
    }

    fn take_round(&self, seq: i64) -> Result<Option<(i64, i64)>> {
        self.conn.prepare_cached(LEAVE)?.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Notes that these jobs of a fair queue were granted: what round is served now, and to whom.
    pub(crate) fn granted_in_rounds<'j>(&self, jobs: impl Iterator<Item = &'j Job>) -> Result<()> {
        for job in jobs {
            // One that joined before the queue was fair is in no round.
            let Some((share, round)) = self.take_round(value::signed(job.seq))? else { continue };
            self.conn.prepare_cached(GRANT)?.execute([share, round])?;
            let present = params![job.queue.as_str(), job.priority.number(), round];
            self.conn.prepare_cached(ADVANCE)?.execute(present)?;
        }
        Ok(())
    }

    /// Removes shares that say nothing any more, some at a time.
    pub(crate) fn prune_shares(&mut self) -> Result<()> {
        if !self.memory.lanes.has_fair() {
            return Ok(());
        }
        let behind = self.memory.shares_pruned;
        let seen = self
            .conn
            .prepare_cached(MEANINGLESS)?
            .query_map([behind, value::bound(limits::PRUNE_JOBS)], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(i64, bool)>>>()?;
        for (id, _) in seen.iter().filter(|(_, is_meaningless)| *is_meaningless) {
            self.conn.prepare_cached(DROP)?.execute([*id])?;
        }
        // The next time goes on behind the last one, or begins anew.
        let is_more = seen.len() >= limits::PRUNE_JOBS;
        self.memory.shares_pruned = seen.last().filter(|_| is_more).map_or(0, |(id, _)| *id);
        Ok(())
    }
}
