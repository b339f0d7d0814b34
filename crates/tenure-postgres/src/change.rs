//! What people change about jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Block, Cancel, CancelRequest, Edit, End, JobId, Priority, QueueName, State, Terms, Unique, Why, Window,
    limits, redo,
};
use tenure_store::{Change, ChangeOutcome, Changed, Fault, Happening, Order, Selection, Values, parts};

use crate::link::Link;
use crate::listing::{self, Walk};
use crate::query::Query;
use crate::rows::{self, Kept, Stored};
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const HOLDERS: &str = "SELECT key, id FROM unique_key
     WHERE key = ANY ($1) AND (until IS NULL OR until > $2) ORDER BY key FOR UPDATE";
const TAKE_KEY: &str = "INSERT INTO unique_key (key, seq, id, until) VALUES ($1, $2, $3, NULL)
     ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, id = excluded.id, until = excluded.until
     WHERE unique_key.id = excluded.id OR unique_key.until <= $4";
const TARGET: &str = "SELECT fair, coalesce(limit_to LIKE '%most%', false) FROM queue WHERE name = $1";
const AGREE: &str = "UPDATE job SET terms = $2 WHERE id = $1";
const UNTAG: &str = "DELETE FROM tag WHERE tag = ANY ($1) AND seq = $2";
const TAG: &str =
    "INSERT INTO tag (tag, seq, id) SELECT t, $2, $3 FROM unnest($1::text[]) t ON CONFLICT DO NOTHING";
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
            let (order, at_most, values) = (Order::OldestFirst, limits::CHANGE_JOBS, Values::Omitted);
            let walk = Walk { filter, order, after: *after, at_most, now, values };
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
    let (mut tries, mut gate) = (0, Gate::Open);
    loop {
        match try_change(link, gate, change, ids).await {
            Ok(Some(outcomes)) => return Ok(outcomes),
            Ok(None) => gate = Gate::Keys,
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
        }
    }
}

/// `None` if it has to be done under the lock of the gates.
async fn try_change(
    link: &mut Link,
    gate: Gate,
    change: &Change,
    ids: &[JobId],
) -> Result<Option<Vec<(JobId, ChangeOutcome)>>, Fault> {
    let look = rows::by_ids_with(Values::Omitted, ids.iter().copied());
    let (mut writing, read) = Writing::begin(link, gate, vec![look]).await?;
    // Whoever has the lock of the gates finds nothing locked by those who will wait for it.
    if writing.need_gate(&read)? {
        writing.roll_back().await?;
        return Ok(None);
    }
    let mut reads = rows::lock(ids);
    reads.push(rows::by_ids_with(values_for(change), ids.iter().copied()));
    let read = writing.read(reads).await?;
    let mut jobs: BTreeMap<JobId, Stored> = BTreeMap::new();
    let mut unreadable = BTreeSet::new();
    for row in read.last().into_iter().flatten() {
        match rows::stored(row) {
            Ok(stored) => drop(jobs.insert(stored.job.id, stored)),
            Err(fault) => {
                tracing::error!(%fault, "cannot change an unreadable job");
                unreadable.insert(value::job_id(row, 1));
            }
        }
    }
    if jobs.values().any(|stored| writing.needs_gate(stored)) {
        writing.roll_back().await?;
        return Ok(None);
    }
    let mut target = Target::default();
    if let Some(queue) = goes_to(change) {
        target = Target::of(&mut writing, queue).await?;
        if target.fair && gate != Gate::Keys {
            writing.roll_back().await?;
            return Ok(None);
        }
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
        // What is changed twice is looked at again as the first change has left it. The change of a job with keys may
        // have changed others.
        if unreadable.contains(id) {
            outcomes.push((*id, ChangeOutcome::RefusedUnreadable));
            continue;
        }
        let again = gate == Gate::Keys && !outcomes.is_empty();
        let stored = if again { writing.find(*id).await? } else { jobs.remove(id) };
        let outcome = match stored {
            None => ChangeOutcome::NotFound,
            Some(stored) => {
                let (outcome, after) = writing.change_one(change, target, stored).await?;
                jobs.extend(after.map(|after| (*id, after)));
                outcome
            }
        };
        outcomes.push((*id, outcome));
    }
    writing.commit().await?;
    Ok(Some(outcomes))
}

/// The values that a change needs: an edit may compare jobs with those that its caller has seen.
fn values_for(change: &Change) -> Values {
    match change {
        Change::Edit(edit) if edit.seen.is_some() => Values::Read,
        Change::Edit(_)
        | Change::Cancel { .. }
        | Change::Redo
        | Change::Delete
        | Change::Move(_)
        | Change::Reprioritise(_)
        | Change::Reschedule(_) => Values::Omitted,
    }
}

