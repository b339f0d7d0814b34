//! Timers: rules that enqueue a job for each slot, each slot once.
//!
//! A timer is one row with its next slot. Whoever comes first when that is ripe asks [`fire`] what follows, and writes
//! the answer in one go: jobs, records of slots, and the timer with its next slot. There is no leader: the row is the
//! point where all meet.

mod edit;
mod explain;
mod fire;
mod on_record;
mod overlap;
mod passed;
mod policy;
mod slot;
#[cfg(test)]
mod tests;
mod wish;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::{
    Args, Due, Head, Invalid, JobId, Key, Kind, LimitKey, Name, NewJob, OrderingKey, Priority, QueueName,
    Terms, Timestamp, limits,
};

pub use edit::{Edited, edit};
pub use explain::{TimerReason, explain_timer};
pub use fire::{Firing, Open, fire, fire_within};
pub use policy::{CatchUp, OnEdit, Overlap, Policies};
pub use slot::{Fate, Origin, Skipped, SlotRecord, TimerSlot};
pub use wish::{Past, Refused, backfill, past_slots, pause, remove, resume, start, trigger};

/// A timer that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTimer {
    /// Its name: one a store.
    pub name: Name,
    /// When its slots are.
    pub schedule: Schedule,
    /// What is enqueued for each.
    pub job: TimerJob,
    /// All else that was agreed.
    pub policies: Policies,
    /// The version of the program that declares it: a lower one does not change what a higher one declared.
    pub revision: u64,
}

/// What a timer enqueues.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerJob {
    /// Its type.
    pub kind: Kind,
    /// Where it waits.
    pub queue: QueueName,
    /// What its handler is given.
    pub args: Args,
    /// Its place among the due jobs of its queue.
    pub priority: Priority,
    /// All else that was agreed.
    pub terms: Arc<Terms>,
}

/// A timer as a store has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// What was agreed.
    pub agreed: Arc<NewTimer>,
    /// How often it has been changed: tells one agreement from another.
    pub version: u64,
    /// When it was first set.
    pub created: Timestamp,
    /// When it was last set to something else.
    pub changed: Timestamp,
    /// Its next slot; `None` if there is none.
    pub next: Option<Timestamp>,
    /// The last slot of its schedule that was decided.
    pub decided: Option<Timestamp>,
    /// When a job of it was last enqueued.
    pub fired: Option<Timestamp>,
    /// How much later than its instant the last slot of its schedule that got a job got it.
    pub lateness: Option<Duration>,
    /// Jobs by its schedule since that has its rule, its zone and its number of times.
    pub runs: u64,
    /// The last slot of its schedule that was skipped, and why. It need not be the last that was decided.
    pub last_skip: Option<(Timestamp, Skipped)>,
    /// Its jobs that had not ended when somebody last decided a slot of it or did something about it, the oldest first:
    /// each of them may have ended since.
    pub open: Vec<JobId>,
    /// Who does not want it to fire at present.
    pub paused: Option<Pause>,
}

/// A timer is not to fire at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// Why, for people.
    pub reason: String,
}

