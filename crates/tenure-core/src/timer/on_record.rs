//! Slots that are on record already: somebody removed a timer and set it again while the clock was put back, or a reply
//! was lost and a wish comes once more. What was decided stays.

use std::collections::BTreeSet;

use super::fire::Firing;
use super::passed::TICK;
use super::{Origin, SlotRecord, Timer};
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
