//! What follows from a slot that is ripe: jobs, records and the next slot.

use std::sync::Arc;
use std::time::Duration;

use super::overlap::{Room, make_room, taken};
use super::passed::Passed;
use super::{CatchUp, Fate, NewTimer, Origin, Overlap, Policies, Skipped, SlotRecord, Timer, TimerSlot};
use crate::schedule::{Rule, Search, Steps};
use crate::{JobId, NewJob, Timestamp, limits};

/// A slot that got its job within so much of its time was not missed.
pub(super) const IN_TIME: Duration = Duration::from_secs(60);
/// How often it is looked whether a job has ended from whose end the next slot is counted.
const LOOKS: u32 = 10;
const SHORTEST_LOOK: Duration = Duration::from_millis(200);
/// Its end is noticed within this part of the time that it took, and in any case within [`IN_TIME`].
const LOOKS_OF_A_RUN: u32 = 60;

/// What a store knows of the jobs that a timer has open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// Those that have not ended, in their order.
    pub unfinished: Vec<JobId>,
    /// When the last of the others ended.
    pub ended: Option<Timestamp>,
}

/// What a store writes in one go because a slot was ripe.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The timer from now on.
    pub timer: Timer,
    /// What became of the slots.
    pub records: Vec<SlotRecord>,
    /// The jobs to be enqueued.
    pub jobs: Vec<NewJob>,
    /// The jobs to be cancelled before that.
    pub cancel: Vec<JobId>,
}

/// The first slot of a timer that is set now, behind the last that was decided.
pub(super) fn first_slot(new: &NewTimer, decided: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let from = match new.schedule.rule() {
        // An instant that comes while its timer is being set is meant as well.
        Rule::At(_) => now.before(IN_TIME),
        Rule::Cron(_)
        | Rule::Times(_)
        | Rule::Every(_)
        | Rule::Delay(_)
        | Rule::Rrule(_)
        | Rule::AnyOf(_) => now,
    };
    new.schedule.next_after(decided.map_or(from, |decided| decided.max(from)))
}

/// Decides all slots of a timer that are ripe.
///
/// No slot is decided if none is ripe. However many are, the answer is bounded. Afterwards none is, but where a jitter lets
/// many slots overtake one another, and where the job has ended from whose end a wait is counted: then the next look
/// decides what is left.
#[must_use]
pub fn fire(timer: &Timer, open: &Open, now: Timestamp) -> Firing {
    fire_within(timer, open, now, &Steps::new(limits::FIRING_STEPS))
}

/// Like [`fire`], in so many steps. With too few, rules whose next run takes too long to find are ignored.
#[must_use]
pub fn fire_within(timer: &Timer, open: &Open, now: Timestamp, steps: &Steps) -> Firing {
    let mut firing = Firing::of_within(timer, open, now, steps);
    let Some(first) = timer.next.filter(|_| timer.wake().is_some_and(|wake| wake <= now)) else {
        return firing;
    };
    if timer.agreed.schedule.follows_runs() {
        firing.after_end(now, steps);
    } else {
        firing.on_schedule(first, now, steps);
    }
    firing
}

impl Timer {
    /// Whoever looks first after its last job has ended counts the next slot from that end, whatever else brings them
    /// here: later nobody knows it any more. While one runs, what the row has for its next slot is the next look.
    fn count_from_end(&mut self, had_open: bool, ended: Option<Timestamp>, now: Timestamp, steps: &Steps) {
        let Some(next) = self.next else { return };
        let after = |end| Search::for_firing(&self.agreed.schedule, steps).next_after(end);
        self.next = if had_open && self.open.is_empty() {
            // A job that is gone has ended, and nobody knows when.
            after(ended.map_or(now, |ended| ended.min(now)))
        } else {
            // No more than one wait away, so that a clock that was ahead once does not silence it.
            Some(after(now).map_or(next, |latest| next.min(latest)))
        };
    }
}

