//! Changing jobs from outside.

use tenure_core::{
    Cancel, CancelRequest, Edit, End, Job, JobId, Priority, QueueName, State, Timestamp, Window, limits, redo,
};

use super::rows::Rows;
use super::step::Step;
use crate::{Change, ChangeOutcome, Changed, Order, Selection, parts};

/// What a change comes to: the answer, and the step if there is one.
type Decision = (ChangeOutcome, Option<Step>);

impl Rows {
    /// Changes the selected jobs, each by itself.
    pub fn change(&mut self, change: &Change, selection: &Selection, now: Timestamp) -> Changed {
        let (ids, next) = match selection {
            Selection::Ids(ids) => (ids.clone(), None),
            Selection::Matching { filter, after } => {
                let (found, next, _) =
                    self.scan(filter, Order::OldestFirst, *after, limits::CHANGE_JOBS, now);
                (found.into_iter().map(|job| job.id).collect(), next)
            }
        };
        let outcomes = ids.into_iter().map(|id| (id, self.change_one(id, change, now))).collect();
        Changed { outcomes, next }
    }

    fn change_one(&mut self, id: JobId, change: &Change, now: Timestamp) -> ChangeOutcome {
        let Some(row) = self.find(id) else { return ChangeOutcome::NotFound };
        if let Change::Edit(edit) = change {
            let job = row.job.clone();
            return self.edit(&job, edit, now);
        }
        let seq = row.job.seq;
        let (outcome, step) = self.decide(&row.job, change, now);
        if let Some(step) = step {
            self.write(seq, step, now);
        }
        outcome
    }

    fn decide(&self, job: &Job, change: &Change, now: Timestamp) -> Decision {
        match change {
            Change::Cancel { grace, reason } => cancel(job, CancelRequest::new(now, *grace, reason)),
            Change::Redo => self.redo(job, now),
            Change::Delete => delete(job),
            Change::Move(queue) => while_waiting(job, || move_to(job, queue)),
            Change::Reprioritise(priority) => while_waiting(job, || reprioritise(job, *priority)),
            Change::Reschedule(due) => {
                while_waiting(job, || (ChangeOutcome::Done, Some(Step::Rescheduled(due.at(now)))))
            }
            // It is several changes.
            Change::Edit(_) => (ChangeOutcome::Already, None),
        }
    }

    /// One part after the other: each finds the job as the one before has left it.
    fn edit(&mut self, row: &Job, edit: &Edit, now: Timestamp) -> ChangeOutcome {
        if edit.comes_too_late(row) {
            return ChangeOutcome::RefusedChanged;
        }
        let (mut outcome, _) = while_waiting(row, || (ChangeOutcome::Already, None));
        if outcome != ChangeOutcome::Already {
            return outcome;
        }
        if let Some(terms) = edit.terms(&row.terms) {
            self.write(row.seq, Step::Agreed(terms), now);
            outcome = ChangeOutcome::Done;
        }
        for part in parts(edit) {
            if self.change_one(row.id, &part, now) == ChangeOutcome::Done {
                outcome = ChangeOutcome::Done;
            }
        }
        outcome
    }

    fn redo(&self, job: &Job, now: Timestamp) -> Decision {
        let Some(transition) = redo(job, now) else { return (ChangeOutcome::RefusedUnfinished, None) };
        let needed = job.terms.unique.filter(|unique| unique.window == Window::WhileUnfinished);
        let holder = needed.and_then(|unique| self.keys.holder(unique.key, now));
        match holder.filter(|holder| *holder != job.id) {
            Some(holder) => (ChangeOutcome::RefusedKeyHeld(holder), None),
            None => (ChangeOutcome::Done, Some(Step::Became(Box::new(transition)))),
        }
    }
}

fn cancel(job: &Job, request: CancelRequest) -> Decision {
    match Cancel::decide(job, request) {
        Cancel::Ends(transition) => (ChangeOutcome::Done, Some(Step::Became(transition))),
        Cancel::Asks(request) => (ChangeOutcome::Asked, Some(Step::Asked(request))),
        Cancel::AlreadyAsked | Cancel::AlreadyEnded(End::Cancelled) => (ChangeOutcome::Already, None),
        Cancel::AlreadyEnded(End::Succeeded | End::Failed) => (ChangeOutcome::RefusedFinished, None),
    }
}

fn delete(job: &Job) -> Decision {
    match job.state {
        State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => {
            (ChangeOutcome::Done, Some(Step::Deleted))
        }
        State::Running { .. } => (ChangeOutcome::RefusedRunning, None),
    }
}

fn while_waiting(job: &Job, change: impl FnOnce() -> Decision) -> Decision {
    match job.state {
        State::Waiting { .. } | State::Blocked { .. } => change(),
        State::Running { .. } => (ChangeOutcome::RefusedRunning, None),
        State::Finished { .. } => (ChangeOutcome::RefusedFinished, None),
    }
}

fn move_to(job: &Job, queue: &QueueName) -> Decision {
    if job.queue == *queue {
        return (ChangeOutcome::Already, None);
    }
    (ChangeOutcome::Done, Some(Step::Moved(queue.clone())))
}

fn reprioritise(job: &Job, priority: Priority) -> Decision {
    if job.priority == priority {
        return (ChangeOutcome::Already, None);
    }
    (ChangeOutcome::Done, Some(Step::Reprioritised(priority)))
}
