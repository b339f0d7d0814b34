//! Writing decisions about timers: their jobs, the records of their slots, and their next slots.

use std::collections::BTreeSet;

use tenure_core::schedule::Schedule;
use tenure_core::{Firing, JobId, Origin, SlotRecord, Timer, limits};

use super::TimerTxn;

/// The result of writing decisions about timers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    /// The number of new jobs.
    pub jobs: usize,
    /// The timers as they are now.
    pub timers: Vec<Timer>,
    /// The records of their slots.
    pub records: Vec<SlotRecord>,
}

/// Writes decisions about timers. Each decision comes with its timer as it was before.
///
/// # Errors
/// Returns an error of the transaction.
pub async fn write<T: TimerTxn>(txn: &mut T, mut firings: Vec<(Timer, Firing)>) -> Result<Written, T::Error> {
    pass_by(txn, &mut firings).await?;
    let taken = skip_taken(txn, &mut firings).await?;
    let decided = record_all(txn, &firings).await?;
    let (mut written, mut jobs) = (Written::default(), Vec::new());
    for ((before, mut firing), decided) in firings.into_iter().zip(decided) {
        // No two timers bring a job of the same ID.
        firing.take_back(&(&decided | &taken), &before, txn.now());
        let Firing { timer, jobs: of_timer, cancel, mut records } = firing;
        written.records.append(&mut records);
        if !cancel.is_empty() {
            // A cancelled job makes room for the jobs behind it, so the jobs in front of it come first.
            written.jobs += txn.enqueue(&std::mem::take(&mut jobs)).await?;
            let reason = format!("the next run of timer {} is due", timer.name());
            txn.cancel(cancel, limits::TIMER_GRACE, reason).await?;
        }
        jobs.extend(of_timer);
        txn.advance(&timer).await?;
        written.timers.push(timer);
    }
    written.jobs += txn.enqueue(&jobs).await?;
    if written.jobs > 0 {
        txn.notify_due();
    }
    Ok(written)
}

/// Moves a job that stands for earlier slots to an earlier slot, while the record of its own slot says that it got none.
async fn pass_by<T: TimerTxn>(txn: &mut T, firings: &mut [(Timer, Firing)]) -> Result<(), T::Error> {
    let now = txn.now();
    for _ in 0..limits::SLOTS_COUNTED {
        let mut standing = Vec::new();
        for (timer, firing) in firings.iter_mut() {
            standing.extend(firing.stands_for_others().map(|into| (into, &*timer, firing)));
        }
        if standing.is_empty() {
            break;
        }
        let slots: Vec<_> = standing.iter().map(|(into, timer, _)| (timer.name(), *into)).collect();
        let have_run = txn.have_run(&slots).await?;
        if !have_run.contains(&Some(false)) {
            break;
        }
        for ((_, timer, firing), has_run) in standing.into_iter().zip(have_run) {
            if has_run == Some(false) {
                firing.pass_by(timer, now);
            }
        }
    }
    Ok(())
}

/// Skips the slots whose job IDs other jobs have. Returns these IDs.
async fn skip_taken<T: TimerTxn>(
    txn: &mut T,
    firings: &mut [(Timer, Firing)],
) -> Result<BTreeSet<JobId>, T::Error> {
    let ids: Vec<JobId> = firings.iter().flat_map(|(_, firing)| &firing.jobs).map(|job| job.id).collect();
    let mut taken = BTreeSet::new();
    if ids.is_empty() {
        return Ok(taken);
    }
    let there = txn.jobs(ids).await?;
    for (timer, firing) in firings {
        for job in firing.skip_taken(&there) {
            tracing::error!(timer = %timer.name(), %job, "skipped a scheduled run: another job has its ID");
            taken.insert(job);
        }
    }
    Ok(taken)
}

/// Adds the records of slots. Returns for each timer the jobs of slots that were on record before.
///
/// Such a slot keeps its record, even if its job was removed long ago. It is decided again if the clock was put back and
/// a timer was removed and set again, or if slots of the past are asked for.
pub(super) async fn record_all<T: TimerTxn>(
    txn: &mut T,
    firings: &[(Timer, Firing)],
) -> Result<Vec<BTreeSet<JobId>>, T::Error> {
    let all: Vec<&SlotRecord> = firings.iter().flat_map(|(_, firing)| &firing.records).collect();
    let mut added = txn.add_records(&all).await?.into_iter();
    let mut decided = Vec::with_capacity(firings.len());
    for (timer, firing) in firings {
        let mut of_timer = BTreeSet::new();
        for (record, is_added) in firing.records.iter().zip(added.by_ref()) {
            // Each trigger is a run of its own, whatever else is on record for its instant.
            if !is_added && record.origin != Origin::Trigger {
                of_timer.extend(record.job());
                record_before(txn, record, &timer.agreed.schedule).await?;
            }
        }
        decided.push(of_timer);
    }
    Ok(decided)
}

/// Adds the part of a record of many slots that lies before the slots on record.
async fn record_before<T: TimerTxn>(
    txn: &mut T,
    record: &SlotRecord,
    schedule: &Schedule,
) -> Result<(), T::Error> {
    let mut rest = record.without_last(schedule);
    for _ in 1..limits::SLOTS_COUNTED {
        let Some(record) = rest else { break };
        if txn.add_records(&[&record]).await?.contains(&true) {
            break;
        }
        rest = record.without_last(schedule);
    }
    Ok(())
}
