//! Slots that are on record already: somebody removed a timer and set it again while the clock was put back, or a reply
//! was lost and a wish comes once more. What was decided stays.

use std::collections::BTreeSet;

use super::fire::{Firing, IN_TIME};
use super::passed::TICK;
use super::{Fate, Origin, SlotRecord, Timer, TimerSlot};
use crate::schedule::Schedule;
use crate::{JobId, NewJob, Timestamp};

impl SlotRecord {
    /// The same without its last slot, by the schedule whose slots they are; `None` if no other is left.
    #[must_use]
    pub fn without_last(&self, schedule: &Schedule) -> Option<Self> {
        if self.first == self.last {
            return None;
        }
        let last = schedule.latest(self.last.before(TICK))?.at;
        let count = self.count.map(|count| count.saturating_sub(1));
        (last >= self.first).then(|| Self { last, count, ..self.clone() })
    }
}

impl Firing {
    /// The slot whose job is to stand for earlier ones, if one is.
    ///
    /// If it is on record as one that got no job, it gets none now either: then whoever writes this lets the one
    /// [before it](Self::pass_by) stand for them, and asks again.
    #[must_use]
    pub fn stands_for_others(&self) -> Option<Timestamp> {
        self.records.iter().find_map(|record| match record.fate {
            Fate::Coalesced { into } => Some(into),
            Fate::Ran { .. } | Fate::Skipped { .. } => None,
        })
    }

    /// Lets the slot before the one whose job was to stand for earlier ones have its job in its place. `before` is the
    /// timer as it was.
    pub fn pass_by(&mut self, before: &Timer, now: Timestamp) {
        let is_coalesced = |record: &SlotRecord| matches!(record.fate, Fate::Coalesced { .. });
        let Some(place) = self.records.iter().position(is_coalesced) else { return };
        // The record of the job is the one behind that.
        let Some(gone) = self.records.get(place + 1).and_then(SlotRecord::job) else { return };
        let others = self.records.remove(place);
        let agreed = &before.agreed;
        let left = others.without_last(&agreed.schedule);
        let at = others.last;
        let past_due = left.is_some() || now.since(agreed.due(at)) > IN_TIME;
        let slot =
            TimerSlot { timer: before.name().clone(), at, fired: now, origin: Origin::Schedule, past_due };
        let job = agreed.job_for(&slot);
        self.timer.lateness = Some(slot.lateness());
        for id in self.timer.open.iter_mut().filter(|id| **id == gone) {
            *id = job.id;
        }
        let fate = Fate::Ran { job: job.id };
        self.records[place] = SlotRecord::of_one(before.name(), at, Origin::Schedule, fate, now);
        if let Some(left) = left {
            self.records.insert(place, SlotRecord { fate: Fate::Coalesced { into: at }, ..left });
        }
        for one in self.jobs.iter_mut().filter(|one| one.id == gone) {
            *one = job.clone();
        }
    }

    /// Takes back the jobs of slots that were on record before. They are not enqueued, so they do not count, and they
    /// cancel nothing. `before` is the timer as it was.
    pub fn take_back(&mut self, decided: &BTreeSet<JobId>, before: &Timer, now: Timestamp) {
        if decided.is_empty() {
            return;
        }
        let was_spent = self.timer.is_spent();
        let (gone, left): (Vec<NewJob>, Vec<NewJob>) =
            std::mem::take(&mut self.jobs).into_iter().partition(|job| decided.contains(&job.id));
        self.jobs = left;
        let timer = &mut self.timer;
        let runs = gone.iter().filter(|job| is_scheduled(job)).count();
        timer.runs = timer.runs.saturating_sub(u64::try_from(runs).unwrap_or(u64::MAX));
        timer.open.retain(|id| !decided.contains(id) || before.open.contains(id));
        if self.jobs.is_empty() {
            timer.fired = before.fired;
            self.cancel.clear();
        }
        if was_spent && !timer.is_spent() && timer.next.is_none() {
            let schedule = &timer.agreed.schedule;
            let from = timer.decided.filter(|_| !schedule.follows_runs()).unwrap_or(now);
            timer.next = schedule.next_after(from);
        }
    }
}

fn is_scheduled(job: &NewJob) -> bool {
    job.terms.slot.as_ref().is_some_and(|slot| slot.origin == Origin::Schedule)
}
