//! What people change about jobs.

use std::collections::BTreeMap;

use tenure_core::{
    Cancel, CancelRequest, End, JobId, Priority, QueueName, State, Unique, Why, Window, limits, redo,
};
use tenure_store::{Change, ChangeOutcome, Changed, Fault, Happening, Order, Selection};

use crate::link::Link;
use crate::listing::{self, Walk};
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const HOLDERS: &str = "SELECT key, id FROM unique_key
     WHERE key = ANY ($1) AND (until IS NULL OR until > $2) ORDER BY key FOR UPDATE";
const TAKE_KEY: &str = "INSERT INTO unique_key (key, seq, id, until) VALUES ($1, $2, $3, NULL)
     ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, id = excluded.id, until = excluded.until
     WHERE unique_key.id = excluded.id OR unique_key.until <= $4";
const REWRITE: &str = "UPDATE job SET lane = $2, priority = $3, due = coalesce($4, due) WHERE id = $1";

/// Changes each selected job by itself.
pub(crate) async fn change(
    link: &mut Link,
    change: &Change,
    selection: &Selection,
) -> Result<Changed, Fault> {
    let (ids, next) = match selection {
        Selection::Ids(ids) => (ids.clone(), None),
        Selection::Matching { filter, after } => {
            let now = link.database.time.now();
            let walk =
                Walk { filter, order: Order::OldestFirst, after: *after, at_most: limits::CHANGE_JOBS, now };
            let found = listing::walk(link, &walk).await?;
            (found.jobs.into_iter().map(|job| job.id).collect(), found.next)
        }
    };
    let mut outcomes = Vec::with_capacity(ids.len());
    for ids in ids.chunks(limits::CHANGE_JOBS) {
        outcomes.extend(change_some(link, change, ids).await?);
    }
    Ok(Changed { outcomes, next })
}

async fn change_some(
    link: &mut Link,
    change: &Change,
    ids: &[JobId],
) -> Result<Vec<(JobId, ChangeOutcome)>, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_change(link, change, ids).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_change(
    link: &mut Link,
    change: &Change,
    ids: &[JobId],
) -> Result<Vec<(JobId, ChangeOutcome)>, Fault> {
    let mut reads = rows::lock(ids);
    reads.push(rows::by_ids(ids.iter().copied()));
    let (mut writing, read) = Writing::begin(link, Gate::Open, reads).await?;
    let mut jobs: BTreeMap<JobId, Stored> = BTreeMap::new();
    for row in read.last().into_iter().flatten() {
        let stored = rows::stored(row)?;
        jobs.insert(stored.job.id, stored);
    }
    if let Change::Move(queue) = change {
        // A job that is not moved names no new queue.
        let moves = |stored: &&Stored| {
            stored.job.queue != *queue
                && matches!(stored.job.state, State::Waiting { .. } | State::Blocked { .. })
        };
        let moved = jobs.values().filter(moves);
        let missing = moved.filter(|stored| writing.lane(queue, &stored.job.kind).is_none());
        let missing = missing.map(|stored| (queue.clone(), stored.job.kind.clone())).collect();
        writing.make_lanes(missing).await?;
    }
    let mut outcomes = Vec::with_capacity(ids.len());
    for id in ids {
        // What is changed twice is looked at again as the first change has left it.
        let outcome = match jobs.remove(id) {
            None => ChangeOutcome::NotFound,
            Some(stored) => {
                let (outcome, after) = writing.change_one(change, stored).await?;
                jobs.extend(after.map(|after| (*id, after)));
                outcome
            }
        };
        outcomes.push((*id, outcome));
    }
    writing.commit().await?;
    Ok(outcomes)
}

/// What came of it, and the job as it is now; `None` if it is gone.
type Done = (ChangeOutcome, Option<Stored>);

