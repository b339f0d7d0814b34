//! Jobs for slots of the past.

use std::time::Duration;

use tenure_core::schedule::Slot;
use tenure_core::{Invalid, Timer, Timestamp};
use tenure_store::{TimerAct, TimerOutcome};

use super::client::Timers;
use crate::Error;

/// Jobs for the slots of a time that has passed, brought step by step.
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
/// println!("it would be {} jobs, the first for {:?}", backfill.slots(100).len(), backfill.slots(1));
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
    so_far: usize,
}

/// One step of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillStep {
    /// Jobs of this step that were not there before.
    pub jobs: usize,
    /// Jobs of all steps so far.
    pub so_far: usize,
    /// From where the next step goes on; `None` if this was the last.
    pub next: Option<Timestamp>,
}

impl<'a> Backfill<'a> {
    pub(super) fn of(
        timers: Timers<'a>,
        timer: Timer,
        (from, to): (Timestamp, Timestamp),
    ) -> Result<Self, Error> {
        if timer.agreed.schedule.follows_runs() {
            let found = format_args!("timer {}, which waits after each run", timer.name());
            return Err(Invalid::new("timer", found, "one whose slots do not depend on its runs").into());
        }
        if to < from {
            return Err(Invalid::new("to", to, format_args!("{from} or later")).into());
        }
        Ok(Self { timers, timer, from: Some(from), to, so_far: 0 })
    }

    /// Which slots the next steps would bring jobs for, as the schedule is now; at most 10,000 of them. Nothing is
    /// enqueued.
    #[must_use]
    pub fn slots(&self, most: usize) -> Vec<Slot> {
        let Some(from) = self.from else { return Vec::new() };
        let to = self.to.min(self.timers.tenure().now());
        self.timer.agreed.schedule.between(from.before(Duration::from_micros(1)), to, most)
    }

    /// Enqueues the jobs of up to a thousand slots, or of none if all is done. A job that was brought before by a
    /// backfill is not brought again. To begin again after a fault is harmless.
    ///
    /// # Errors
    /// [`Error::NoTimer`], or a fault.
    pub async fn step(&mut self) -> Result<Option<BackfillStep>, Error> {
        let Some(from) = self.from else { return Ok(None) };
        let name = self.timer.name();
        match self.timers.change(name.as_str(), TimerAct::Backfill { from, to: self.to }).await? {
            TimerOutcome::Backfilled { jobs, next } => {
                self.so_far += jobs;
                self.from = next;
                Ok(Some(BackfillStep { jobs, so_far: self.so_far, next }))
            }
            TimerOutcome::Done
            | TimerOutcome::Triggered(_)
            | TimerOutcome::Busy(_)
            | TimerOutcome::NotFound => Err(Error::NoTimer(name.clone())),
        }
    }

    /// Takes all steps; answers how many jobs they have brought.
    ///
    /// # Errors
    /// As [`Backfill::step`]; what was enqueued until then stays.
    pub async fn run(mut self) -> Result<usize, Error> {
        while self.step().await?.is_some() {}
        Ok(self.so_far)
    }
}
