//! Unique keys: who holds which, and until when.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{Job, JobId, Unique, UniqueKey, Window};

use crate::value;
use crate::writing::Writing;

impl Writing<'_> {
    /// The job that holds this key now.
    pub(crate) fn holder_of(&self, key: UniqueKey) -> Result<Option<JobId>> {
        self.conn
            .prepare_cached("SELECT id FROM unique_key WHERE key = ?1 AND (until IS NULL OR until > ?2)")?
            .query_row(params![key.0, self.now.as_micros()], |row| value::job_id(row, 0))
            .optional()
    }

    /// Gives a free key to a job.
    pub(crate) fn take_key(&self, unique: &Unique, seq: i64, id: JobId) -> Result<()> {
        let until = unique.window.until(self.now).map(|at| at.as_micros());
        self.conn
            .prepare_cached(
                "INSERT INTO unique_key (key, seq, id, until) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, id = excluded.id, until = excluded.until",
            )?
            .execute(params![unique.key.0, seq, id.as_bytes(), until])?;
        Ok(())
    }

    /// Frees the key of a job that has ended, unless it is held for a time.
    pub(crate) fn free_key_at_end(&self, job: &Job) -> Result<()> {
        match job.terms.unique {
            Some(Unique { window: Window::WhileUnfinished, .. }) => self.free_key(job),
            Some(Unique { window: Window::For(_), .. }) | None => Ok(()),
        }
    }

    /// Frees the key of a job, if it still holds it.
    pub(crate) fn free_key(&self, job: &Job) -> Result<()> {
        let Some(unique) = &job.terms.unique else { return Ok(()) };
        self.conn
            .prepare_cached("DELETE FROM unique_key WHERE key = ?1 AND seq = ?2")?
            .execute(params![unique.key.0, value::signed(job.seq)])?;
        Ok(())
    }
}
