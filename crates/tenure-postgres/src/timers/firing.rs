//! Between a store and what was decided about timers: what is known of their jobs, and how the decision is written.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Firing, Job, JobId, Name, Open, SlotRecord, Timer, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use super::row;
use crate::fault::unreadable;
use crate::query::Query;
use crate::writing::Writing;
use crate::{code, rows, value};

const OPEN_JOBS: &str = "SELECT j.id, CASE WHEN r.ended IS NOT NULL THEN 2::smallint ELSE s.state END,
         coalesce(s.ended, r.ended)
     FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT id, seq, lane FROM job WHERE id = u.id LIMIT 1) j
     LEFT JOIN LATERAL (SELECT seq, state, ended FROM standing WHERE seq = j.seq LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT ended FROM receipt
         WHERE s.seq IS NULL AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) r ON true";

/// What was found of the jobs that timers have open: only whether they have ended, so that a newer version may write
/// whatever it likes about them.
pub(super) struct OpenJobs {
    found: BTreeMap<JobId, (Option<i16>, Option<i64>)>,
}

impl OpenJobs {
    /// What is known of those of this timer.
    pub(super) fn of(&self, timer: &Timer) -> Result<Open, Fault> {
        let mut open = Open::default();
        for id in &timer.open {
            match self.found.get(id) {
                Some((None | Some(code::WAITING | code::RUNNING), _)) => open.unfinished.push(*id),
                Some((Some(code::SUCCEEDED | code::FAILED | code::CANCELLED), ended)) => {
                    open.ended = open.ended.max(ended.map(value::timestamp).transpose()?);
                }
                Some((Some(other), _)) => {
                    let what = unreadable(format_args!("state {other} of job {id}"));
                    return Err(Fault::Unavailable(format!("timer {}: {what}", timer.name())));
                }
                // It was removed after its end.
                None => {}
            }
        }
        Ok(open)
    }
}

/// What was written.
pub(super) struct Written {
    /// How many jobs are new.
    pub jobs: usize,
    /// The timers as they are now.
    pub timers: Vec<Timer>,
    /// What became of their slots.
    pub records: Vec<SlotRecord>,
}

impl Writing<'_> {
    /// Looks at the jobs that these timers have open.
    pub(super) async fn open_jobs(
        &mut self,
        timers: impl IntoIterator<Item = &Timer>,
    ) -> Result<OpenJobs, Fault> {
        let ids = timers.into_iter().flat_map(|timer| &timer.open).copied().map(value::of_job);
        let ids: Vec<_> = ids.collect();
        if ids.is_empty() {
            return Ok(OpenJobs { found: BTreeMap::new() });
        }
        let read = self.read(vec![Query::new(OPEN_JOBS).with(ids)]).await?;
        let found = |row: &Row| (value::job_id(row, 0), (row.get(1), row.get(2)));
        Ok(OpenJobs { found: read.iter().flatten().map(found).collect() })
    }

    /// Writes what was decided about a timer that was so before. Jobs come under the lock of the gates.
    pub(super) async fn write_firing(
        &mut self,
        timer: &Timer,
        firing: Firing,
    ) -> Result<(usize, Option<Timer>), Fault> {
        let mut written = self.write_firings(vec![(timer.clone(), firing)]).await?;
        Ok((written.jobs, written.timers.pop()))
    }

    /// Writes what was decided about timers that were so before. Jobs come under the lock of the gates.
    pub(super) async fn write_firings(
        &mut self,
        mut firings: Vec<(Timer, Firing)>,
    ) -> Result<Written, Fault> {
        self.pass_by(&mut firings).await?;
        let taken = self.skip_taken(&mut firings).await?;
        let decided = self.record_all(&firings).await?;
        let (mut new, mut jobs, mut records) = (0, Vec::new(), Vec::new());
        let mut timers = Vec::with_capacity(firings.len());
        for ((before, mut firing), decided) in firings.into_iter().zip(decided) {
            // No two timers bring a job of one ID.
            firing.take_back(&(&decided | &taken), &before, self.now);
            let Firing { timer, jobs: of_timer, cancel, records: mut of_slots } = firing;
            records.append(&mut of_slots);
            if !cancel.is_empty() {
                // Each timer in its turn: what is cancelled makes room for what comes behind it.
                new += self.bring(&std::mem::take(&mut jobs)).await?;
                self.cancel_for(timer.name(), &cancel).await?;
            }
            jobs.extend(of_timer);
            self.write(row::stand(&timer)?)?;
            timers.push(timer);
        }
        new += self.bring(&jobs).await?;
        self.news.due |= new > 0;
        Ok(Written { jobs: new, timers, records })
    }

    /// Skips the slots whose job IDs other jobs have; answers these IDs.
    async fn skip_taken(&mut self, firings: &mut [(Timer, Firing)]) -> Result<BTreeSet<JobId>, Fault> {
        let ids: Vec<JobId> = firings.iter().flat_map(|(_, firing)| &firing.jobs).map(|job| job.id).collect();
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let read = self.read(vec![rows::by_ids(ids)]).await?;
        let there: Result<Vec<Job>, Fault> =
            read.iter().flatten().map(|row| rows::stored(row).map(|stored| stored.job)).collect();
        let there = there?;
        let mut taken = BTreeSet::new();
        for (timer, firing) in firings {
            for job in firing.skip_taken(&there) {
                tracing::error!(timer = %timer.name(), %job, "skipped a scheduled run: another job has its ID");
                taken.insert(job);
            }
        }
        Ok(taken)
    }

    async fn cancel_for(&mut self, timer: &Name, jobs: &[JobId]) -> Result<(), Fault> {
        let reason = format!("the next run of timer {timer} is due");
        self.cancel_all(jobs, limits::TIMER_GRACE, &reason).await
    }
}

/// Whether what was decided concerns jobs.
pub(super) fn brings_jobs(firing: &Firing) -> bool {
    !firing.jobs.is_empty() || !firing.cancel.is_empty()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [OPEN_JOBS];
