//! Enqueueing: first every answer, then every row, so that a refused batch leaves nothing behind.

use std::collections::BTreeMap;

use tenure_core::{
    Cancel, CancelRequest, JobId, NewJob, OnConflict, QueueName, State, StateName, Timestamp, UniqueKey,
};

use super::rows::Rows;
use super::step::Step;
use crate::{Accepted, Enqueued, Refusal};

/// What the earlier jobs of a batch will have changed.
#[derive(Default)]
struct Plan<'a> {
    stored: BTreeMap<JobId, &'a NewJob>,
    holders: BTreeMap<UniqueKey, JobId>,
    /// How many more wait in each queue, and in a queue that jobs leave for another how many fewer.
    coming: BTreeMap<QueueName, i64>,
    /// Whether queues may take more than may wait in them.
    overfills: bool,
}

impl Rows {
    /// Stores a batch, or nothing of it.
    pub fn enqueue(&mut self, batch: &[NewJob], now: Timestamp) -> Enqueued {
        self.enqueue_by(batch, Plan::default(), now)
    }

    /// Stores the job of a slot: however many wait, a slot has its job.
    pub fn enqueue_slot(&mut self, job: &NewJob, now: Timestamp) {
        let plan = Plan { overfills: true, ..Plan::default() };
        self.enqueue_by(std::slice::from_ref(job), plan, now);
    }

