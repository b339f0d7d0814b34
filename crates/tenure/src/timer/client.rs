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
use crate::{Error, Job, Tenure};

/// Times that a request whose outcome is unknown is repeated before its caller is told. Repeating is harmless.
const REPEATS: u32 = 3;

/// The timers of a store.
#[derive(Debug, Clone, Copy)]
pub struct Timers<'a> {
    tenure: &'a Tenure,
}

impl<'a> Timers<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Sets a timer: a new one, or in place of the one of that name. Its slots that have passed are decided first, so
    /// that none is lost and none doubled. One that a later version of the program has declared stays as it is, and the
    /// answer says so.
    ///
    /// # Errors
    /// A declaration that breaks a limit, by its field; a new schedule of which no slot is left, which would never
    /// fire; or a fault.
    pub async fn set(&self, timer: TimerDraft) -> Result<TimerSet, Error> {
        self.set_finished(timer.finish(self.tenure)?).await
    }

    /// The same if what is there is as somebody has seen it, compared and changed in one step; `None` if it is not.
    ///
    /// # Errors
    /// As [`Timers::set`]. A fault after which nobody knows whether it is done is not repeated: look again.
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

    /// Does what somebody wants of a timer if it is as he has seen it; `None` if it is not.
    ///
    /// # Errors
    /// A bad name, or a fault.
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
        let mut repeats = REPEATS;
        loop {
            match self.tenure.store().set_timers(vec![timer.clone()], None).await {
                Ok(set) => {
                    return set
                        .first()
                        .copied()
                        .ok_or_else(|| Fault::Broken("a timer without an answer".into()));
                }
                Err(Fault::Unknown(_)) if repeats > 0 => repeats -= 1,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// One timer, with its next slot, the last one that was decided, and when it last enqueued a job.
    ///
    /// # Errors
    /// A bad name, [`Error::NoTimer`], or a fault.
    pub async fn get(&self, name: &str) -> Result<Timer, Error> {
        let name = name_of(name)?;
        self.tenure.store().timer(&name).await?.ok_or(Error::NoTimer(name))
    }

    /// A page of timers, by name.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self, ask: TimersAsk) -> Result<TimerPage, Error> {
        Ok(self.tenure.store().timers(ask).await?)
    }

    /// It does not fire until further notice. What waits or runs already goes on.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn pause(&self, name: &str, reason: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Pause { reason: reason.to_owned() }).await
    }

    /// It goes on with its next slot; those of the meantime are skipped and on record as such.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn resume(&self, name: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Resume).await
    }

    /// It ends. Its jobs and the records of its slots stay. A program that declares it sets it again when it starts.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn remove(&self, name: &str) -> Result<TimerOutcome, Error> {
        self.change(name, TimerAct::Remove).await
    }

    /// Enqueues a job of it now, beside its schedule, and even while it is paused. Say more about it, then await it.
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

    /// Prepares jobs for the slots from one instant until another, both included, as far as they have passed. Nothing
    /// is enqueued yet: see what would be ([`Backfill::slots`]), then go on step by step.
    ///
    /// # Errors
    /// A bad name, [`Error::NoTimer`], a timer whose slots depend on its runs, or a fault.
    pub async fn backfill(&self, name: &str, from: Timestamp, to: Timestamp) -> Result<Backfill<'a>, Error> {
        Backfill::of(*self, self.get(name).await?, (from, to))
    }

    /// Why it does not fire now, the weightiest reason first.
    ///
    /// # Errors
    /// A bad name, [`Error::NoTimer`], or a fault.
    pub async fn explain(&self, name: &str) -> Result<Vec<TimerWhy>, Error> {
        let timer = self.get(name).await?;
        let open = open_jobs(self.tenure.store().as_ref(), &timer).await?;
        let hosts = self.tenure.hosts().await?;
        Ok(explain_with(&timer, &open, &hosts, self.tenure.now()))
    }

    /// Its next slots, at most 10,000. Those of a paused timer are the ones that it would have if it went on.
    ///
    /// # Errors
    /// A bad name, [`Error::NoTimer`], or a fault.
    pub async fn next(&self, name: &str, most: usize) -> Result<Vec<Slot>, Error> {
        let timer = self.get(name).await?;
        if timer.paused.is_none() {
            return Ok(coming(&timer, most));
        }
        let now = self.tenure.now();
        let next = timer.next.map(|next| next.max(now));
        Ok(coming(&Timer { next, ..timer }, most))
    }

    /// A page of records of slots: which ran, which did not and why. Of one timer or all of them.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn slots(&self, ask: SlotsAsk) -> Result<SlotPage, Error> {
        Ok(self.tenure.store().slots(ask).await?)
    }

    /// The last records of one timer, the latest first.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn last_slots(&self, name: &str, most: usize) -> Result<Vec<SlotRecord>, Error> {
        let ask = SlotsAsk {
            timer: Some(name_of(name)?),
            order: Order::NewestFirst,
            at_most: most,
            ..SlotsAsk::default()
        };
        Ok(self.slots(ask).await?.slots)
    }

    /// For all timers: what became of their slots between two instants, and which will come.
    ///
    /// # Errors
    /// A range that is empty, or a fault.
    pub async fn calendar(&self, ask: CalendarAsk) -> Result<Calendar, Error> {
        look_up(self.tenure, ask).await
    }

    /// The same by the hour, of six weeks at most: how often timers fire in each hour from the beginning of the range on,
    /// and how often they did. It costs little however often they fire. Of the ask counts the range, the prefix and behind
    /// which timer it goes on.
    ///
    /// # Errors
    /// A range that is empty or too long, or a fault.
    pub async fn calendar_hours(&self, ask: CalendarAsk) -> Result<CalendarHours, Error> {
        hours::look_up(self.tenure, ask).await
    }

    /// When the workers of this program last fired timers, and what kept them from it.
    #[must_use]
    pub fn heartbeat(&self) -> Heartbeat {
        self.tenure.heart().heartbeat()
    }

    pub(super) fn tenure(&self) -> &'a Tenure {
        self.tenure
    }

    pub(super) async fn change(&self, name: &str, mut act: TimerAct) -> Result<TimerOutcome, Error> {
        let name = name_of(name)?;
        let mut repeats = REPEATS;
        loop {
            match self.tenure.store().change_timer(&name, act.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(Fault::Unknown(_)) if repeats > 0 => repeats -= 1,
                Err(fault) => return Err(fault.into()),
            }
            if let (TimerAct::Trigger { id, .. }, true) = (&mut act, cfg!(mutant = "trigger-drawn-again")) {
                *id = self.tenure.new_id();
            }
        }
    }
}

fn name_of(name: &str) -> Result<Name, Error> {
    Ok(Name::new("timer", name)?)
}

pub(super) fn args_of<J: Job>(job: &J) -> Result<tenure_core::Args, Error> {
    let args = serde_json::to_vec(job).map_err(|source| Error::Json { what: "args", source })?;
    Ok(tenure_core::Args::new(args)?)
}
