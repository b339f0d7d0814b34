//! What can be done with timers, and what became of their slots.

use std::time::Duration;

use tenure_core::{Args, HostId, JobId, Name, NewTimer, Origin, Pause, SlotRecord, Timer, Timestamp, limits};

use crate::{Answer, Fault, Order, Pruned};

/// Rules that bring a job for each slot.
///
/// A store decides nothing about them: `tenure-core` does. What it decides is written in one go: the jobs, the records
/// of the slots, and the timer with its next slot. So a slot has one record and at most one job, whoever fires it, and
/// however often.
pub trait Timers {
    /// Sets timers, each by itself, in their order and in one go: new ones, and such as are there already. No more than
    /// [`limits::SET_TIMERS`]: of more none is taken, see [`check_timers`]. It answers for the first of them, one at
    /// least, and stops once they have brought about as many jobs or records as a call may ([`limits::FIRE_JOBS`],
    /// [`limits::FIRE_RECORDS`]): whoever wants the others to be set as well asks again for those.
    ///
    /// If a program `starts` that declares them, on this host, those that want it bring a job for that. The start is known
    /// by the host, whose id was drawn for it: repeating the call brings nothing twice, however late.
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>>;

    /// Decides the slots of timers that are ripe, the first ripe first, of a bounded number of timers and until they
    /// have brought a bounded number of jobs and of records ([`limits::FIRE_JOBS`], [`limits::FIRE_RECORDS`]), or have
    /// taken a bounded number of steps ([`limits::FIRE_STEPS`]): what is left is ripe as before, and the answer says so. Repeating it is harmless.
    fn fire(&self, at_most: usize) -> Answer<'_, Fired>;

    /// Performs an action on a timer, regardless of its state.
    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let edited = self.edit_timer(name, TimerSeen::Never, TimerEdit::Act(act));
        Box::pin(async move {
            match edited.await? {
                TimerEdited::Acted(outcome) => Ok(outcome),
                other @ (TimerEdited::Set(_) | TimerEdited::Otherwise) => {
                    Err(Fault::Broken(format!("the store replied to an action on a timer with {other:?}")))
                }
            }
        })
    }

    /// Sets a timer or does what somebody wants of it, if it is as he has seen it: what he compares and what he changes is
    /// one step.
    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited>;

    /// One timer; `None` if there is none of that name.
    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>>;

    /// A page of timers, by name.
    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage>;

    /// A page of records of slots.
    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage>;

    /// Removes a bounded number of records whose last slot lies before that instant and which were made before it, too:
    /// what became of a slot of the past is known for as long as of any other. The first made go first.
    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned>;
}

/// How somebody has seen a timer that he changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerSeen {
    /// He has not looked.
    Never,
    /// There was none.
    Absent,
    /// What was agreed was this, whatever has become of its slots.
    As {
        /// When it was first set.
        created: Timestamp,
        /// How often it had been changed.
        version: u64,
        /// Who did not want it to fire.
        paused: Option<Pause>,
    },
}

impl TimerSeen {
    /// As this one is.
    #[must_use]
    pub fn of(timer: &Timer) -> Self {
        Self::As { created: timer.created, version: timer.version, paused: timer.paused.clone() }
    }

    /// Whether it is so still.
    #[must_use]
    pub fn is(&self, there: Option<&Timer>) -> bool {
        match (self, there) {
            (Self::Never, _) | (Self::Absent, None) => true,
            (Self::As { .. }, Some(timer)) => *self == Self::of(timer),
            (Self::Absent, Some(_)) | (Self::As { .. }, None) => false,
        }
    }
}

/// What is to be done with a timer.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerEdit {
    /// It is to be so.
    Set(Box<NewTimer>),
    /// Something is wanted of it.
    Act(TimerAct),
}

/// What came of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerEdited {
    /// Of setting it.
    Set(TimerSet),
    /// Of what was wanted.
    Acted(TimerOutcome),
    /// It is not as it was seen: nothing was done.
    Otherwise,
}

