//! Timers: setting and changing them, and firing those that are ripe.
//!
//! A call may be about several timers. The loop over them stays in the store, because an unreadable timer must not fail
//! the others, and each store undoes the work on one of them in its own way.

mod write;

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::schedule::Steps;
use tenure_core::{
    Edited, Firing, HostId, Job, JobId, Name, NewJob, NewTimer, Open, Refused, SlotRecord, Timer, Timestamp,
    backfill, edit, fire_within, limits, past_slots, pause, remove, resume, start, trigger,
};

use crate::{Brought, TimerAct, TimerOutcome, TimerSet, is_over};

pub use write::{Written, write};

/// A transaction over the rows of timers.
#[allow(
    async_fn_in_trait,
    reason = "the rows of some stores stay on one thread, and so do the futures of their reads"
)]
pub trait TimerTxn {
    /// The reason for which a read or a write failed.
    type Error;

    /// Returns the instant of the transaction.
    fn now(&self) -> Timestamp;

    /// Returns the progress of each of these jobs that exists, or an error if the progress of a job is unreadable.
    async fn progress(
        &mut self,
        ids: Vec<JobId>,
    ) -> Result<BTreeMap<JobId, Result<Progress, Self::Error>>, Self::Error>;

    /// Returns those of these jobs that exist.
    async fn jobs(&mut self, ids: Vec<JobId>) -> Result<Vec<Job>, Self::Error>;

    /// Returns the fate on record of each scheduled slot: `Some(true)` if it got its job, `None` without a record.
    async fn have_run(&mut self, slots: &[(&Name, Timestamp)]) -> Result<Vec<Option<bool>>, Self::Error>;

    /// Adds each record whose place has none. Returns for each whether it was added.
    async fn add_records(&mut self, records: &[&SlotRecord]) -> Result<Vec<bool>, Self::Error>;

    /// Enqueues jobs of slots, however full their queues are. Returns the number of new ones.
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<usize, Self::Error>;

    /// Cancels jobs.
    async fn cancel(&mut self, ids: Vec<JobId>, grace: Duration, reason: String) -> Result<(), Self::Error>;

    /// Writes a new timer.
    async fn insert(&mut self, timer: &Timer) -> Result<(), Self::Error>;

    /// Writes the definition of a timer that exists.
    async fn define(&mut self, timer: &Timer) -> Result<(), Self::Error>;

    /// Writes the changes that slots and people make to a timer: all but its definition.
    async fn advance(&mut self, timer: &Timer) -> Result<(), Self::Error>;

    /// Removes a timer, which need not be readable. Returns false if there is none.
    async fn remove(&mut self, name: &Name) -> Result<bool, Self::Error>;

    /// Notifies hosts after the commit that something may be due.
    fn notify_due(&mut self);
}

/// The progress of a job, as far as a timer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The job has not ended.
    Unfinished,
    /// The job ended, at this instant if it is known.
    Ended(Option<Timestamp>),
}

/// The result of setting a timer.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The answer to the caller.
    pub outcome: TimerSet,
    /// The jobs and records that it brought.
    pub brought: Brought,
    /// The timer as it is now, if anything of it was written.
    pub written: Option<Timer>,
}

/// Sets a timer. `before` is the timer of its name, if there is one.
///
/// # Errors
/// Returns an error of the transaction.
pub async fn set<T: TimerTxn>(
    txn: &mut T,
    before: Option<Timer>,
    new: &NewTimer,
    starts: Option<HostId>,
) -> Result<Set, T::Error> {
    let now = txn.now();
    let mut set = Set { outcome: TimerSet::Same, brought: Brought::default(), written: None };
    if starts.is_none() && is_over(new, before.as_ref(), now) {
        return Ok(Set { outcome: TimerSet::Over { now }, ..set });
    }
    match &before {
        None => {
            let timer = Timer::accepted(new.clone(), now);
            txn.insert(&timer).await?;
            (set.outcome, set.written) = (TimerSet::New, Some(timer));
        }
        Some(timer) => match edit(timer, &open_jobs(txn, timer).await?, new.clone(), now) {
            Edited::Same => {}
            Edited::Outdated { by } => set.outcome = TimerSet::Outdated { by },
            Edited::Changed(firing) => {
                txn.define(&firing.timer).await?;
                set.outcome = TimerSet::Changed;
                set.write(txn, timer, *firing).await?;
            }
        },
    }
    if matches!(set.outcome, TimerSet::Outdated { .. }) {
        return Ok(set);
    }
    if let (Some(host), Some(timer)) = (starts, set.written.clone().or(before)) {
        let firing = start(&timer, &open_jobs(txn, &timer).await?, host.drawn_at(), now);
        // Every host reports its start, and most bring nothing.
        if firing.timer != timer || !firing.records.is_empty() {
            set.write(txn, &timer, firing).await?;
        }
    }
    if set.outcome != TimerSet::Same {
        txn.notify_due();
    }
    Ok(set)
}

impl Set {
    async fn write<T: TimerTxn>(
        &mut self,
        txn: &mut T,
        before: &Timer,
        firing: Firing,
    ) -> Result<(), T::Error> {
        let mut written = write(txn, vec![(before.clone(), firing)]).await?;
        self.brought.jobs += written.jobs;
        self.brought.records += written.records.len();
        self.written = written.timers.pop();
        Ok(())
    }
}

