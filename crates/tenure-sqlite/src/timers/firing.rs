//! Between a store and what was decided about a timer: what is known of its jobs, and how the decision is written.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, Result};
use tenure_core::{Firing, JobId, Name, NewJob, Open, SlotRecord, Timer, limits};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Selection};

use super::{row, slots};
use crate::fault::{of_timer, unreadable};
use crate::queue_terms::Room;
use crate::rows::find;
use crate::writing::Writing;
use crate::{code, value};

pub(crate) const OPEN_JOB: &str = "SELECT s.state, s.ended FROM job j LEFT JOIN standing s ON s.seq = j.seq
     WHERE j.id = ?1";

impl Writing<'_> {
    /// What is known of the jobs that a timer has open: only whether they have ended, so that a newer version may
    /// write whatever it likes about them.
    pub(super) fn open_jobs(&self, timer: &Timer) -> Result<Open> {
        let mut open = Open::default();
        let mut job = self.conn.prepare_cached(OPEN_JOB)?;
        for id in &timer.open {
            let found = job
                .query_row([id.as_bytes()], |row| {
                    Ok((row.get::<_, Option<i64>>(0)?, value::maybe_instant(row, 1)?))
                })
                .optional()?;
            match found {
                Some((None | Some(code::WAITING | code::RUNNING), _)) => open.unfinished.push(*id),
                Some((Some(code::SUCCEEDED | code::FAILED | code::CANCELLED), ended)) => {
                    open.ended = open.ended.max(ended);
                }
                Some((Some(other), _)) => {
                    return Err(of_timer(
                        timer.name(),
                        unreadable(format_args!("state {other} of job {id}")),
                    ));
                }
                // It was removed after its end.
                None => {}
            }
        }
        Ok(open)
    }

    /// Writes what was decided about a timer that was so before; answers how many jobs are new.
    pub(super) fn write_firing(&mut self, timer: &Timer, firing: Firing) -> Result<usize> {
        Ok(self.write_told(timer, firing)?.0)
    }

    /// The same; answers the records as well.
    pub(super) fn write_told(
        &mut self,
        timer: &Timer,
        mut firing: Firing,
    ) -> Result<(usize, Vec<SlotRecord>)> {
        for _ in 0..limits::SLOTS_COUNTED {
            let Some(into) = firing.stands_for_others() else { break };
            if !slots::is_without_job(self.conn, timer.name(), into)? {
                break;
            }
            firing.pass_by(timer, self.now);
        }
        let mut not_wanted = self.skip_taken(&mut firing)?;
        not_wanted.extend(slots::record_all(self.conn, &firing.records, &timer.agreed.schedule)?);
        firing.take_back(&not_wanted, timer, self.now);
        let Firing { timer, jobs, cancel, records } = firing;
        if !cancel.is_empty() {
            self.cancel_for(timer.name(), cancel)?;
        }
        let mut new = 0;
        for job in &jobs {
            new += usize::from(self.bring(job)?);
        }
        row::stand(self.conn, &timer)?;
        self.news.due |= new > 0;
        Ok((new, records))
    }

    /// Skips the slots whose job IDs other jobs have; answers these IDs.
    fn skip_taken(&self, firing: &mut Firing) -> Result<BTreeSet<JobId>> {
        let mut there = Vec::new();
        for new in &firing.jobs {
            there.extend(find(self.conn, new.id)?.map(|stored| stored.job));
        }
        let taken = firing.skip_taken(&there);
        for job in &taken {
            tracing::error!(timer = %firing.timer.name(), %job, "skipped a scheduled run: another job has its ID");
        }
        Ok(taken)
    }

    /// Enqueues a job; answers whether it is new. One that is there already, as it is now or as it was agreed then,
    /// is the job of its slot.
    fn bring(&mut self, job: &NewJob) -> Result<bool> {
        let Enqueued::Stored(accepted) = self.enqueue_where(Room::Given, std::slice::from_ref(job))? else {
            return Ok(false);
        };
        Ok(accepted.iter().any(|one| matches!(one, Accepted::New(_) | Accepted::Replaced { .. })))
    }

    fn cancel_for(&mut self, timer: &Name, jobs: Vec<JobId>) -> Result<()> {
        let reason = format!("the next run of timer {timer} is due");
        let cancel = Change::Cancel { grace: limits::TIMER_GRACE, reason };
        let changed = self.change(&cancel, &Selection::Ids(jobs))?;
        // The unreadable job may still run: the next one must not start beside it.
        let unread =
            changed.outcomes.iter().find(|(_, outcome)| *outcome == ChangeOutcome::RefusedUnreadable);
        unread.map_or(Ok(()), |(id, _)| Err(unreadable(format_args!("job {id}"))))
    }
}