/// What came of setting a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerSet {
    /// It is there now.
    New,
    /// It was the same already.
    Same,
    /// It has changed.
    Changed,
    /// A program of this later version has declared it: it stays as it is.
    Outdated {
        /// The version.
        by: u64,
    },
    /// No slot of its new schedule is left: nothing has changed. To a program that starts this is not said, since a
    /// timer stays in the program when its time has passed: it is set.
    Over {
        /// What the store's clock shows.
        now: Timestamp,
    },
}

/// What became of firing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fired {
    /// Ripe timers that were looked at.
    pub timers: usize,
    /// Jobs that they brought.
    pub jobs: usize,
    /// What became of their slots: the records that were made, each of them once, whoever fires what is ripe.
    pub records: Vec<SlotRecord>,
    /// In how long the next timer is ripe, and zero if one was left; `None` if none will be by itself. How long and not
    /// when, since the caller may have another clock. It counts from when the store looked, so whoever waits counts it
    /// from when the request was sent: a late answer makes no later look.
    pub ripe_in: Option<Duration>,
}

/// What timers have brought so far in one call, which may bring a bounded amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Brought {
    /// Jobs.
    pub jobs: usize,
    /// Records of slots.
    pub records: usize,
    /// Steps of the search for slots.
    pub steps: u32,
}

/// Something that somebody wants of a timer.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerAct {
    /// That it does not fire until further notice.
    Pause {
        /// Why, for people.
        reason: String,
    },
    /// That it goes on.
    Resume,
    /// A job of it now, beside its schedule.
    Trigger {
        /// The id of the job: asking again under the same id brings it once.
        id: JobId,
        /// Other arguments than the timer's.
        args: Option<Args>,
        /// Name of the client that the job belongs to ([`tenure_core::Terms::owner`]).
        owner: Option<String>,
    },
    /// Jobs for the slots of a time that has passed, a bounded number of them. Slots that have had a job by schedule are
    /// left out as long as the record tells, unless they are to have one `again`.
    Backfill {
        /// From this instant on.
        from: Timestamp,
        /// Until this one, but not later than now.
        to: Timestamp,
        /// Whether those that have had a job by schedule get one more.
        again: bool,
    },
    /// That it ends. The records of its slots stay, and those that have passed and were not decided get theirs: they
    /// are skipped.
    Remove,
}

/// What came of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerOutcome {
    /// It is done, or was so already.
    Done,
    /// The job is there.
    Triggered(JobId),
    /// So many jobs are there that were not there before.
    Backfilled {
        /// How many.
        jobs: usize,
        /// From where to go on; `None` at the end.
        next: Option<Timestamp>,
    },
    /// Jobs of the timer have not ended, and it allows no more. This is the first of them.
    Busy(JobId),
    /// The id that was asked for is that of another job, which this timer was not asked for.
    IdTaken(JobId),
    /// There is no such timer.
    NotFound,
}

/// Which page of timers is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimersAsk {
    /// Whose names begin so; all if it is empty.
    pub prefix: String,
    /// Behind this name.
    pub behind: Option<Name>,
    /// How many at most.
    pub at_most: usize,
}

/// A page of timers. One that looked at many which nobody can read may be short, or even empty, and still go on.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerPage {
    /// The timers, by name.
    pub timers: Vec<Timer>,
    /// Behind which name it goes on; `None` at the end.
    pub next: Option<Name>,
    /// What the store's clock showed.
    pub now: Timestamp,
}

/// Which page of records of slots is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotsAsk {
    /// Of which timer; of all if `None`.
    pub timer: Option<Name>,
    /// Whose last slot is at this instant or later.
    pub from: Option<Timestamp>,
    /// Whose last slot is before this instant.
    pub before: Option<Timestamp>,
    /// In which order: of their last slots.
    pub order: Order,
    /// Behind this record, in that order.
    pub behind: Option<SlotCursor>,
    /// How many at most.
    pub at_most: usize,
}

