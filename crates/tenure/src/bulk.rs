//! Doing something with all jobs that a filter means, as a job of its own: it survives whoever asked for it, shows how far
//! it has come, and can be cancelled.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{CancelRequest, Condition, Due, Invalid, JobId, Priority, QueueName, StateName, Timestamp};
use tenure_store::{Change, Cursor, Filter, PageAsk, Values};

use crate::position;
use crate::rotation::reseal;
use crate::run::CutShort;
use crate::{Draft, Enqueue, Error, Failed, Job, Jobs, Run, Tally, Tenure, Worker};

/// Shelf of the positions of operations.
const SHELF: &str = "bulk";
/// So many are counted one by one, and for no longer than this: somebody waits for the number.
const COUNTED: usize = 10_000;
const COUNTED_FOR: Duration = Duration::from_millis(100);
/// Time to look for the first match: a rare job may be far behind the newest ones.
const SOUGHT_FOR: Duration = Duration::from_secs(5);
/// Most pages that one preview examines.
const SOUGHT: usize = 10_000;
/// Until an operation has ended it has come no further than this.
const NEARLY: f64 = 0.99;
/// So many of them are shown.
const SHOWN: usize = 10;

/// A bulk operation, which is itself a job. [`Worker::bulk_operations`] runs them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// The action.
    pub act: BulkAct,
    /// The jobs.
    pub filter: Filter,
    /// Number of matching jobs when it was requested, as far as they were counted.
    pub meant: u64,
    /// `true` if there may have been more.
    #[serde(default)]
    pub is_cut: bool,
}

/// The action applied to each job. Jobs whose state does not allow it are skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BulkAct {
    /// Cancels the job: at once if it waits; a running job has the grace period to stop.
    Cancel {
        /// The grace period.
        grace: Duration,
        /// The reason, for people.
        reason: String,
    },
    /// Retries the job, if it has ended.
    Retry,
    /// Deletes the job, if it is not running.
    Delete,
    /// Moves the job to another queue, if it waits.
    Move {
        /// The queue.
        queue: QueueName,
    },
    /// Changes the priority, if it waits.
    Reprioritise {
        /// The priority.
        priority: Priority,
    },
    /// Makes the job due now, if it waits.
    RunNow,
}

/// The jobs that match a filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meant {
    /// Number of jobs found.
    pub jobs: u64,
    /// `true` if there may be more.
    pub is_cut: bool,
    /// The first of them.
    pub some: Vec<JobId>,
}

/// How far an operation has come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Place {
    tally: Tally,
    after: Option<Cursor>,
    has_ended: bool,
}

impl Job for Bulk {
    const KIND: &'static str = "tenure.bulk";
    const QUEUE: &'static str = "tenure.bulk";
    type Output = Tally;
}

impl BulkAct {
    /// Checks that the action is valid.
    ///
    /// # Errors
    /// An invalid reason or grace period.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Cancel { grace, reason } => CancelRequest::check(*grace, reason),
            Self::Retry | Self::Delete | Self::Move { .. } | Self::Reprioritise { .. } | Self::RunNow => {
                Ok(())
            }
        }
    }

    fn change(&self, now: Timestamp) -> Change {
        match self {
            Self::Cancel { grace, reason } => Change::Cancel { grace: *grace, reason: reason.clone() },
            Self::Retry => Change::Redo,
            Self::Delete => Change::Delete,
            Self::Move { queue } => Change::Move(queue.clone()),
            Self::Reprioritise { priority } => Change::Reprioritise(*priority),
            Self::RunNow => Change::Reschedule(Due::At(now)),
        }
    }
}

impl Jobs<'_> {
    /// Counts the jobs that a [bulk operation](Tenure::bulk) with this filter would affect. Internal jobs of Tenure
    /// count only if the filter names their kind. A filter of queues, kinds and states is answered from counters;
    /// other filters examine jobs for a bounded time: for 5 seconds until the first match, and for 0.1 seconds with one.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn meant(&self, filter: &Filter) -> Result<Meant, Error> {
        let counted = self.counted(filter).await?;
        let filter = &without_own(filter.clone());
        if let Some(jobs) = counted {
            let (filter, values) = (filter.clone(), Values::Omitted);
            let ask = PageAsk { filter, at_most: SHOWN, values, ..PageAsk::default() };
            let some = self.page(ask).await?.jobs.iter().map(|job| job.id).collect();
            return Ok(Meant { jobs, is_cut: false, some });
        }
        let clock = self.tenure().store().clock();
        let began = clock.moment();
        let (mut meant, mut after) = (Meant::default(), None);
        for page in 0..SOUGHT {
            let (within, looked) =
                (if meant.jobs == 0 { SOUGHT_FOR } else { COUNTED_FOR }, clock.moment().since(began));
            if page > 0 && (looked >= within || meant.jobs >= COUNTED as u64) {
                break;
            }
            let at_most = tenure_core::limits::PAGE_JOBS;
            let (filter, values) = (filter.clone(), Values::Omitted);
            let ask = PageAsk { filter, after, at_most, values, ..PageAsk::default() };
            let page = self.page(ask).await?;
            meant.jobs += page.jobs.len() as u64;
            meant.some.extend(page.jobs.iter().map(|job| job.id).take(SHOWN - meant.some.len()));
            after = page.next;
            if after.is_none() {
                return Ok(meant);
            }
        }
        meant.is_cut = true;
        Ok(meant)
    }

    /// How many jobs are meant by a filter that says nothing but what jobs are counted by.
    async fn counted(&self, filter: &Filter) -> Result<Option<u64>, Error> {
        let Filter { states, queues, kinds, .. } = filter;
        let by_these = Filter {
            states: states.clone(),
            queues: queues.clone(),
            kinds: kinds.clone(),
            ..Filter::default()
        };
        if *filter != by_these || filter.means_all() {
            return Ok(None);
        }
        let counts = self.tenure().counts().await?;
        let is_among = |count: &&tenure_store::Count| {
            (queues.is_empty() || queues.contains(&count.queue))
                && if kinds.is_empty() { !count.kind.is_own() } else { kinds.contains(&count.kind) }
        };
        let among: Vec<_> = counts.iter().filter(is_among).collect();
        // A job that has become due counts as scheduled until a turn of the store finds it.
        let names = |state| states.contains(&state);
        let is_behind = names(StateName::Scheduled) != names(StateName::Queued);
        if is_behind && among.iter().any(|count| count.state == StateName::Scheduled && count.jobs > 0) {
            return Ok(None);
        }
        let is_meant = |count: &&&tenure_store::Count| states.is_empty() || names(count.state);
        Ok(Some(among.iter().filter(is_meant).map(|count| count.jobs).sum()))
    }
}