impl NewTimer {
    /// Accepts a timer within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        self.policies.check()?;
        self.schedule.check_counts()?;
        if self.schedule.follows_runs() {
            self.policies.check_of_wait()?;
        }
        self.job.terms.check()?;
        let refuse = |field, found, allowed| Err(Invalid::new(field, found, allowed));
        if self.job.terms.unique.is_some() {
            return refuse("job.unique", "a unique key", "none; the runs of a schedule are already unique");
        }
        if self.job.terms.after.is_some() {
            return refuse("job.after_jobs", "jobs to wait for", "none; each run creates a new job");
        }
        if self.job.terms.slot.is_some() {
            return refuse("job.slot", "a slot", "none; it is set for each run");
        }
        if self.policies.overlap.at_once().is_none() && self.job.terms.ordering.is_some() {
            let allowed = "none, or the overlap policy `allow`; otherwise the jobs of a schedule already run one at a time";
            return refuse("job.ordering_key", "an ordering key", allowed);
        }
        if self.policies.overlap.at_once().is_some() && self.job.terms.limit.is_some() {
            let allowed = "none with the overlap policy `allow`, which uses the schedule's own limit key";
            return refuse("job.limit_key", "a limit key", allowed);
        }
        Ok(())
    }

    /// Refuses a timer of which no slot is left: it would never fire. Whoever sets what is there already is not asked.
    ///
    /// # Errors
    /// Names the schedule.
    pub fn check_left(&self, now: Timestamp) -> Result<(), Invalid> {
        if !self.schedule.fires_within(now, limits::FIRED_RUN_STEPS) {
            let found = format_args!("`{}`, whose next runs take too long to find", self.schedule);
            let allowed = "rules that match more often, or fewer skipped days";
            return Err(Invalid::new("schedule", found, allowed));
        }
        if fire::first_slot(self, None, now).is_some() {
            return Ok(());
        }
        let allowed = format_args!("a schedule with a run after {now}");
        Err(Invalid::new("schedule", format_args!("`{}`, which has ended", self.schedule), allowed))
    }

    /// When a slot of it is due: its instant, put off by the jitter.
    fn due(&self, slot: Timestamp) -> Timestamp {
        self.schedule.due(self.name.as_str(), slot)
    }

    /// The job for a slot.
    #[must_use]
    pub fn job_for(&self, slot: &TimerSlot) -> NewJob {
        let job = &self.job;
        let mut terms = Terms::clone(&job.terms);
        let key = Key::of_timer(&self.name);
        // The jobs of a backfill stand in a line of their own, so that those of slots that come meanwhile do not wait
        // for all of them. What holds both is the limit, and the priority lets those of the slots go first.
        let is_beside = slot.origin == Origin::Backfill && terms.ordering.is_none() && terms.limit.is_none();
        let line = if is_beside { Key::of_backfill(&self.name) } else { key.clone() };
        match self.policies.overlap.at_once() {
            None if cfg!(mutant = "timer-jobs-unordered") => {}
            // The limit of one besides the order: jobs of before an edit may have been brought under `Allow`, where
            // nothing but the limit holds them back.
            None => {
                terms.ordering = Some(OrderingKey { key: line, head: Head::Block });
                terms.limit.get_or_insert(LimitKey { key, most: Some(1) });
            }
            most => terms.limit = Some(LimitKey { key, most }),
        }
        terms.slot = Some(slot.clone());
        let of = if cfg!(mutant = "slot-known-by-firing") { slot.fired } else { slot.at };
        NewJob {
            id: JobId::of_slot(&slot.timer, of, slot.origin),
            kind: job.kind.clone(),
            queue: job.queue.clone(),
            args: job.args.clone(),
            priority: if is_beside { job.priority.lower() } else { job.priority },
            due: Due::Now,
            terms: Arc::new(terms),
        }
    }
}

impl Timer {
    /// The timer that a store keeps when it accepts this one.
    #[must_use]
    pub fn accepted(new: NewTimer, now: Timestamp) -> Self {
        let next = fire::first_slot(&new, None, now);
        Self {
            agreed: Arc::new(new),
            version: 1,
            created: now,
            changed: now,
            next,
            decided: None,
            fired: None,
            lateness: None,
            runs: 0,
            last_skip: None,
            open: Vec::new(),
            paused: None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.agreed.name
    }

    /// When somebody has to look at it; `None` if nothing comes by itself.
    #[must_use]
    pub fn wake(&self) -> Option<Timestamp> {
        if self.paused.is_some() {
            return None;
        }
        // While a job runs from whose end it counts, what it has for its next slot is the next look, which no jitter
        // puts off.
        let is_look = self.agreed.schedule.follows_runs() && !self.open.is_empty();
        self.next.map(|next| if is_look { next } else { self.agreed.due(next) })
    }

    /// Whether it has brought as many jobs as it may.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.agreed.schedule.bounds().most_runs.is_some_and(|most| self.runs >= most)
    }

    /// Slots begin anew behind the last that was decided, so that none comes twice. Only what was decided by a clock
    /// that was far ahead is forgotten, for the timer would be silent until then; no slot of it gets a second job, since
    /// records and jobs are told apart by their slots.
    fn forget_what_was_ahead(&mut self, now: Timestamp) {
        self.decided = self.decided.filter(|decided| decided.since(now) <= limits::CLOCK_AHEAD);
    }

    /// Takes note of a job that was enqueued for it.
    fn opened(&mut self, job: JobId, now: Timestamp) {
        self.fired = Some(now);
        if self.open.len() < limits::OPEN_JOBS && !self.open.contains(&job) {
            self.open.push(job);
        }
    }
}
