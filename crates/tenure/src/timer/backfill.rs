//! Jobs for slots of the past.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::schedule::Slot;
use tenure_core::{Invalid, Origin, Timer, Timestamp, limits};
use tenure_store::{Order, SlotsAsk, TimerAct, TimerOutcome};

use super::client::Timers;
use crate::Error;

/// Jobs for past runs of a timer, enqueued step by step.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Report {}
/// # impl tenure::Job for Report { const KIND: &'static str = "report"; type Output = (); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
/// # let tenure = tenure::Tenure::open("memory:").await?;
/// # tenure.timers().set(tenure::TimerDraft::new("nightly", "daily 02:00", &Report {})).await?;
/// let (from, to) = ("2026-01-01T00:00:00Z".parse()?, "2026-01-31T00:00:00Z".parse()?);
/// let mut backfill = tenure.timers().backfill("nightly", from, to).await?;
/// let slots = backfill.slots(100).await?;
/// println!("it would be {} jobs, the first for {:?}", slots.len(), slots.first());
/// while let Some(step) = backfill.step().await? {
///     println!("{} jobs more, {} in all", step.jobs, step.so_far);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is enqueued before the first step"]
pub struct Backfill<'a> {
    timers: Timers<'a>,
    timer: Timer,
    from: Option<Timestamp>,
    to: Timestamp,
    again: bool,
    so_far: usize,
}

/// One step of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillStep {
    /// New jobs of this step.
    pub jobs: usize,
    /// New jobs of all steps so far.
    pub so_far: usize,
    /// Start of the next step; `None` if this was the last.
    pub next: Option<Timestamp>,
}

impl<'a> Backfill<'a> {
    pub(super) fn of(
        timers: Timers<'a>,
        timer: Timer,
        (from, to): (Timestamp, Timestamp),
    ) -> Result<Self, Error> {
        if timer.agreed.schedule.follows_runs() {
            let found = format_args!("timer {}, which is counted from the end of its last run", timer.name());
            return Err(
                Invalid::new("timer", found, "a timer whose runs do not depend on earlier ones").into()
            );
        }
        if to < from {
            return Err(Invalid::new("to", to, format_args!("{from} or later")).into());
        }
        Ok(Self { timers, timer, from: Some(from), to, again: false, so_far: 0 })
    }

    /// Includes runs that already had a job by schedule. By default they are left out, as long as the run history is
    /// kept.
    pub fn again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Returns the runs that the next steps would enqueue, by the current schedule, from the next 10,000 at most.
    /// Nothing is enqueued. Runs of an earlier backfill are included.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn slots(&self, most: usize) -> Result<Vec<Slot>, Error> {
        let Some(from) = self.from else { return Ok(Vec::new()) };
        let to = self.to.min(self.timers.tenure().now());
        let before = from.before(Duration::from_micros(1));
        let mut slots = self.timer.agreed.schedule.between(before, to, limits::SLOTS_ASKED);
        if let Some(last) = slots.last().filter(|_| !self.again).map(|slot| slot.at) {
            let ran = self.ran(from, last).await?;
            slots.retain(|slot| !ran.contains(&slot.at));
        }
        slots.truncate(most);
        Ok(slots)
    }

    /// The slots that have had a job by schedule.
    async fn ran(&self, from: Timestamp, to: Timestamp) -> Result<BTreeSet<Timestamp>, Error> {
        let mut ask = SlotsAsk {
            timer: Some(self.timer.name().clone()),
            from: Some(from),
            before: Some(to.after(Duration::from_micros(1))),
            order: Order::OldestFirst,
            at_most: limits::PAGE_SLOTS,
            ..SlotsAsk::default()
        };
        let mut ran = BTreeSet::new();
        loop {
            let page = self.timers.slots(ask.clone()).await?;
            let by_schedule = page.slots.iter().filter(|record| record.origin == Origin::Schedule);
            ran.extend(by_schedule.filter(|record| record.job().is_some()).map(|record| record.last));
            ask.behind = page.next;
            // The store may have records of later slots to look through, which are not asked for.
            if ask.behind.as_ref().is_none_or(|behind| behind.slot > to) {
                return Ok(ran);
            }
        }
    }

    /// Enqueues the jobs of up to 1,000 runs, or of none if all is done. A step can enqueue none although more
    /// follow. A run that a backfill has already enqueued is not enqueued again, so it is safe to start over after a
    /// fault.
    ///
    /// # Errors
    /// [`Error::NoTimer`], or a fault.
    pub async fn step(&mut self) -> Result<Option<BackfillStep>, Error> {
        let Some(from) = self.from else { return Ok(None) };
        let name = self.timer.name();
        let act = TimerAct::Backfill { from, to: self.to, again: self.again };
        match self.timers.change(name.as_str(), act).await? {
            TimerOutcome::Backfilled { jobs, next } => {
                self.so_far += jobs;
                self.from = next;
                Ok(Some(BackfillStep { jobs, so_far: self.so_far, next }))
            }
            TimerOutcome::Done
            | TimerOutcome::Triggered(_)
            | TimerOutcome::Busy(_)
            | TimerOutcome::IdTaken(_)
            | TimerOutcome::NotFound => Err(Error::NoTimer(name.clone())),
        }
    }

    /// Runs all steps and returns the number of new jobs.
    ///
    /// # Errors
    /// Like [`Backfill::step`]; jobs enqueued before the error stay.
    pub async fn run(mut self) -> Result<usize, Error> {
        while self.step().await?.is_some() {}
        Ok(self.so_far)
    }
}