    fn enqueue_by<'a>(&mut self, batch: &'a [NewJob], mut plan: Plan<'a>, now: Timestamp) -> Enqueued {
        let mut answers = Vec::with_capacity(batch.len());
        for (index, new) in batch.iter().enumerate() {
            match self.decide_new(&plan, new, now) {
                Ok(answer) => {
                    let left = self.left_by(&plan, answer).cloned();
                    plan.note(new, answer, left);
                    answers.push(answer);
                }
                Err(refusal) => return Enqueued::Refused { index, refusal },
            }
        }
        batch.iter().zip(&answers).for_each(|(new, answer)| self.keep_new(new, *answer, now));
        Enqueued::Stored(answers)
    }

    fn decide_new(&self, plan: &Plan<'_>, new: &NewJob, now: Timestamp) -> Result<Accepted, Refusal> {
        let answer = self.decide_key(plan, new, now)?;
        match answer {
            Accepted::New(_) => {
                self.find_awaited(plan, new)?;
                self.find_room(plan, new).map(|()| answer)
            }
            Accepted::Replaced { .. } => {
                self.find_awaited(plan, new)?;
                // Only a place in the same queue is one that it may take.
                let stays = self.left_by(plan, answer) == Some(&new.queue);
                if stays { Ok(answer) } else { self.find_room(plan, new).map(|()| answer) }
            }
            Accepted::Repeated(_) | Accepted::Existing(_) => Ok(answer),
        }
    }

    /// The queue in which a job waits that gives its place to another.
    fn left_by<'p>(&'p self, plan: &'p Plan<'_>, answer: Accepted) -> Option<&'p QueueName> {
        let Accepted::Replaced { old, .. } = answer else { return None };
        let planned = plan.stored.get(&old).map(|new| &new.queue);
        planned.or_else(|| self.find(old).map(|row| &row.job.queue))
    }

    /// Refuses a job if as many wait in its queue as may.
    fn find_room(&self, plan: &Plan<'_>, new: &NewJob) -> Result<(), Refusal> {
        let Some(most) = self.queues.get(&new.queue).and_then(|queue| queue.terms.max_depth) else {
            return Ok(());
        };
        let waiting = |state: &StateName| {
            matches!(state, StateName::Scheduled | StateName::Queued | StateName::Blocked)
        };
        let of_queue =
            self.counts.iter().filter(|((queue, _, state), _)| *queue == new.queue && waiting(state));
        let waits = of_queue.map(|(_, jobs)| *jobs).sum::<u64>();
        let waits = waits.saturating_add_signed(plan.coming.get(&new.queue).copied().unwrap_or(0));
        if waits >= most && !plan.overfills { Err(Refusal::QueueFull { most }) } else { Ok(()) }
    }

    /// Refuses a job that waits for one that is not there.
    fn find_awaited(&self, plan: &Plan<'_>, new: &NewJob) -> Result<(), Refusal> {
        let awaited = new.terms.after.iter().flat_map(|after| &after.jobs);
        let is_there = |id: &JobId| self.places.contains_key(id) || plan.stored.contains_key(id);
        awaited.copied().find(|id| !is_there(id)).map_or(Ok(()), |id| Err(Refusal::NoSuchJob(id)))
    }

    fn decide_key(&self, plan: &Plan<'_>, new: &NewJob, now: Timestamp) -> Result<Accepted, Refusal> {
        if let Some(repeats) = self.repeats(plan, new, now) {
            return if repeats { Ok(Accepted::Repeated(new.id)) } else { Err(Refusal::IdTaken(new.id)) };
        }
        let Some(unique) = &new.terms.unique else { return Ok(Accepted::New(new.id)) };
        let planned = plan.holders.get(&unique.key).copied();
        let Some(holder) = planned.or_else(|| self.keys.holder(unique.key, now)) else {
            return Ok(Accepted::New(new.id));
        };
        match unique.on_conflict {
            OnConflict::Return => Ok(Accepted::Existing(holder)),
            OnConflict::Reject => Err(Refusal::KeyHeld(holder)),
            OnConflict::Replace if plan.stored.contains_key(&holder) || self.waits(holder) => {
                Ok(Accepted::Replaced { id: new.id, old: holder })
            }
            OnConflict::Replace => Ok(Accepted::Existing(holder)),
        }
    }

    /// Whether the job that has this id already is the same; `None` if no job has it.
    fn repeats(&self, plan: &Plan<'_>, new: &NewJob, now: Timestamp) -> Option<bool> {
        let planned = || plan.stored.get(&new.id).map(|earlier| new.repeats(&earlier.accepted(0, now)));
        self.find(new.id).map(|row| new.repeats(&row.job)).or_else(planned)
    }

    fn waits(&self, id: JobId) -> bool {
        self.find(id)
            .is_some_and(|row| matches!(row.job.state, State::Waiting { .. } | State::Blocked { .. }))
    }

    fn keep_new(&mut self, new: &NewJob, answer: Accepted, now: Timestamp) {
        match answer {
            Accepted::New(_) => self.accept(new, now),
            Accepted::Replaced { id, old } => {
                self.end_replaced(old, id, now);
                self.accept(new, now);
            }
            Accepted::Repeated(_) | Accepted::Existing(_) => {}
        }
    }

    /// Cancels a waiting job in favour of another; its key goes to that one.
    fn end_replaced(&mut self, old: JobId, new: JobId, now: Timestamp) {
        let Some(row) = self.find(old) else { return };
        let reason = format!("replaced by job {new}");
        let request = CancelRequest::new(now, std::time::Duration::ZERO, &reason);
        if let Cancel::Ends(transition) = Cancel::decide(&row.job, request) {
            self.write(row.job.seq, Step::Became(transition), now);
        }
    }
}

impl<'a> Plan<'a> {
    fn note(&mut self, new: &'a NewJob, answer: Accepted, left: Option<QueueName>) {
        match answer {
            Accepted::New(id) | Accepted::Replaced { id, .. } => {
                *self.coming.entry(new.queue.clone()).or_default() += 1;
                if let Some(left) = left {
                    *self.coming.entry(left).or_default() -= 1;
                }
                self.stored.insert(id, new);
                self.holders.extend(new.terms.unique.as_ref().map(|unique| (unique.key, id)));
            }
            Accepted::Repeated(_) | Accepted::Existing(_) => {}
        }
    }
}
