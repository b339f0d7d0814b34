//! Writes many similar plain jobs with one statement.
//!
//! Most jobs of a batch differ only in their id and args. Most attempts of a turn succeed without output, in the order of
//! their grant. One statement writes many of them, and the store writes all others one by one.

use std::sync::Arc;

use rusqlite::{Result, params};
use tenure_core::{NewJob, Next, Settlement};

use crate::value;
use crate::writing::Writing;

/// Jobs that one statement stores.
pub(crate) const JOBS: usize = 10;
/// Minimum number of successes for which one statement costs less than a statement for each.
const FEWEST: usize = 4;

// With `OR FAIL`, SQLite keeps no copy of the pages that the statement changes. None is needed: after any error, the writer
// undoes the whole transaction.
pub(crate) const INSERT: &str =
    "INSERT OR FAIL INTO job (seq, id, lane, priority, due, created, singly, terms, args) VALUES
         (?1, ?6, ?2, ?3, ?4, ?5, 0, NULL, ?7), (?1 + 1, ?8, ?2, ?3, ?4, ?5, 0, NULL, ?9),
         (?1 + 2, ?10, ?2, ?3, ?4, ?5, 0, NULL, ?11), (?1 + 3, ?12, ?2, ?3, ?4, ?5, 0, NULL, ?13),
         (?1 + 4, ?14, ?2, ?3, ?4, ?5, 0, NULL, ?15), (?1 + 5, ?16, ?2, ?3, ?4, ?5, 0, NULL, ?17),
         (?1 + 6, ?18, ?2, ?3, ?4, ?5, 0, NULL, ?19), (?1 + 7, ?20, ?2, ?3, ?4, ?5, 0, NULL, ?21),
         (?1 + 8, ?22, ?2, ?3, ?4, ?5, 0, NULL, ?23), (?1 + 9, ?24, ?2, ?3, ?4, ?5, 0, NULL, ?25)
     ON CONFLICT (id) DO NOTHING";
const TAKE_BACK: &str = "DELETE FROM job WHERE seq >= ?1";
pub(crate) const RUNNING: &str =
    "SELECT count(*) FROM standing WHERE seq BETWEEN ?1 AND ?2 AND fence = ?3 AND state = 1";
pub(crate) const SUCCEED: &str =
    "UPDATE OR FAIL standing SET state = 2, due = NULL, until = NULL, lapse = NULL, ended = ?4,
         expires = ?5, output = NULL, place = NULL, cancel = NULL
     WHERE seq BETWEEN ?1 AND ?2 AND fence = ?3 AND state = 1";

impl Writing<'_> {
    /// Returns `true` if one statement can store these jobs.
    pub(crate) fn are_alike(&self, jobs: &[NewJob]) -> bool {
        let [first, others @ ..] = jobs else { return false };
        jobs.len() == JOBS
            && first.terms.are_default()
            && self.memory.lanes.terms(&first.queue).is_none()
            && !self.memory.lanes.is_fair_queue(&first.queue)
            && others.iter().all(|other| {
                (&other.kind, &other.queue) == (&first.kind, &first.queue)
                    && (other.priority, other.due) == (first.priority, first.due)
                    && (Arc::ptr_eq(&other.terms, &first.terms) || other.terms.are_default())
            })
    }

    /// Stores jobs that are alike, and returns the seq of the first. If an id is taken, stores none and returns `None`.
    pub(crate) fn insert_together(&mut self, jobs: &[NewJob], lane: i64) -> Result<Option<i64>> {
        let Some(first) = jobs.first() else { return Ok(None) };
        let mut insert = self.conn.prepare_cached(INSERT)?;
        let before = self.last_seq();
        let seq = self.next_seqs(value::bound(jobs.len()))?;
        insert.raw_bind_parameter(1, seq)?;
        insert.raw_bind_parameter(2, lane)?;
        insert.raw_bind_parameter(3, first.priority.number())?;
        insert.raw_bind_parameter(4, first.due.at(self.now).as_micros())?;
        insert.raw_bind_parameter(5, self.now.as_micros())?;
        for (new, at) in jobs.iter().zip((6..).step_by(2)) {
            insert.raw_bind_parameter(at, new.id.as_bytes())?;
            insert.raw_bind_parameter(at + 1, new.args.as_bytes())?;
        }
        let stored = insert.raw_execute()?;
        if stored == jobs.len() {
            return Ok(Some(seq));
        }
        self.give_back_seq(before);
        if stored > 0 {
            self.conn.prepare_cached(TAKE_BACK)?.execute([seq])?;
        }
        Ok(None)
    }

    /// Returns the number of leading settlements that one statement can write: plain successes, in the order of their
    /// grant.
    pub(crate) fn alike(&self, settlements: &[Settlement]) -> usize {
        let Some(first) = settlements.first() else { return 0 };
        let is_like_first = |(settlement, seq): &(&Settlement, u64)| {
            settlement.seq() == *seq
                && settlement.fence() == first.fence()
                && settlement.retention() == first.retention()
                && settlement.next() == Next::Succeed
                && settlement.output().is_none()
                && self.is_plain(settlement)
        };
        settlements.iter().zip(first.seq()..).take_while(is_like_first).count()
    }

    /// Returns `true` if this program granted the job, and its end affects no other job.
    fn is_plain(&self, settlement: &Settlement) -> bool {
        let grant = self.memory.grants.of(settlement.seq(), settlement.fence(), settlement.id());
        grant.is_some_and(|grant| grant.limit.is_none() && grant.chain.is_none() && !grant.has_needs)
    }

    /// Ends similar ownerships with one statement. Writes nothing and returns `false` if they are few, or if one has ended.
    pub(crate) fn succeed_together(&mut self, settlements: &[Settlement]) -> Result<bool> {
        let [first, .., last] = settlements else { return Ok(false) };
        if settlements.len() < FEWEST {
            return Ok(false);
        }
        let (from, to) = (value::signed(first.seq()), value::signed(last.seq()));
        let fence = value::signed(first.fence().number());
        let running: i64 =
            self.conn.prepare_cached(RUNNING)?.query_row([from, to, fence], |row| row.get(0))?;
        if running != value::bound(settlements.len()) {
            return Ok(false);
        }
        let expires = first.resolve(self.now, None).expires.map(|at| at.as_micros());
        let now = self.now.as_micros();
        self.conn.prepare_cached(SUCCEED)?.execute(params![from, to, fence, now, expires])?;
        for settlement in settlements {
            let (seq, id) = (settlement.seq(), settlement.id());
            let Some(grant) = self.memory.grants.of(seq, settlement.fence(), id) else { continue };
            self.succeeded(&grant)?;
        }
        Ok(true)
    }
}
