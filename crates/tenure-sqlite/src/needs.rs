//! Jobs that are kept because unfinished jobs depend on them.

use rusqlite::{Connection, Result, params};
use tenure_core::{Job, JobId, limits};

use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

/// A later job with an ID that is named is another one.
pub(crate) const NEED: &str = "INSERT OR IGNORE INTO needed_by (on_seq, seq)
     SELECT seq, ?2 FROM job WHERE id = ?1 AND seq < ?2";
pub(crate) const NEED_NO_MORE: &str = "DELETE FROM needed_by WHERE seq = ?1";
pub(crate) const IS_NEEDED: &str = "SELECT 1 FROM needed_by WHERE on_seq = ?1 LIMIT 1";
pub(crate) const KEEP_ON: &str = "UPDATE standing SET expires = ?2 WHERE seq = ?1";

pub(crate) const NEEDED_BY: &str = "SELECT j.id FROM needed_by n CROSS JOIN job j ON j.seq = n.seq
     WHERE n.on_seq = ?1 ORDER BY n.seq LIMIT ?2 + 0";

/// Unfinished jobs that depend on one that has ended, oldest first; at most a page.
pub(crate) fn needed_by(conn: &Connection, job: &Job) -> Result<Vec<JobId>> {
    if !job.state.is_finished() {
        return Ok(Vec::new());
    }
    let page = [value::signed(job.seq), value::bound(limits::PAGE_JOBS)];
    conn.prepare_cached(NEEDED_BY)?.query_map(page, |row| value::job_id(row, 0))?.collect()
}

impl Writing<'_> {
    /// Keeps the jobs that an unfinished job depends on, as long as that has not ended.
    pub(crate) fn keep_for(&self, job: &Job) -> Result<()> {
        let Some(after) = &job.terms.after else { return Ok(()) };
        let mut need = self.conn.prepare_cached(NEED)?;
        for id in &after.jobs {
            need.execute(params![id.as_bytes(), value::signed(job.seq)])?;
        }
        Ok(())
    }

    /// Keeps no job for this one any more, which has dependencies and has ended or is gone.
    pub(crate) fn keep_no_more_for(&self, seq: u64) -> Result<()> {
        self.conn.prepare_cached(NEED_NO_MORE)?.execute([value::signed(seq)])?;
        Ok(())
    }

    /// Returns `true` while an unfinished job depends on this one.
    pub(crate) fn is_needed(&self, seq: i64) -> Result<bool> {
        self.conn.prepare_cached(IS_NEEDED)?.exists([seq])
    }

    /// Keeps a job on whose retention is over.
    pub(crate) fn keep_on(&self, stored: &Stored) -> Result<()> {
        let expires = stored.job.expiry_while_needed(self.now).map(|at| at.as_micros());
        self.conn.prepare_cached(KEEP_ON)?.execute(params![value::signed(stored.job.seq), expires])?;
        Ok(())
    }
}
