//! Looking at jobs and changing them: one, or all that a filter means.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{
    Attempt, CancelRequest, Due, Edit, Invalid, Job, JobId, LogLine, Priority, QueueName, Timestamp,
};
use tenure_store::{Change, ChangeOutcome, Changed, Cursor, Filter, Page, PageAsk, Selection};

use crate::{Error, Tenure};

/// Access to the jobs of a store: find, inspect and change them.
#[derive(Debug)]
pub struct Jobs<'a> {
    tenure: &'a Tenure,
}

/// Result of a change to all jobs that match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Jobs changed.
    pub done: u64,
    /// Running jobs that were asked to stop.
    pub asked: u64,
    /// Jobs already in the requested state.
    pub already: u64,
    /// Jobs skipped because of their state.
    pub refused: u64,
}

impl<'a> Jobs<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    pub(crate) fn tenure(&self) -> &'a Tenure {
        self.tenure
    }

    /// Returns a job.
    ///
    /// # Errors
    /// [`Error::NotFound`], or a fault.
    pub async fn get(&self, id: JobId) -> Result<Job, Error> {
        self.tenure.store().job(id).await?.ok_or(Error::NotFound(id))
    }

    /// Lists jobs, page by page. Continue with the returned cursor until there is none, even if a page is short.
    ///
    /// # Errors
    /// A cursor of another listing, or a fault.
    pub async fn page(&self, ask: PageAsk) -> Result<Page, Error> {
        if ask.after.is_some_and(|after| !after.is_of(ask.by)) {
            let allowed = "a cursor of the same listing";
            return Err(Invalid::new("cursor", "a cursor of a listing in another order", allowed).into());
        }
        self.check_filter(&ask.filter)?;
        Ok(self.tenure.store().jobs(ask).await?)
    }

    /// Refuses a filter that looks into encrypted values. All searches and bulk operations do so.
    ///
    /// # Errors
    /// Names the values, and the fields to search instead.
    pub fn check_filter(&self, filter: &Filter) -> Result<(), Error> {
        Ok(self
            .tenure
            .store()
            .extras()
            .encryption
            .map_or(Ok(()), |encryption| encryption.check_filter(filter))?)
    }

    /// Returns the attempts of a job, oldest first.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, Error> {
        Ok(self.tenure.store().attempts(id).await?)
    }

    /// Returns log lines of a job after `(delivery, number)`; start with `(0, 0)`.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Result<Vec<LogLine>, Error> {
        Ok(self.tenure.store().logs(id, behind, at_most).await?)
    }

    /// Cancels a job: at once if it waits; if it runs, its handler has the grace period to stop.
    ///
    /// # Errors
    /// An invalid reason or grace period, or a fault.
    pub async fn cancel(&self, id: JobId, grace: Duration, reason: &str) -> Result<ChangeOutcome, Error> {
        self.one(id, cancelling(grace, reason)?).await
    }

    /// Retries a finished job with a fresh set of attempts.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn redo(&self, id: JobId) -> Result<ChangeOutcome, Error> {
        self.one(id, Change::Redo).await
    }

    /// Deletes a job that is not running.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn delete(&self, id: JobId) -> Result<ChangeOutcome, Error> {
        self.one(id, Change::Delete).await
    }

    /// Moves a waiting job to another queue.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn move_to(&self, id: JobId, queue: &str) -> Result<ChangeOutcome, Error> {
        self.one(id, Change::Move(QueueName::new(queue)?)).await
    }

    /// Changes the priority of a waiting job.
    ///
    /// # Errors
    /// An invalid priority, or a fault.
    pub async fn reprioritise(&self, id: JobId, priority: i64) -> Result<ChangeOutcome, Error> {
        self.one(id, Change::Reprioritise(Priority::new(priority)?)).await
    }

    /// Changes the due time of a waiting job.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn reschedule(&self, id: JobId, due: Timestamp) -> Result<ChangeOutcome, Error> {
        self.one(id, Change::Reschedule(Due::At(due))).await
    }

    /// Changes several fields of a waiting job at once, if the job has not changed since it was read.
    ///
    /// # Errors
    /// An invalid value, or a fault.
    pub async fn edit(&self, id: JobId, edit: Edit) -> Result<ChangeOutcome, Error> {
        edit.check()?;
        self.one(id, Change::Edit(Box::new(edit))).await
    }

    /// Cancels all jobs that match the filter.
    ///
    /// # Errors
    /// An invalid reason or grace period, or a fault. Changes made before it remain.
    pub async fn cancel_all(&self, filter: Filter, grace: Duration, reason: &str) -> Result<Tally, Error> {
        self.all(filter, cancelling(grace, reason)?).await
    }

    /// Retries all finished jobs that match the filter.
    ///
    /// # Errors
    /// A fault. Changes made before it remain.
    pub async fn redo_all(&self, filter: Filter) -> Result<Tally, Error> {
        self.all(filter, Change::Redo).await
    }

    /// Deletes all jobs that match the filter and are not running.
    ///
    /// # Errors
    /// A fault. Changes made before it remain.
    pub async fn delete_all(&self, filter: Filter) -> Result<Tally, Error> {
        self.all(filter, Change::Delete).await
    }

    /// Moves all waiting jobs that match the filter to another queue.
    ///
    /// # Errors
    /// An invalid name, or a fault. Changes made before it remain.
    pub async fn move_all(&self, filter: Filter, queue: &str) -> Result<Tally, Error> {
        self.all(filter, Change::Move(QueueName::new(queue)?)).await
    }

    /// Changes the priority of all waiting jobs that match the filter.
    ///
    /// # Errors
    /// An invalid priority, or a fault. Changes made before it remain.
    pub async fn reprioritise_all(&self, filter: Filter, priority: i64) -> Result<Tally, Error> {
        self.all(filter, Change::Reprioritise(Priority::new(priority)?)).await
    }

    async fn one(&self, id: JobId, change: Change) -> Result<ChangeOutcome, Error> {
        let changed = self.tenure.store().change(change, Selection::Ids(vec![id])).await?;
        Ok(changed.outcomes.first().map_or(ChangeOutcome::NotFound, |(_, outcome)| *outcome))
    }

    /// Goes through the filter in bounded steps. A job that matches again after its change lies
    /// behind the cursor, so it is changed once.
    async fn all(&self, filter: Filter, change: Change) -> Result<Tally, Error> {
        let (mut tally, mut after) = (Tally::default(), None);
        loop {
            let (step, next) = self.step(change.clone(), &filter, after).await?;
            tally.join(step);
            if next.is_none() {
                return Ok(tally);
            }
            after = next;
        }
    }

    /// One bounded step through the jobs that a filter means, behind a place; and where it goes on.
    pub(crate) async fn step(
        &self,
        change: Change,
        filter: &Filter,
        after: Option<Cursor>,
    ) -> Result<(Tally, Option<Cursor>), Error> {
        self.check_filter(filter)?;
        let selection = Selection::Matching { filter: filter.clone(), after };
        let Changed { outcomes, next } = self.tenure.store().change(change, selection).await?;
        let mut tally = Tally::default();
        outcomes.iter().for_each(|(_, outcome)| tally.add(*outcome));
        Ok((tally, next))
    }
}