/// The queue to which jobs are moved.
fn goes_to(change: &Change) -> Option<&QueueName> {
    match change {
        Change::Move(queue) => Some(queue),
        Change::Edit(edit) => edit.queue.as_ref(),
        Change::Cancel { .. }
        | Change::Redo
        | Change::Delete
        | Change::Reprioritise(_)
        | Change::Reschedule(_) => None,
    }
}

/// What is to be known of the queue to which jobs are moved.
#[derive(Default, Clone, Copy)]
struct Target {
    fair: bool,
    bounded: bool,
}

impl Target {
    async fn of(writing: &mut Writing<'_>, queue: &QueueName) -> Result<Self, Fault> {
        let read = writing.read(vec![Query::new(TARGET).with(queue.as_str().to_owned())]).await?;
        let row = read.iter().flatten().next();
        Ok(row.map_or_else(Self::default, |row| Self { fair: row.get(0), bounded: row.get(1) }))
    }
}

/// What came of it, and the job as it is now; `None` if it is gone.
type Done = (ChangeOutcome, Option<Stored>);

impl Writing<'_> {
    /// Cancels jobs under the lock of the gates: each as those before it have left it.
    pub(crate) async fn cancel_all(
        &mut self,
        ids: &[JobId],
        grace: Duration,
        reason: &str,
    ) -> Result<(), Fault> {
        self.read(rows::lock(ids)).await?;
        for id in ids {
            if let Some(stored) = self.find(*id).await?.filter(|stored| !stored.ties.arriving) {
                let request = CancelRequest::new(self.now, grace, reason);
                self.cancel(stored, request).await?;
            }
        }
        Ok(())
    }

    async fn change_one(&mut self, change: &Change, target: Target, stored: Stored) -> Result<Done, Fault> {
        if stored.ties.arriving {
            // Its arrival waits for an unreadable row. The arrival counts the job, so nothing may count it before.
            return Ok((ChangeOutcome::RefusedUnreadable, Some(stored)));
        }
        match change {
            Change::Cancel { grace, reason } => {
                self.cancel(stored, CancelRequest::new(self.now, *grace, reason)).await
            }
            Change::Redo => self.redo(stored).await,
            Change::Delete => self.delete(stored).await,
            Change::Edit(edit) if edit.comes_too_late(&stored.job) => {
                Ok((ChangeOutcome::RefusedChanged, Some(stored)))
            }
            Change::Move(_) | Change::Reprioritise(_) | Change::Reschedule(_) | Change::Edit(_) => {
                match stored.job.state {
                    State::Waiting { why, .. } | State::Blocked { why, .. } => match change {
                        Change::Move(queue) => self.move_to(stored, queue, target).await,
                        Change::Reprioritise(priority) => self.reprioritise(stored, *priority).await,
                        Change::Reschedule(due) => self.reschedule(stored, due.at(self.now), why).await,
                        Change::Edit(edit) => Box::pin(self.edit(stored, edit, target)).await,
                        Change::Cancel { .. } | Change::Redo | Change::Delete => {
                            Ok((ChangeOutcome::Done, Some(stored)))
                        }
                    },
                    State::Running { .. } => Ok((ChangeOutcome::RefusedRunning, Some(stored))),
                    State::Finished { .. } => Ok((ChangeOutcome::RefusedFinished, Some(stored))),
                }
            }
        }
    }

    /// One part after the other: each finds the job as the one before has left it.
    async fn edit(&mut self, mut stored: Stored, edit: &Edit, target: Target) -> Result<Done, Fault> {
        let mut outcome = ChangeOutcome::Already;
        if let Some(terms) = edit.terms(&stored.job.terms) {
            self.agree(&mut stored, terms)?;
            outcome = ChangeOutcome::Done;
        }
        for part in parts(edit) {
            let (id, is_keyed) = (stored.job.id, stored.is_keyed());
            let (done, after) = self.change_one(&part, target, stored).await?;
            if done == ChangeOutcome::Done {
                outcome = ChangeOutcome::Done;
            }
            // The change of a job with keys may have changed others, and those this one.
            let after = if is_keyed { self.find(id).await? } else { after };
            let Some(after) = after else { return Ok((outcome, None)) };
            stored = after;
        }
        Ok((outcome, Some(stored)))
    }

    fn agree(&mut self, stored: &mut Stored, terms: Arc<Terms>) -> Result<(), Fault> {
        let words = |terms: &Terms| terms.tags.iter().map(|tag| tag.as_str().to_owned()).collect::<Vec<_>>();
        let (seq, id) = (value::signed(stored.job.seq), value::of_job(stored.job.id));
        if stored.job.terms.tags != terms.tags {
            self.write(Query::new(UNTAG).with(words(&stored.job.terms)).with(seq))?;
            self.write(Query::new(TAG).with(words(&terms)).with(seq).with(id))?;
        }
        let text = if terms.are_default() { None } else { Some(value::to_json(&*terms)?) };
        self.write(Query::new(AGREE).with(id).with(text))?;
        stored.job.terms = terms;
        Ok(())
    }

    pub(crate) async fn cancel(&mut self, mut stored: Stored, request: CancelRequest) -> Result<Done, Fault> {
        match Cancel::decide(&stored.job, request) {
            Cancel::Ends(transition) => {
                Ok((ChangeOutcome::Done, Some(self.enter(stored, *transition).await?)))
            }
            Cancel::Asks(request) => {
                self.sheet.leaves_others(&stored);
                (stored.job.cancel, stored.begun, stored.kept) = (Some(request), true, Kept::Nowhere);
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
        Ok((ChangeOutcome::Done, Some(self.enter(stored, transition).await?)))
    }

    async fn delete(&mut self, stored: Stored) -> Result<Done, Fault> {
        match stored.job.state {
            State::Running { .. } => return Ok((ChangeOutcome::RefusedRunning, Some(stored))),
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => {}
        }
        self.unindex(&stored).await?;
        self.free_key(&stored.job)?;
        if !stored.job.state.is_finished() {
            self.no_more_waits(&stored, None)?;
        }
        self.remove(std::slice::from_ref(&stored))?;
        self.tell(&stored.job, || Happening::Deleted);
        if !stored.job.state.is_finished() {
            self.pass_on(&stored.job.terms).await?;
        }
        Ok((ChangeOutcome::Done, None))
    }

    async fn move_to(&mut self, stored: Stored, queue: &QueueName, target: Target) -> Result<Done, Fault> {
        if stored.job.queue == *queue {
            return Ok((ChangeOutcome::Already, Some(stored)));
        }
        let Some(lane) = self.lane(queue, &stored.job.kind) else {
            return Err(Fault::Unavailable("could not create a lane".to_owned()));
        };
        self.news.due = true;
        self.transfer(stored, |stored| {
            stored.lane = lane;
            stored.job.queue = queue.clone();
            (stored.ties.fair, stored.ties.bounded) = (target.fair, target.bounded);
        })
        .await
    }

    async fn reprioritise(&mut self, stored: Stored, priority: Priority) -> Result<Done, Fault> {
        if stored.job.priority == priority {
            return Ok((ChangeOutcome::Already, Some(stored)));
        }
        self.transfer(stored, |stored| stored.job.priority = priority).await
    }

    async fn reschedule(
        &mut self,
        mut stored: Stored,
        due: tenure_core::Timestamp,
        why: Why,
    ) -> Result<Done, Fault> {
        self.unindex(&stored).await?;
        stored.job.state = State::Waiting { due, why };
        self.rewrite(&stored, Some(due))?;
        self.stand(&mut stored).await?;
        self.news.due = true;
        self.tell_became(&stored.job, stored.job.state.name(self.now), None);
        self.pass_on(&stored.job.terms).await?;
        Ok((ChangeOutcome::Done, Some(stored)))
    }

    /// Changes where a waiting job waits, but not until when.
    async fn transfer(&mut self, mut stored: Stored, edit: impl FnOnce(&mut Stored)) -> Result<Done, Fault> {
        let Some(due) = stored.job.state.due() else {
            return Ok((ChangeOutcome::RefusedFinished, Some(stored)));
        };
        let in_line = stored.kept == Kept::InLine
            || matches!(stored.job.state, State::Blocked { on: Block::Limit, .. });
        self.unindex(&stored).await?;
        edit(&mut stored);
        // It has left its round: one that joins a line of shares again gets another.
        stored.ties.round = None;
        self.rewrite(&stored, None)?;
        if in_line && stored.is_keyed() {
            self.join_line(&mut stored).await?;
        } else if stored.is_keyed() {
            self.index(&stored).await?;
        } else {
            self.place_again(stored.kept, &mut stored, due);
        }
        self.pass_on(&stored.job.terms).await?;
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