impl Firing {
    /// Gives its jobs to the client that asked for them.
    #[must_use]
    pub fn owned_by(mut self, owner: Option<String>) -> Self {
        if owner.is_some() {
            for job in &mut self.jobs {
                Arc::make_mut(&mut job.terms).owner.clone_from(&owner);
            }
        }
        self
    }

    pub(super) fn of(timer: &Timer, open: &Open, now: Timestamp) -> Self {
        Self::of_within(timer, open, now, &Steps::new(limits::FIRING_STEPS))
    }

    fn of_within(timer: &Timer, open: &Open, now: Timestamp, steps: &Steps) -> Self {
        let mut timer = timer.clone();
        let had_open = !timer.open.is_empty();
        timer.open.clone_from(&open.unfinished);
        if timer.agreed.schedule.follows_runs() {
            timer.count_from_end(had_open, open.ended, now, steps);
        }
        Self { timer, records: Vec::new(), jobs: Vec::new(), cancel: Vec::new() }
    }

    fn on_schedule(&mut self, first: Timestamp, now: Timestamp, steps: &Steps) {
        let agreed = Arc::clone(&self.timer.agreed);
        let passed = Passed::ripe(&agreed, first, now, steps);
        self.decide(&passed, now);
        self.timer.next = passed.next().filter(|_| !self.timer.is_spent());
    }

    /// Decides slots that have passed.
    pub(super) fn decide(&mut self, passed: &Passed<'_>, now: Timestamp) {
        let policies = self.timer.agreed.policies;
        let start = match policies.max_lateness {
            Some(most) => self.skip_late(passed, passed.first, now.before(most), Skipped::TooLate, now),
            None => Some(passed.first),
        };
        let start = start.and_then(|start| match policies.catch_up {
            CatchUp::Skip => self.skip_late(passed, start, now.before(IN_TIME), Skipped::Missed, now),
            CatchUp::One | CatchUp::All { .. } => Some(start),
        });
        if let Some(start) = start {
            self.bring(passed, start, now);
        }
        self.timer.decided = Some(passed.last);
    }

    /// Skips the slots from one of them that were due before an instant; answers the first that was not.
    fn skip_late(
        &mut self,
        passed: &Passed<'_>,
        start: Timestamp,
        limit: Timestamp,
        why: Skipped,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let left = passed.first_due_from(limit);
        if left.is_some_and(|left| left <= start) {
            return Some(start);
        }
        let last = left.map_or(passed.last, |left| passed.last_before(left));
        if !(cfg!(mutant = "missed-unrecorded") && why == Skipped::Missed) {
            self.note_range(passed, start, last, Fate::Skipped { why }, now);
        }
        left
    }

    /// Brings the jobs of the slots from one of them on, as many as are wanted.
    fn bring(&mut self, passed: &Passed<'_>, start: Timestamp, now: Timestamp) {
        let Policies { catch_up, overlap, .. } = self.timer.agreed.policies;
        let most = match catch_up {
            // Of jobs that cancel one another only the last is worth enqueueing.
            CatchUp::Skip | CatchUp::All { .. } if overlap == Overlap::CancelPrevious => None,
            CatchUp::One => None,
            CatchUp::Skip => Some(limits::CATCH_UP),
            CatchUp::All { most } => Some(u64::from(most)),
        };
        let Some(most) = most else { return self.bring_one_for_all(passed, start, now) };
        let wanted = passed.latest(start, usize::try_from(most).unwrap_or(1).max(1));
        if let Some(&from) = wanted.first().filter(|from| **from > start) {
            let fate = Fate::Skipped { why: Skipped::TooMany };
            self.note_range(passed, start, passed.last_before(from), fate, now);
        }
        for slot in wanted {
            if self.timer.is_spent() {
                // What the schedule still had to bring when it had brought enough is no slot any more.
                break;
            }
            if let Some(job) = taken(&self.timer) {
                // No room comes back within one decision: what is left shares a record.
                self.note_range(passed, slot, passed.last, Fate::Skipped { why: Skipped::Busy { job } }, now);
                break;
            }
            self.bring_one(slot, Origin::Schedule, false, now);
        }
    }