impl Tally {
    /// All that were looked at.
    pub(crate) fn all(self) -> u64 {
        self.done + self.asked + self.already + self.refused
    }

    /// Adds what came of others.
    pub(crate) fn join(&mut self, more: Self) {
        self.done += more.done;
        self.asked += more.asked;
        self.already += more.already;
        self.refused += more.refused;
    }

    fn add(&mut self, outcome: ChangeOutcome) {
        match outcome {
            ChangeOutcome::Done => self.done += 1,
            ChangeOutcome::Asked => self.asked += 1,
            ChangeOutcome::Already => self.already += 1,
            ChangeOutcome::RefusedRunning
            | ChangeOutcome::RefusedFinished
            | ChangeOutcome::RefusedUnfinished
            | ChangeOutcome::RefusedKeyHeld(_)
            | ChangeOutcome::RefusedChanged
            | ChangeOutcome::RefusedUnreadable
            | ChangeOutcome::NotFound => self.refused += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} done", self.done)?;
        let parts = [(self.asked, "asked to stop"), (self.already, "unchanged"), (self.refused, "skipped")];
        parts
            .into_iter()
            .filter(|(jobs, _)| *jobs > 0)
            .try_for_each(|(jobs, what)| write!(f, ", {jobs} {what}"))
    }
}

fn cancelling(grace: Duration, reason: &str) -> Result<Change, Error> {
    CancelRequest::check(grace, reason)?;
    Ok(Change::Cancel { grace, reason: reason.to_owned() })
}