/// Performs an action on a timer.
///
/// # Errors
/// Returns an error of the transaction.
pub async fn act<T: TimerTxn>(txn: &mut T, timer: &Timer, act: &TimerAct) -> Result<TimerOutcome, T::Error> {
    let (now, open) = (txn.now(), open_jobs(txn, timer).await?);
    let firing = match act {
        TimerAct::Pause { reason } => pause(timer, &open, reason, now),
        TimerAct::Resume => resume(timer, &open, now),
        TimerAct::Trigger { id, args, owner } => {
            let firing = trigger(timer, &open, *id, args.clone(), now);
            return run_now(txn, timer, *id, firing.map(|firing| firing.owned_by(owner.clone()))).await;
        }
        TimerAct::Backfill { from, to, again } => {
            let mut past = past_slots(timer, (*from, *to), now);
            if !again {
                let slots: Vec<_> = past.slots.iter().map(|slot| (timer.name(), *slot)).collect();
                let mut have_run = txn.have_run(&slots).await?.into_iter();
                past.slots.retain(|_| have_run.next() != Some(Some(true)));
            }
            let firing = backfill(timer, &open, &past.slots, now);
            let written = write(txn, vec![(timer.clone(), firing)]).await?;
            return Ok(TimerOutcome::Backfilled { jobs: written.jobs, next: past.next });
        }
        TimerAct::Remove => {
            record_rest(txn, timer).await?;
            let is_gone = txn.remove(timer.name()).await?;
            return Ok(if is_gone { TimerOutcome::Done } else { TimerOutcome::NotFound });
        }
    };
    write(txn, vec![(timer.clone(), firing)]).await?;
    txn.notify_due();
    Ok(TimerOutcome::Done)
}

/// Records the slots that passed undecided, before their timer is removed.
///
/// # Errors
/// Returns an error of the transaction.
pub async fn record_rest<T: TimerTxn>(txn: &mut T, timer: &Timer) -> Result<(), T::Error> {
    let open = open_jobs(txn, timer).await?;
    let records = remove(timer, &open, txn.now());
    let rest = Firing { timer: timer.clone(), records, jobs: Vec::new(), cancel: Vec::new() };
    write::record_all(txn, &[(timer.clone(), rest)]).await?;
    Ok(())
}

/// Enqueues a job outside of the schedule, at most once for each ID.
async fn run_now<T: TimerTxn>(
    txn: &mut T,
    timer: &Timer,
    id: JobId,
    firing: Result<Firing, Refused>,
) -> Result<TimerOutcome, T::Error> {
    if let Some(job) = txn.jobs(vec![id]).await?.first() {
        let is_own = job.terms.slot.as_ref().is_some_and(|slot| slot.is_trigger_of(timer.name()));
        return Ok(if is_own { TimerOutcome::Triggered(id) } else { TimerOutcome::IdTaken(id) });
    }
    match firing {
        Ok(firing) => {
            write(txn, vec![(timer.clone(), firing)]).await?;
            Ok(TimerOutcome::Triggered(id))
        }
        Err(Refused::Busy { job }) => Ok(TimerOutcome::Busy(job)),
    }
}

/// The decisions about ripe timers.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided<E> {
    /// For each timer that was looked at, in order: the error if nothing could be decided.
    pub errors: Vec<Option<E>>,
    /// The timers as they were, and the decisions.
    pub firings: Vec<(Timer, Firing)>,
    /// The steps that the search for their slots took.
    pub steps: u32,
}

/// Decides the slots of ripe timers, in order, until they have brought enough. Write the decisions with [`write()`].
///
/// # Errors
/// Returns an error of the transaction.
pub async fn decide<T: TimerTxn>(
    txn: &mut T,
    ripe: Vec<Result<Timer, T::Error>>,
    is_enough: impl Fn(Brought) -> bool,
) -> Result<Decided<T::Error>, T::Error> {
    let ids = ripe.iter().flatten().flat_map(|timer| &timer.open).copied().collect();
    let mut progress = txn.progress(ids).await?;
    let (mut decided, mut brought) =
        (Decided { errors: Vec::new(), firings: Vec::new(), steps: 0 }, Brought::default());
    for timer in ripe {
        if is_enough(brought) {
            break;
        }
        let firing = timer.and_then(|timer| {
            let steps = Steps::new(limits::FIRING_STEPS);
            let firing = fire_within(&timer, &open(&timer, &mut progress)?, txn.now(), &steps);
            brought.steps += limits::FIRING_STEPS - steps.left();
            Ok((timer, firing))
        });
        match firing {
            Ok((timer, firing)) => {
                brought.jobs += firing.jobs.len();
                brought.records += firing.records.len();
                decided.firings.push((timer, firing));
                decided.errors.push(None);
            }
            Err(error) => decided.errors.push(Some(error)),
        }
    }
    decided.steps = brought.steps;
    Ok(decided)
}

async fn open_jobs<T: TimerTxn>(txn: &mut T, timer: &Timer) -> Result<Open, T::Error> {
    let mut progress = txn.progress(timer.open.clone()).await?;
    open(timer, &mut progress)
}

/// Sums up the jobs that a timer has open.
fn open<E>(timer: &Timer, progress: &mut BTreeMap<JobId, Result<Progress, E>>) -> Result<Open, E> {
    let mut open = Open::default();
    for id in &timer.open {
        match progress.remove(id).transpose()? {
            Some(Progress::Unfinished) => open.unfinished.push(*id),
            Some(Progress::Ended(at)) => open.ended = open.ended.max(at),
            // It was removed after its end.
            None => {}
        }
    }
    Ok(open)
}