    /// Brings the job of the last slot, which stands for the others; without room for it none stands for any.
    fn bring_one_for_all(&mut self, passed: &Passed<'_>, start: Timestamp, now: Timestamp) {
        let into = passed.last;
        if let Some(job) = taken(&self.timer) {
            return self.note_range(passed, start, into, Fate::Skipped { why: Skipped::Busy { job } }, now);
        }
        let stands_for_others = start < into;
        if stands_for_others {
            self.note_range(passed, start, passed.last_before(into), Fate::Coalesced { into }, now);
        }
        self.bring_one(into, Origin::Schedule, stands_for_others, now);
    }

    /// Brings the job of one slot, or skips it because of jobs that have not ended.
    pub(super) fn bring_one(
        &mut self,
        at: Timestamp,
        origin: Origin,
        past_due: bool,
        now: Timestamp,
    ) -> Fate {
        let by_schedule = origin == Origin::Schedule;
        let at = if cfg!(mutant = "slot-from-now") { now } else { at };
        let fate = match make_room(&mut self.timer, &mut self.cancel) {
            Room::Free => {
                let past_due = past_due || (by_schedule && now.since(self.timer.agreed.due(at)) > IN_TIME);
                let slot = TimerSlot { timer: self.timer.name().clone(), at, fired: now, origin, past_due };
                let job = self.timer.agreed.job_for(&slot);
                let id = job.id;
                if by_schedule {
                    self.timer.runs += 1;
                    self.timer.lateness = Some(slot.lateness());
                }
                self.timer.opened(id, now);
                self.jobs.push(job);
                Fate::Ran { job: id }
            }
            Room::Taken { by } => Fate::Skipped { why: Skipped::Busy { job: by } },
        };
        self.record(SlotRecord::of_one(self.timer.name(), at, origin, fate.clone(), now));
        fate
    }

    pub(super) fn note_range(
        &mut self,
        passed: &Passed<'_>,
        first: Timestamp,
        last: Timestamp,
        fate: Fate,
        now: Timestamp,
    ) {
        let (timer, count) = (self.timer.name().clone(), passed.count(first, last));
        let origin = Origin::Schedule;
        self.record(SlotRecord { timer, first, last, count, origin, fate, at: now });
    }

    fn record(&mut self, record: SlotRecord) {
        if let (Fate::Skipped { why }, Origin::Schedule) = (&record.fate, record.origin) {
            self.timer.last_skip = Some((record.last, why.clone()));
        }
        self.records.push(record);
    }

    /// The slot of a timer that counts from the end of its last job.
    fn after_end(&mut self, now: Timestamp, steps: &Steps) {
        let agreed = Arc::clone(&self.timer.agreed);
        let after = |end| Search::for_firing(&agreed.schedule, steps).next_after(end);
        if !self.timer.open.is_empty() {
            let whole = after(now).map_or(IN_TIME, |next| next.since(now));
            // One that runs for long is looked at less and less often.
            let so_far = self.timer.fired.map_or(Duration::ZERO, |fired| now.since(fired));
            let look = (whole / LOOKS).max(so_far / LOOKS_OF_A_RUN).clamp(SHORTEST_LOOK, IN_TIME);
            self.timer.next = Some(now.after(look));
            return;
        }
        let Some(slot) = self.timer.next.filter(|slot| agreed.due(*slot) <= now) else { return };
        // One slot has one record, even if the clock was put back since.
        self.timer.forget_what_was_ahead(now);
        let slot =
            self.timer.decided.map_or(slot, |decided| slot.max(decided.after(Duration::from_micros(1))));
        if slot > now {
            // It was put back behind the last slot, and not so far that this is forgotten.
            self.timer.next = Some(slot);
            return;
        }
        self.bring_one(slot, Origin::Schedule, false, now);
        self.timer.decided = Some(slot);
        self.timer.next = after(now).filter(|_| !self.timer.is_spent());
    }
}
