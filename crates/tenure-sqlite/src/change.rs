//! What people change about jobs.

use rusqlite::{Result, params};
use tenure_core::{
    Cancel, CancelRequest, Edit, JobId, Priority, QueueName, State, Unique, Window, limits, redo,
};
use tenure_store::{Change, ChangeOutcome, Changed, Filter, Happening, Order, Selection, Values, parts};

use crate::fault::is_unreadable;
use crate::listing::{WalkAsk, walk};
use crate::rows::{Stored, write_standing};
use crate::value;
use crate::writing::Writing;

impl Writing<'_> {
    /// Changes each selected job by itself.
    pub(crate) fn change(&mut self, change: &Change, selection: &Selection) -> Result<Changed> {
        match selection {
            Selection::Ids(ids) => {
                let mut outcomes = Vec::with_capacity(ids.len());
                for id in ids {
                    outcomes.push((*id, self.find_and_change(change, *id)?));
                }
                Ok(Changed { outcomes, next: None })
            }
            Selection::Matching { filter, after } => self.change_matching(change, filter, *after),
        }
    }

    fn change_matching(
        &mut self,
        change: &Change,
        filter: &Filter,
        after: Option<tenure_store::Cursor>,
    ) -> Result<Changed> {
        // A walk is led by what the file says.
        self.write_line()?;
        self.flush_keys()?;
        self.memory.lanes.flush(self.conn)?;
        let (order, now) = (Order::OldestFirst, self.now);
        // Each job is read once more when it is changed: a step could have half a gigabyte of args and results.
        let (at_most, values) = (limits::CHANGE_JOBS, Values::Omitted);
        let walk = walk(self.conn, &WalkAsk { filter, order, after, at_most, now, values })?;
        let mut outcomes = Vec::with_capacity(walk.found.len());
        for stored in walk.found {
            let id = stored.job.id;
            outcomes.push((id, self.find_and_change(change, id)?));
        }
        Ok(Changed { outcomes, next: walk.next })
    }

    fn find_and_change(&mut self, change: &Change, id: JobId) -> Result<ChangeOutcome> {
        match self.find(id) {
            Ok(Some(stored)) => self.change_one(change, stored),
            Ok(None) => Ok(ChangeOutcome::NotFound),
            Err(error) if is_unreadable(&error) => {
                tracing::error!(%id, %error, "cannot change an unreadable job");
                Ok(ChangeOutcome::RefusedUnreadable)
            }
            Err(error) => Err(error),
        }
    }

    fn change_one(&mut self, change: &Change, stored: Stored) -> Result<ChangeOutcome> {
        match change {
            Change::Cancel { grace, reason } => {
                self.cancel(stored, CancelRequest::new(self.now, *grace, reason))
            }
            Change::Redo => self.redo(stored),
            Change::Delete => self.delete(&stored),
            Change::Move(queue) => self.change_waiting(stored, |this, stored, _| this.move_to(stored, queue)),
            Change::Reprioritise(priority) => {
                self.change_waiting(stored, |this, stored, _| this.reprioritise(stored, *priority))
            }
            Change::Reschedule(due) => {
                let due = due.at(self.now);
                self.change_waiting(stored, |this, stored, why| {
                    this.reschedule(stored, State::Waiting { due, why })
                })
            }
            Change::Edit(edit) if edit.comes_too_late(&stored.job) => Ok(ChangeOutcome::RefusedChanged),
            Change::Edit(edit) => self.change_waiting(stored, |this, stored, _| this.edit(stored, edit)),
        }
    }

    fn cancel(&mut self, mut stored: Stored, request: CancelRequest) -> Result<ChangeOutcome> {
        match Cancel::decide(&stored.job, request) {
            Cancel::Ends(transition) => {
                self.enter(stored, *transition)?;
                Ok(ChangeOutcome::Done)
            }
            Cancel::Asks(request) => {
                stored.job.cancel = Some(request);
                write_standing(self.conn, &stored)?;
                self.call_asked()?;
                self.tell(stored.lane, stored.job.id, || Happening::AskedToStop)?;
                Ok(ChangeOutcome::Asked)
            }
            Cancel::AlreadyAsked | Cancel::AlreadyEnded(tenure_core::End::Cancelled) => {
                Ok(ChangeOutcome::Already)
            }
            Cancel::AlreadyEnded(tenure_core::End::Succeeded | tenure_core::End::Failed) => {
                Ok(ChangeOutcome::RefusedFinished)
            }
        }
    }

    fn redo(&mut self, stored: Stored) -> Result<ChangeOutcome> {
        let Some(transition) = redo(&stored.job, self.now) else {
            return Ok(ChangeOutcome::RefusedUnfinished);
        };
        if let Some(unique @ Unique { window: Window::WhileUnfinished, key, .. }) = stored.job.terms.unique {
            match self.holder_of(key)? {
                Some(holder) if holder != stored.job.id => return Ok(ChangeOutcome::RefusedKeyHeld(holder)),
                Some(_) | None => self.take_key(&unique, value::signed(stored.job.seq), stored.job.id)?,
            }
        }
        self.enter(stored, transition)?;
        Ok(ChangeOutcome::Done)
    }

    fn delete(&mut self, stored: &Stored) -> Result<ChangeOutcome> {
        match stored.job.state {
            State::Running { .. } => return Ok(ChangeOutcome::RefusedRunning),
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => {}
        }
        self.free_key(&stored.job)?;
        self.remove(stored)?;
        self.tell(stored.lane, stored.job.id, || Happening::Deleted)?;
        Ok(ChangeOutcome::Done)
    }

    fn change_waiting(
        &mut self,
        stored: Stored,
        write: impl FnOnce(&mut Self, Stored, tenure_core::Why) -> Result<ChangeOutcome>,
    ) -> Result<ChangeOutcome> {
        match stored.job.state {
            State::Waiting { why, .. } | State::Blocked { why, .. } => write(self, stored, why),
            State::Running { .. } => Ok(ChangeOutcome::RefusedRunning),
            State::Finished { .. } => Ok(ChangeOutcome::RefusedFinished),
        }
    }

    fn move_to(&mut self, stored: Stored, queue: &QueueName) -> Result<ChangeOutcome> {
        if stored.job.queue == *queue {
            return Ok(ChangeOutcome::Already);
        }
        let lane = self.memory.lanes.of(self.conn, queue, &stored.job.kind)?;
        self.transfer(stored, |stored| {
            stored.lane = lane;
            stored.job.queue = queue.clone();
        })
    }

    fn reprioritise(&mut self, stored: Stored, priority: Priority) -> Result<ChangeOutcome> {
        if stored.job.priority == priority {
            return Ok(ChangeOutcome::Already);
        }
        self.transfer(stored, |stored| stored.job.priority = priority)
    }

    fn reschedule(&mut self, mut stored: Stored, state: State) -> Result<ChangeOutcome> {
        self.uncount(&stored)?;
        stored.job.state = state;
        self.rewrite(&stored)?;
        if let State::Waiting { due, .. } = state {
            self.place(&stored, due)?;
        }
        self.settle_keys()?;
        if self.is_heard() {
            let name = self.name_now(&stored)?;
            self.tell_became(stored.lane, stored.job.id, name, None)?;
        }
        Ok(ChangeOutcome::Done)
    }

    /// One part after the other: each finds the job as the one before has left it.
    fn edit(&mut self, mut stored: Stored, edit: &Edit) -> Result<ChangeOutcome> {
        let (id, mut outcome) = (stored.job.id, ChangeOutcome::Already);
        if let Some(terms) = edit.terms(&stored.job.terms) {
            let seq = value::signed(stored.job.seq);
            self.untag(&stored.job)?;
            stored.job.terms = terms;
            self.tag(&stored.job.terms, seq)?;
            self.conn
                .prepare_cached("UPDATE job SET terms = ?2 WHERE seq = ?1")?
                .execute(params![seq, value::of_terms(&stored.job.terms)?])?;
            outcome = ChangeOutcome::Done;
        }
        for part in parts(edit) {
            let Some(stored) = self.find(id)? else { return Ok(outcome) };
            if self.change_one(&part, stored)? == ChangeOutcome::Done {
                outcome = ChangeOutcome::Done;
            }
        }
        Ok(outcome)
    }

    /// Changes where a waiting job waits, but not until when.
    fn transfer(&mut self, mut stored: Stored, edit: impl FnOnce(&mut Stored)) -> Result<ChangeOutcome> {
        let (State::Waiting { due, .. } | State::Blocked { due, .. }) = stored.job.state else {
            return Ok(ChangeOutcome::RefusedFinished);
        };
        let kept = self.unplace(&stored, due)?;
        edit(&mut stored);
        self.rewrite(&stored)?;
        self.place_again(kept, &stored, due)?;
        self.settle_keys()?;
        Ok(ChangeOutcome::Done)
    }

    /// Writes what was edited of a waiting job.
    fn rewrite(&self, stored: &Stored) -> Result<()> {
        if stored.begun {
            write_standing(self.conn, stored)?;
        }
        // The due of a job that was claimed before is in its standing.
        let first_due = stored.job.state.due().filter(|_| !stored.begun).map(|due| due.as_micros());
        self.conn
            .prepare_cached("UPDATE job SET lane = ?2, priority = ?3, due = ifnull(?4, due) WHERE seq = ?1")?
            .execute(params![
                value::signed(stored.job.seq),
                stored.lane,
                stored.job.priority.number(),
                first_due
            ])?;
        Ok(())
    }
}
