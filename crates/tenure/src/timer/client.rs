//! Setting timers, looking at them, and asking something of them.

use tenure_core::schedule::Slot;
use tenure_core::{Name, NewTimer, SlotRecord, Timer, Timestamp};
use tenure_store::{
    Fault, Order, SlotPage, SlotsAsk, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerPage, TimerSeen,
    TimerSet, TimersAsk,
};

use super::backfill::Backfill;
use super::calendar::{Calendar, CalendarAsk, look_up};
use super::coming::coming;
use super::draft::TimerDraft;
use super::explain::{TimerWhy, explain_with, open_jobs};
use super::heartbeat::Heartbeat;
use super::hours::{self, CalendarHours};
use super::trigger::Trigger;
use crate::until_known::until_known;
use crate::{Error, Job, Tenure};

/// The timers of a store. A timer is a named schedule with a job.
#[derive(Debug, Clone, Copy)]
pub struct Timers<'a> {
    tenure: &'a Tenure,
}

impl<'a> Timers<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Creates or replaces a timer. Past runs are decided first, by the old schedule, so that none is lost or
    /// doubled. A timer declared by a later version of the program is kept, and the result says so.
    ///
    /// # Errors
    /// An invalid value, with its field; a new schedule without any run left; or a fault.
    pub async fn set(&self, timer: TimerDraft) -> Result<TimerSet, Error> {
        self.set_finished(timer.finish(self.tenure)?).await
    }

    /// Sets a timer if it has not changed since it was read, in one step; `None` if it has changed.
    ///
    /// # Errors
    /// Like [`Timers::set`]. A fault with unknown outcome is not repeated; read the timer again.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Report {}
    /// # impl tenure::Job for Report { const KIND: &'static str = "report"; type Output = (); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// # let tenure = tenure::Tenure::open("memory:").await?;
    /// use tenure::{TimerDraft, TimerSeen, TimerSet};
    ///
    /// let nightly = || TimerDraft::new("nightly", "daily 02:00", &Report {});
    /// let set = tenure.timers().set_as_seen(nightly(), TimerSeen::Absent).await?;
    /// assert_eq!(set, Some(TimerSet::New));
    /// let again = tenure.timers().set_as_seen(nightly(), TimerSeen::Absent).await?;
    /// assert_eq!(again, None, "somebody has set it");
    /// # Ok(()) }
    /// ```
    pub async fn set_as_seen(&self, timer: TimerDraft, seen: TimerSeen) -> Result<Option<TimerSet>, Error> {
        self.set_finished_as_seen(timer.finish(self.tenure)?, seen).await
    }

    pub(crate) async fn set_finished_as_seen(
        &self,
        timer: NewTimer,
        seen: TimerSeen,
    ) -> Result<Option<TimerSet>, Error> {
        let (name, edit) = (timer.name.clone(), TimerEdit::Set(Box::new(timer.clone())));
        match self.tenure.store().edit_timer(&name, seen, edit).await? {
            TimerEdited::Set(TimerSet::Over { now }) => {
                timer.check_left(now)?;
                Ok(Some(TimerSet::Over { now }))
            }
            TimerEdited::Set(set) => Ok(Some(set)),
            TimerEdited::Otherwise | TimerEdited::Acted(_) => Ok(None),
        }
    }

    /// Applies an action to a timer if it has not changed since it was read; `None` if it has changed.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn act_as_seen(
        &self,
        name: &str,
        act: TimerAct,
        seen: TimerSeen,
    ) -> Result<Option<TimerOutcome>, Error> {
        match self.tenure.store().edit_timer(&name_of(name)?, seen, TimerEdit::Act(act)).await? {
            TimerEdited::Acted(outcome) => Ok(Some(outcome)),
            TimerEdited::Otherwise | TimerEdited::Set(_) => Ok(None),
        }
    }

    /// Sets a timer that was checked.
    pub(crate) async fn set_finished(&self, timer: NewTimer) -> Result<TimerSet, Error> {
        let set = self.insist_on_setting(&timer).await?;
        if let TimerSet::Over { now } = set {
            timer.check_left(now)?;
        }
        Ok(set)
    }

    async fn insist_on_setting(&self, timer: &NewTimer) -> Result<TimerSet, Fault> {
        let set = until_known(|| self.tenure.store().set_timers(vec![timer.clone()], None)).await?;
        let nothing = || Fault::Broken("the store returned no result for a timer".into());
        set.first().copied().ok_or_else(nothing)
    }

    /// Returns a timer with its next run, the last decided run, and the time of its last job.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoTimer`], or a fault.
    pub async fn get(&self, name: &str) -> Result<Timer, Error> {
        let name = name_of(name)?;
        self.tenure.store().timer(&name).await?.ok_or(Error::NoTimer(name))
    }

    /// Lists timers by name, page by page.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self, ask: TimersAsk) -> Result<TimerPage, Error> {
        Ok(self.tenure.store().timers(ask).await?)
    }

    /// Pauses a timer. Waiting and running jobs continue.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn pause(&self, name: &str, reason: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Pause { reason: reason.to_owned() }).await
    }

    /// Resumes a timer with its next run. Runs missed while it was paused are recorded as skipped.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn resume(&self, name: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Resume).await
    }

    /// Removes a timer. Its jobs and run history stay. A program that declares it creates it again when it starts.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn remove(&self, name: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Remove).await
    }

    /// Enqueues a job of the timer now, even while it is paused. Set options, then `.await` it.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Report { month: u32 }
    /// # impl tenure::Job for Report { const KIND: &'static str = "report"; type Output = (); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// # let tenure = tenure::Tenure::open("memory:").await?;
    /// use tenure::{TimerDraft, TimerOutcome};
    ///
    /// tenure.timers().set(TimerDraft::new("nightly", "daily 02:00", &Report { month: 5 })).await?;
    /// match tenure.timers().trigger("nightly").args(&Report { month: 4 }).await? {
    ///     TimerOutcome::Triggered(job) => println!("job {job} is enqueued"),
    ///     TimerOutcome::Busy(job) => println!("not now: job {job} has not ended"),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn trigger(&self, name: &str) -> Trigger<'a> {
        Trigger::new(*self, name)
    }

    /// Prepares jobs for past runs in a range, both ends included. Nothing is enqueued yet: preview the runs with
    /// [`Backfill::slots`], then continue step by step.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoTimer`], a timer whose runs depend on earlier ones, or a fault.
    pub async fn backfill(&self, name: &str, from: Timestamp, to: Timestamp) -> Result<Backfill<'a>, Error> {
        Backfill::of(*self, self.get(name).await?, (from, to))
    }

    /// Returns the reasons for which a timer does not run, most important first.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoTimer`], or a fault.
    pub async fn explain(&self, name: &str) -> Result<Vec<TimerWhy>, Error> {
        let timer = self.get(name).await?;
        let open = open_jobs(self.tenure.store().as_ref(), &timer).await?;
        let hosts = self.tenure.hosts().await?;
        Ok(explain_with(&timer, &open, &hosts, self.tenure.now()))
    }

    /// Returns the next runs, at most 10,000. For a paused timer, these are the runs it would have if it were
    /// resumed.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoTimer`], or a fault.
    pub async fn next(&self, name: &str, most: usize) -> Result<Vec<Slot>, Error> {
        let timer = self.get(name).await?;
        if timer.paused.is_none() {
            return Ok(coming(&timer, most));
        }
        let now = self.tenure.now();
        let next = timer.next.map(|next| next.max(now));
        Ok(coming(&Timer { next, ..timer }, most))
    }

    /// Lists run history: which runs got a job, which were skipped and why. For one timer or all.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn slots(&self, ask: SlotsAsk) -> Result<SlotPage, Error> {
        Ok(self.tenure.store().slots(ask).await?)
    }

    /// Returns the latest run history of one timer, latest first.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn last_slots(&self, name: &str, most: usize) -> Result<Vec<SlotRecord>, Error> {
        let ask = SlotsAsk {
            timer: Some(name_of(name)?),
            order: Order::NewestFirst,
            at_most: most,
            ..SlotsAsk::default()
        };
        Ok(self.slots(ask).await?.slots)
    }

    /// Returns past and coming runs of all timers between two times.
    ///
    /// # Errors
    /// An empty range, or a fault.
    pub async fn calendar(&self, ask: CalendarAsk) -> Result<Calendar, Error> {
        look_up(self.tenure, ask).await
    }

    /// Returns the number of past and coming runs per hour, over at most six weeks. The cost does not depend on how
    /// often the timers run. Only the range, the prefix and the timer to continue after are used.
    ///
    /// # Errors
    /// An empty or too long range, or a fault.
    pub async fn calendar_hours(&self, ask: CalendarAsk) -> Result<CalendarHours, Error> {
        hours::look_up(self.tenure, ask).await
    }

    /// Returns when workers of this process last checked for due schedules, and the error if they could not.
    #[must_use]
    pub fn heartbeat(&self) -> Heartbeat {
        self.tenure.heart().heartbeat()
    }

    pub(super) fn tenure(&self) -> &'a Tenure {
        self.tenure
    }

    pub(super) async fn change(&self, name: &str, mut act: TimerAct) -> Result<TimerOutcome, Error> {
        let name = name_of(name)?;
        let changed = until_known(|| {
            let this_time = act.clone();
            if let (TimerAct::Trigger { id, .. }, true) = (&mut act, cfg!(mutant = "trigger-drawn-again")) {
                *id = self.tenure.new_id();
            }
            self.tenure.store().change_timer(&name, this_time)
        });
        Ok(changed.await?)
    }
}

fn name_of(name: &str) -> Result<Name, Error> {
    Ok(Name::new("timer", name)?)
}

pub(super) fn args_of<J: Job>(job: &J) -> Result<tenure_core::Args, Error> {
    let args = serde_json::to_vec(job).map_err(|source| Error::Json { what: "args", source })?;
    Ok(tenure_core::Args::new(args)?)
}
