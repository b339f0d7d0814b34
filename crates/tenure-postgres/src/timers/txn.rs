//! The rows of timers, as the engine reads and writes them in a transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Job, JobId, Name, NewJob, SlotRecord, Timer, Timestamp};
use tenure_store::Fault;
use tenure_store::engine::timers::{Progress, TimerTxn};
use tokio_postgres::Row;

use super::{row, slots};
use crate::fault::{is_unreadable, unreadable, what_is_unreadable};
use crate::query::Query;
use crate::transaction::Gate;
use crate::writing::Writing;
use crate::{code, rows, value};

/// Only the end of a job, so that a newer version may write the rest as it likes.
const PROGRESS: &str = "SELECT j.id, CASE WHEN r.ended IS NOT NULL THEN 2::smallint ELSE s.state END,
         coalesce(s.ended, r.ended)
     FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT id, seq, lane FROM job WHERE id = u.id LIMIT 1) j
     LEFT JOIN LATERAL (SELECT seq, state, ended FROM standing WHERE seq = j.seq LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT ended FROM receipt
         WHERE s.seq IS NULL AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) r ON true";

/// The reason to undo a transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Halt {
    /// Jobs come or go, which needs the lock of the gates: begin again with it.
    NeedsGate,
    Fault(Fault),
}

impl Halt {
    /// Names the timer because of which a row could not be read.
    pub(crate) fn of_timer(self, name: &Name) -> Self {
        match &self {
            Self::Fault(fault) if is_unreadable(fault) => {
                Self::Fault(unreadable(format_args!("timer {name}: {}", what_is_unreadable(fault))))
            }
            Self::NeedsGate | Self::Fault(_) => self,
        }
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Halt> for Fault {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Fault(fault) => fault,
            Halt::NeedsGate => Self::Broken("a timer brought jobs without the lock of the gates".to_owned()),
        }
    }
}

impl Writing<'_> {
    fn check_gate(&self) -> Result<(), Halt> {
        if self.gate == Gate::Keys { Ok(()) } else { Err(Halt::NeedsGate) }
    }
}

impl TimerTxn for Writing<'_> {
    type Error = Halt;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn progress(&mut self, ids: Vec<JobId>) -> Result<BTreeMap<JobId, Result<Progress, Halt>>, Halt> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<_> = ids.into_iter().map(value::of_job).collect();
        let read = self.read(vec![Query::new(PROGRESS).with(ids)]).await?;
        Ok(read
            .iter()
            .flatten()
            .map(|row| (value::job_id(row, 0), progress(row).map_err(Halt::Fault)))
            .collect())
    }

    async fn jobs(&mut self, ids: Vec<JobId>) -> Result<Vec<Job>, Halt> {
        let read = self.read(vec![rows::by_ids(ids)]).await?;
        let jobs = read.iter().flatten().map(|row| rows::stored(row).map(|stored| stored.job));
        Ok(jobs.collect::<Result<_, Fault>>()?)
    }

    async fn have_run(&mut self, slots: &[(&Name, Timestamp)]) -> Result<Vec<Option<bool>>, Halt> {
        let read = self.read(vec![slots::have_run(slots)]).await?;
        Ok(slots::read_have_run(slots.len(), read.last().map_or(&[], Vec::as_slice)))
    }

    async fn add_records(&mut self, records: &[&SlotRecord]) -> Result<Vec<bool>, Halt> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let read = self.read(vec![slots::add(records)]).await?;
        Ok(slots::read_added(records, read.last().map_or(&[], Vec::as_slice)))
    }

    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<usize, Halt> {
        if jobs.is_empty() {
            return Ok(0);
        }
        self.check_gate()?;
        Ok(self.bring(jobs).await?)
    }

    async fn cancel(&mut self, ids: Vec<JobId>, grace: Duration, reason: String) -> Result<(), Halt> {
        self.check_gate()?;
        Ok(self.cancel_all(&ids, grace, &reason).await?)
    }

    async fn insert(&mut self, timer: &Timer) -> Result<(), Halt> {
        Ok(row::keep_new(timer)?.into_iter().try_for_each(|query| self.write(query))?)
    }

    async fn define(&mut self, timer: &Timer) -> Result<(), Halt> {
        Ok(self.write(row::agree(timer)?)?)
    }

    async fn advance(&mut self, timer: &Timer) -> Result<(), Halt> {
        Ok(self.write(row::stand(timer)?)?)
    }

    async fn remove(&mut self, name: &Name) -> Result<bool, Halt> {
        let removed = self.run(row::remove(name)).await?;
        Ok(removed.last().is_some_and(|removed| removed.changed > 0))
    }

    fn notify_due(&mut self) {
        self.news.due = true;
    }
}

fn progress(row: &Row) -> Result<Progress, Fault> {
    match row.get::<_, Option<i16>>(1) {
        None | Some(code::WAITING | code::RUNNING) => Ok(Progress::Unfinished),
        Some(code::SUCCEEDED | code::FAILED | code::CANCELLED) => {
            Ok(Progress::Ended(value::maybe_instant(row, 2)?))
        }
        Some(other) => Err(unreadable(format_args!("state {other} of job {}", value::job_id(row, 0)))),
    }
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [PROGRESS];
