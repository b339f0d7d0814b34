//! Slots that are on record already: somebody removed a timer and set it again while the clock was put back, or a reply
//! was lost and the request is repeated. The first decision stays. Also slots whose job IDs belong to other jobs.

use std::collections::BTreeSet;

use super::fire::{Firing, IN_TIME};
use super::passed::TICK;
use super::{Fate, Origin, Skipped, SlotRecord, Timer, TimerSlot};
use crate::schedule::Schedule;
use crate::{Job, JobId, NewJob, Timestamp};

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

    /// Skips the slots whose job IDs other jobs have, and returns these IDs. Their jobs then have to be [taken
    /// back](Self::take_back). `there` are the jobs in the store that have IDs of its jobs.
    ///
    /// A job of the same slot is not another one: its record was pruned, or was never copied.
    pub fn skip_taken(&mut self, there: &[Job]) -> BTreeSet<JobId> {
        let is_of = |job: &Job, new: &NewJob| match (&job.terms.slot, &new.terms.slot) {
            (Some(slot), Some(of)) => slot.is_same_run(of),
            (None | Some(_), _) => false,
        };
        let is_taken = |new: &&NewJob| there.iter().any(|job| job.id == new.id && !is_of(job, new));
        let taken: BTreeSet<JobId> = self.jobs.iter().filter(is_taken).map(|new| new.id).collect();
        for record in &mut self.records {
            let job = match record.fate {
                Fate::Ran { job } => job,
                // The job of that slot would have stood for these.
                Fate::Coalesced { into } => JobId::of_slot(&record.timer, into, record.origin),
                Fate::Skipped { .. } => continue,
            };
            if !taken.contains(&job) {
                continue;
            }
            let why = Skipped::IdTaken { job };
            if record.origin == Origin::Schedule {
                self.timer.last_skip = Some((record.last, why.clone()));
            }
            record.fate = Fate::Skipped { why };
        }
        taken
    }

    /// Removes the jobs of slots that were on record before, or whose IDs belong to other jobs. These jobs are not
    /// enqueued, are not counted, and cancel nothing. `before` is the timer before the firing.
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
