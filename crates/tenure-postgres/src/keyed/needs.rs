//! Jobs that are kept because unfinished jobs depend on them.

use std::collections::BTreeSet;

use tenure_core::{Job, JobId, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::link::Link;
use crate::query::Query;
use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

/// A later job with an ID that is named is another one.
const NEED: &str = "INSERT INTO needed_by (other, waiter)
     SELECT j.seq, $1 FROM job j WHERE j.id = ANY ($2) AND j.seq < $1 ON CONFLICT DO NOTHING";
const NEED_NO_MORE: &str = "DELETE FROM needed_by WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM needed_by WHERE waiter = $1))";
const NEEDED: &str = "SELECT j.id FROM unnest($1::uuid[]) u (id)
     CROSS JOIN LATERAL (SELECT id, seq FROM job WHERE id = u.id LIMIT 1) j
     CROSS JOIN LATERAL (SELECT FROM needed_by WHERE other = j.seq LIMIT 1) n";

const NEEDED_BY: &str =
    "SELECT k.id FROM (SELECT waiter FROM needed_by WHERE other = $1 ORDER BY waiter LIMIT $2) n
     CROSS JOIN LATERAL (SELECT id FROM keyed WHERE seq = n.waiter LIMIT 1) k ORDER BY n.waiter";

/// Unfinished jobs that depend on one that has ended, oldest first; at most a page.
pub(super) async fn needed_by(link: &mut Link, job: &Job) -> Result<Vec<JobId>, Fault> {
    if !job.state.is_finished() {
        return Ok(Vec::new());
    }
    let page = Query::new(NEEDED_BY).with(value::signed(job.seq)).with(value::bound(limits::PAGE_JOBS));
    let read = link.connection().await?.read(page).await?;
    Ok(read.iter().map(|row| value::job_id(row, 0)).collect())
}

/// The jobs among these that unfinished jobs depend on.
pub(crate) fn needed(ids: &[JobId]) -> Query {
    Query::new(NEEDED).with(ids.iter().copied().map(value::of_job).collect::<Vec<_>>())
}

/// Reads the answer to [`needed`].
pub(crate) fn read_needed(rows: &[Row]) -> BTreeSet<JobId> {
    rows.iter().map(|row| value::job_id(row, 0)).collect()
}

impl Writing<'_> {
    /// Keeps the jobs that an unfinished job depends on, as long as that has not ended.
    pub(crate) fn keep_for(&mut self, job: &Job) -> Result<(), Fault> {
        let Some(after) = &job.terms.after else { return Ok(()) };
        let ids = after.jobs.iter().copied().map(value::of_job).collect::<Vec<_>>();
        self.write(Query::new(NEED).with(value::signed(job.seq)).with(ids))
    }

    /// Keeps no job for this one any more, which has ended or is gone.
    pub(crate) fn keep_no_more_for(&mut self, job: &Job) -> Result<(), Fault> {
        if job.terms.after.is_none() {
            return Ok(());
        }
        self.write(Query::new(NEED_NO_MORE).with(value::signed(job.seq)))
    }

    /// Keeps a job on whose retention is over.
    pub(crate) fn keep_on(&mut self, mut stored: Stored) {
        self.sheet.leaves_others(&stored);
        stored.job.expires = stored.job.expiry_while_needed(self.now);
        self.sheet.standing(&stored);
    }
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 4] = [NEED, NEED_NO_MORE, NEEDED, NEEDED_BY];
