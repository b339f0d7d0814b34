//! The rows of timers, as the engine reads and writes them in a transaction of the writer.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Error, OptionalExtension, Result};
use tenure_core::{Job, JobId, Name, NewJob, SlotRecord, Timer, Timestamp};
use tenure_store::engine::timers::{Progress, TimerTxn};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Selection};

use super::{row, slots};
use crate::fault::unreadable;
use crate::queue_terms::Room;
use crate::rows::find;
use crate::writing::Writing;
use crate::{code, value};

/// Only the end of a job, so that a newer version may write the rest as it likes.
pub(crate) const PROGRESS: &str = "SELECT s.state, s.ended FROM job j LEFT JOIN standing s ON s.seq = j.seq
     WHERE j.id = ?1";

impl TimerTxn for Writing<'_> {
    type Error = Error;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn progress(&mut self, ids: Vec<JobId>) -> Result<BTreeMap<JobId, Result<Progress>>> {
        let mut job = self.conn.prepare_cached(PROGRESS)?;
        let mut found = BTreeMap::new();
        for id in ids {
            let row = job.query_row([id.as_bytes()], |row| {
                Ok((row.get::<_, Option<i64>>(0)?, value::maybe_instant(row, 1)?))
            });
            if let Some((state, ended)) = row.optional()? {
                found.insert(id, progress(id, state, ended));
            }
        }
        Ok(found)
    }

    async fn jobs(&mut self, ids: Vec<JobId>) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for id in ids {
            jobs.extend(find(self.conn, id)?.map(|stored| stored.job));
        }
        Ok(jobs)
    }

    async fn have_run(&mut self, slots: &[(&Name, Timestamp)]) -> Result<Vec<Option<bool>>> {
        slots.iter().map(|(timer, slot)| slots::has_run(self.conn, timer, *slot)).collect()
    }

    async fn add_records(&mut self, records: &[&SlotRecord]) -> Result<Vec<bool>> {
        records.iter().map(|record| slots::add(self.conn, record)).collect()
    }

    /// A job that is there already, as it is now or as it was when its slot was decided, is the job of its slot.
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<usize> {
        let mut new = 0;
        for job in jobs {
            if let Enqueued::Stored(accepted) = self.enqueue_where(Room::Given, std::slice::from_ref(job))? {
                let is_new = |one: &&Accepted| matches!(one, Accepted::New(_) | Accepted::Replaced { .. });
                new += accepted.iter().filter(is_new).count();
            }
        }
        Ok(new)
    }

    async fn cancel(&mut self, ids: Vec<JobId>, grace: Duration, reason: String) -> Result<()> {
        let changed = self.change(&Change::Cancel { grace, reason }, &Selection::Ids(ids))?;
        // The unreadable job may still run: the next one must not start beside it.
        let is_unreadable =
            |(_, outcome): &&(JobId, ChangeOutcome)| *outcome == ChangeOutcome::RefusedUnreadable;
        let unread = changed.outcomes.iter().find(is_unreadable);
        unread.map_or(Ok(()), |(id, _)| Err(unreadable(format_args!("job {id}"))))
    }

    async fn insert(&mut self, timer: &Timer) -> Result<()> {
        row::keep_copied(self.conn, timer)
    }

    async fn define(&mut self, timer: &Timer) -> Result<()> {
        row::agree(self.conn, timer)
    }

    async fn advance(&mut self, timer: &Timer) -> Result<()> {
        row::stand(self.conn, timer)
    }

    async fn remove(&mut self, name: &Name) -> Result<bool> {
        row::remove(self.conn, name)
    }

    fn notify_due(&mut self) {
        self.news.due = true;
    }
}

fn progress(id: JobId, state: Option<i64>, ended: Option<Timestamp>) -> Result<Progress> {
    match state {
        None | Some(code::WAITING | code::RUNNING) => Ok(Progress::Unfinished),
        Some(code::SUCCEEDED | code::FAILED | code::CANCELLED) => Ok(Progress::Ended(ended)),
        Some(other) => Err(unreadable(format_args!("state {other} of job {id}"))),
    }
}