/// What is done with many jobs leaves Tenure's own alone unless somebody names them.
fn without_own(mut filter: Filter) -> Filter {
    if filter.ids.is_empty() && filter.kinds.is_empty() {
        filter.conditions.push(Condition::Not(Box::new(Condition::Own)));
    }
    filter
}

impl Tenure {
    /// Applies an action to all jobs that match a filter now. Later jobs are not affected, internal jobs of Tenure
    /// only if the filter names their kind, and no job is affected twice. A worker with [bulk
    /// operations](Worker::bulk_operations) does it; the enqueued job shows the progress, and its output the result.
    ///
    /// ```
    /// # use tenure::{BulkAct, Tenure, search};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tenure = Tenure::open("memory:").await?;
    /// let failed = search("state:failed error:\"timed out\" created:>-12h", tenure.now())?;
    /// tenure.bulk(BulkAct::Retry, failed).await?.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An invalid reason or grace period, or a fault.
    pub async fn bulk(&self, act: BulkAct, filter: Filter) -> Result<Enqueue<'_>, Error> {
        Ok(self.enqueue_draft(self.bulk_draft(act, filter).await?))
    }

    /// Returns the job of a [bulk operation](Self::bulk) without enqueueing it.
    ///
    /// # Errors
    /// Like [`bulk`](Self::bulk).
    pub async fn bulk_draft(&self, act: BulkAct, mut filter: Filter) -> Result<Draft, Error> {
        act.check()?;
        let now = self.now();
        let Meant { jobs: meant, is_cut, .. } = self.jobs().meant(&filter).await?;
        filter.conditions.push(Condition::Created(Timestamp::EPOCH..=now));
        if act == BulkAct::Retry {
            // What has ended once more since is not done a third time.
            filter.conditions.push(Condition::Ended(Timestamp::EPOCH..=now));
        }
        let filter = without_own(filter);
        Ok(Draft::of(&Bulk { act, filter, meant, is_cut }))
    }
}

impl<App: Send + Sync + 'static> Worker<App> {
    /// Runs [bulk operations](Tenure::bulk) and [rotations of encryption keys](Tenure::rotate_encryption), this many at
    /// once.
    pub fn bulk_operations(self, slots: usize) -> Self {
        self.queue(Bulk::QUEUE, slots).job(operate).job(reseal)
    }
}

/// Goes through the jobs in bounded steps, oldest first, and goes on where it was cut off.
async fn operate<App: Send + Sync + 'static>(run: Run<App>, bulk: Bulk) -> Result<Tally, Failed> {
    let mut filter = bulk.filter;
    filter.conditions.push(Condition::Not(Box::new(Condition::IdBegins(run.id().to_string()))));
    let mut place: Place = position::read(&run, SHELF).await?;
    while !place.has_ended {
        if let Some(why) = run.stopping() {
            return Err(CutShort(why).into());
        }
        let change = bulk.act.change(run.tenure().now());
        let (tally, next) = run.tenure().jobs().step(change, &filter, place.after).await?;
        place.tally.join(tally);
        (place.after, place.has_ended) = (next, next.is_none());
        position::write(&run, SHELF, &place).await?;
        run.progress(place.fraction(bulk.meant), &place.tally.to_string())?;
    }
    Ok(place.tally)
}

impl Place {
    /// How much of what was meant is done: there may be more, so it is not all before the end.
    fn fraction(&self, meant: u64) -> f64 {
        match (self.has_ended, meant) {
            (true, _) => 1.0,
            (false, 0) => 0.0,
            (false, meant) => (self.tally.all() as f64 / meant as f64).min(NEARLY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_on_more_than_were_counted_is_not_at_its_end_before_it_is() {
        let tally = Tally { done: 25_000, ..Tally::default() };
        let mut place = Place { tally, ..Place::default() };
        assert_eq!((place.fraction(100_000), place.fraction(0)), (0.25, 0.0));
        assert!(place.fraction(10_000) < 1.0);
        place.has_ended = true;
        assert_eq!((place.fraction(100_000), place.fraction(0)), (1.0, 1.0));
    }
}