/// The place of a record among all: of its last slot, its timer and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotCursor {
    /// The last slot.
    pub slot: Timestamp,
    /// The timer.
    pub timer: Name,
    /// From where the slot comes.
    pub origin: Origin,
}

/// A page of records of slots. One that looked at many records which nobody wants may be short, or even empty, and
/// still go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotPage {
    /// The records.
    pub slots: Vec<SlotRecord>,
    /// Behind which it goes on; `None` at the end.
    pub next: Option<SlotCursor>,
}

impl Fired {
    /// What it came to.
    #[must_use]
    pub fn brought(&self) -> Brought {
        Brought { jobs: self.jobs, records: self.records.len(), steps: 0 }
    }
}

impl Brought {
    /// Returns `true` if one more timer could bring more jobs or records, or take more steps, than one call may. The next call
    /// fires the others.
    #[must_use]
    pub fn is_enough(self) -> bool {
        self.jobs + limits::CATCH_UP_JOBS > limits::FIRE_JOBS
            || self.records + limits::TIMER_RECORDS > limits::FIRE_RECORDS
            || self.steps > limits::FIRE_STEPS - limits::FIRING_STEPS
    }
}

impl Default for TimersAsk {
    /// The first hundred of all.
    fn default() -> Self {
        Self { prefix: String::new(), behind: None, at_most: 100 }
    }
}

impl Default for SlotsAsk {
    /// The last hundred of all.
    fn default() -> Self {
        Self { timer: None, from: None, before: None, order: Order::NewestFirst, behind: None, at_most: 100 }
    }
}

impl SlotsAsk {
    /// Whether it means this record.
    #[must_use]
    pub fn means(&self, record: &SlotRecord) -> bool {
        self.timer.as_ref().is_none_or(|timer| *timer == record.timer)
            && self.from.is_none_or(|from| record.last >= from)
            && self.before.is_none_or(|before| record.last < before)
    }
}

impl SlotCursor {
    /// The place of this record.
    #[must_use]
    pub fn of(record: &SlotRecord) -> Self {
        Self { slot: record.last, timer: record.timer.clone(), origin: record.origin }
    }
}

/// Refuses more timers than a call may set.
///
/// # Errors
/// A fault, since there is no answer to some of them: whoever calls has to be mended.
pub fn check_timers(timers: &[NewTimer]) -> Result<(), Fault> {
    if timers.len() <= limits::SET_TIMERS {
        return Ok(());
    }
    let (count, most) = (timers.len(), limits::SET_TIMERS);
    Err(Fault::Broken(format!("{count} timers set in one call; the maximum is {most}")))
}

/// Whether setting a timer brings a new schedule of which no slot is left. `there` is what there is of that name.
#[must_use]
pub fn is_over(new: &NewTimer, there: Option<&Timer>, now: Timestamp) -> bool {
    let is_news = there
        .is_none_or(|there| there.agreed.revision <= new.revision && there.agreed.schedule != new.schedule);
    is_news && new.check_left(now).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_goes_on_only_while_one_more_timer_stays_within_its_limits() {
        let is_enough = |jobs, records| Brought { jobs, records, steps: 0 }.is_enough();
        let is_enough_of = |steps| Brought { steps, ..Brought::default() }.is_enough();
        assert!(!is_enough_of(limits::FIRE_STEPS - limits::FIRING_STEPS));
        assert!(is_enough_of(limits::FIRE_STEPS - limits::FIRING_STEPS + 1));
        assert!(!is_enough(limits::FIRE_JOBS - limits::CATCH_UP_JOBS, 0));
        assert!(is_enough(limits::FIRE_JOBS - limits::CATCH_UP_JOBS + 1, 0));
        assert!(!is_enough(0, limits::FIRE_RECORDS - limits::TIMER_RECORDS));
        assert!(is_enough(0, limits::FIRE_RECORDS - limits::TIMER_RECORDS + 1));
    }
}