impl Writing<'_> {
    async fn change_one(&mut self, change: &Change, stored: Stored) -> Result<Done, Fault> {
        match change {
            Change::Cancel { grace, reason } => {
                self.cancel(stored, CancelRequest::new(self.now, *grace, reason))
            }
            Change::Redo => self.redo(stored).await,
            Change::Delete => self.delete(stored),
            Change::Move(queue) => self.if_waiting(stored, |this, stored, _| this.move_to(stored, queue)),
            Change::Reprioritise(priority) => {
                self.if_waiting(stored, |this, stored, _| this.reprioritise(stored, *priority))
            }
            Change::Reschedule(due) => {
                let due = due.at(self.now);
                self.if_waiting(stored, |this, stored, why| this.reschedule(stored, due, why))
            }
        }
    }

    fn cancel(&mut self, mut stored: Stored, request: CancelRequest) -> Result<Done, Fault> {
        match Cancel::decide(&stored.job, request) {
            Cancel::Ends(transition) => Ok((ChangeOutcome::Done, Some(self.enter(stored, *transition)?))),
            Cancel::Asks(request) => {
                stored.job.cancel = Some(request);
                self.sheet.standing(&stored);
                self.news.asked = true;
                self.tell(&stored.job, || Happening::AskedToStop);
                Ok((ChangeOutcome::Asked, Some(stored)))
            }
            Cancel::AlreadyAsked | Cancel::AlreadyEnded(End::Cancelled) => {
                Ok((ChangeOutcome::Already, Some(stored)))
            }
            Cancel::AlreadyEnded(End::Succeeded | End::Failed) => {
                Ok((ChangeOutcome::RefusedFinished, Some(stored)))
            }
        }
    }

    async fn redo(&mut self, stored: Stored) -> Result<Done, Fault> {
        let Some(transition) = redo(&stored.job, self.now) else {
            return Ok((ChangeOutcome::RefusedUnfinished, Some(stored)));
        };
        if let Some(Unique { window: Window::WhileUnfinished, key, .. }) = stored.job.terms.unique {
            let holders = Query::new(HOLDERS).with(vec![key.0.to_vec()]).with(self.now.as_micros());
            let holder =
                self.read(vec![holders]).await?.iter().flatten().next().map(|row| value::job_id(row, 1));
            if let Some(holder) = holder.filter(|holder| *holder != stored.job.id) {
                return Ok((ChangeOutcome::RefusedKeyHeld(holder), Some(stored)));
            }
            let take = Query::new(TAKE_KEY)
                .with(key.0.to_vec())
                .with(value::signed(stored.job.seq))
                .with(value::of_job(stored.job.id))
                .with(self.now.as_micros());
            self.write(take)?;
        }
        Ok((ChangeOutcome::Done, Some(self.enter(stored, transition)?)))
    }

    fn delete(&mut self, stored: Stored) -> Result<Done, Fault> {
        match stored.job.state {
            State::Running { .. } => return Ok((ChangeOutcome::RefusedRunning, Some(stored))),
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => {}
        }
        self.free_key(&stored.job)?;
        self.remove(std::slice::from_ref(&stored))?;
        self.tell(&stored.job, || Happening::Deleted);
        Ok((ChangeOutcome::Done, None))
    }

    fn if_waiting(
        &mut self,
        stored: Stored,
        write: impl FnOnce(&mut Self, Stored, Why) -> Result<Done, Fault>,
    ) -> Result<Done, Fault> {
        match stored.job.state {
            State::Waiting { why, .. } | State::Blocked { why, .. } => write(self, stored, why),
            State::Running { .. } => Ok((ChangeOutcome::RefusedRunning, Some(stored))),
            State::Finished { .. } => Ok((ChangeOutcome::RefusedFinished, Some(stored))),
        }
    }

    fn move_to(&mut self, stored: Stored, queue: &QueueName) -> Result<Done, Fault> {
        if stored.job.queue == *queue {
            return Ok((ChangeOutcome::Already, Some(stored)));
        }
        let Some(lane) = self.lane(queue, &stored.job.kind) else {
            return Err(Fault::Unavailable("a lane could not be made".to_owned()));
        };
        self.news.due = true;
        self.transfer(stored, |stored| {
            stored.lane = lane;
            stored.job.queue = queue.clone();
        })
    }

    fn reprioritise(&mut self, stored: Stored, priority: Priority) -> Result<Done, Fault> {
        if stored.job.priority == priority {
            return Ok((ChangeOutcome::Already, Some(stored)));
        }
        self.transfer(stored, |stored| stored.job.priority = priority)
    }

    fn reschedule(
        &mut self,
        mut stored: Stored,
        due: tenure_core::Timestamp,
        why: Why,
    ) -> Result<Done, Fault> {
        self.uncount(&stored);
        stored.job.state = State::Waiting { due, why };
        self.rewrite(&stored, Some(due))?;
        self.place(&mut stored, due);
        self.tell_became(&stored.job, stored.job.state.name(self.now), None);
        Ok((ChangeOutcome::Done, Some(stored)))
    }

    /// Changes where a waiting job waits, but not until when.
    fn transfer(&mut self, mut stored: Stored, edit: impl FnOnce(&mut Stored)) -> Result<Done, Fault> {
        let Some(due) = stored.job.state.due() else {
            return Ok((ChangeOutcome::RefusedFinished, Some(stored)));
        };
        self.unplace(&stored, due);
        edit(&mut stored);
        self.rewrite(&stored, None)?;
        self.place_again(stored.kept, &mut stored, due);
        Ok((ChangeOutcome::Done, Some(stored)))
    }

    /// Writes what was edited of a waiting job.
    fn rewrite(&mut self, stored: &Stored, due: Option<tenure_core::Timestamp>) -> Result<(), Fault> {
        if stored.begun {
            self.sheet.standing(stored);
        }
        // The due of a job that was claimed before is in its standing.
        let first_due = due.filter(|_| !stored.begun).map(|due| due.as_micros());
        let rewrite = Query::new(REWRITE)
            .with(value::of_job(stored.job.id))
            .with(stored.lane)
            .with(value::of_priority(stored.job.priority))
            .with(first_due);
        self.write(rewrite)
    }
}
