//! Waiting jobs of access tokens that have a quota of them.
//!
//! The store has no counter by token, so a server counts seldom and calculates in between. After a count, the token has
//! room for the rest of its quota. The server counts again only when that room is used up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Condition, Error, Filter, Moment, PageAsk, StateName, Tenure, Values, limits};
use tokio::sync::watch;

use crate::problem::Problem;
use crate::quota::Exceeded;

/// Names of tokens that are remembered at most.
const MOST: usize = 10_000;
/// Least time between two counts for one name.
const APART: Duration = Duration::from_secs(1);
/// Pause after a count, as a multiple of its duration: counting takes at most a twentieth of the time.
const PAUSES: u32 = 20;

/// Room for the waiting jobs of tokens, by their name.
#[derive(Debug, Default, Clone)]
pub(crate) struct WaitingJobs {
    budgets: Arc<Mutex<BTreeMap<String, Budget>>>,
}

/// Room for the waiting jobs of tokens of one name.
#[derive(Debug, Default)]
struct Budget {
    /// Jobs that waited at the last count; `None` before the first one.
    counted: Option<usize>,
    /// Jobs that were accepted since that count began.
    accepted: usize,
    /// Earliest time of the next count.
    not_before: Option<Moment>,
    /// Changes when the count ends that is in progress.
    counting: Option<Counting>,
}

/// Announces the end of a count, with the problem if the store could not answer.
type Counting = watch::Receiver<Option<Problem>>;

/// The next step of a request that would enqueue a job.
enum Step {
    Accepted,
    Refused(Exceeded),
    /// Count first, and announce the end.
    Count(watch::Sender<Option<Problem>>),
    /// Wait for the count that another request has started.
    Await(Counting),
}

impl WaitingJobs {
    /// Admits one more waiting job of this owner, or refuses it if the quota is used up. Other servers may accept jobs
    /// at the same moment, so the quota can be exceeded by the jobs that they accept between two counts.
    pub(crate) async fn admit(&self, tenure: &Tenure, owner: &str, most: usize) -> Result<(), Problem> {
        loop {
            let now = tenure.store().clock().moment();
            let mut ended = match self.step(owner, most, now) {
                Step::Accepted => return Ok(()),
                Step::Refused(exceeded) => return Err(exceeded.into()),
                Step::Await(ended) => ended,
                Step::Count(end) => {
                    let ended = end.subscribe();
                    // In a task, so that a client that hangs up leaves no count unfinished.
                    tokio::spawn(self.clone().count(tenure.clone(), owner.to_owned(), most, end));
                    ended
                }
            };
            // An error means that the count was aborted, so it has ended, too.
            let _ = ended.changed().await;
            let failed = ended.borrow().clone();
            failed.map_or(Ok(()), Err)?;
        }
    }

    fn step(&self, owner: &str, most: usize, now: Moment) -> Step {
        let mut budgets = self.lock();
        if budgets.len() >= MOST && !budgets.contains_key(owner) {
            budgets.pop_first();
        }
        let budget = budgets.entry(owner.to_owned()).or_default();
        if budget.counted.is_some_and(|counted| counted.saturating_add(budget.accepted) < most) {
            budget.accepted = budget.accepted.saturating_add(1);
            return Step::Accepted;
        }
        if let Some(ended) = budget.counting.as_ref().filter(|ended| ended.has_changed().is_ok()) {
            return Step::Await(ended.clone());
        }
        match budget.not_before.filter(|not_before| now < *not_before) {
            Some(not_before) => Step::Refused(Exceeded {
                quota: "max_waiting_jobs",
                about: "too many jobs of this access token are waiting",
                limit: most,
                setting: Some("max_waiting_jobs of the access token"),
                retry_after: Some(not_before.since(now)),
            }),
            None => {
                let (end, ended) = watch::channel(None);
                (budget.counted, budget.accepted, budget.counting) = (None, 0, Some(ended));
                Step::Count(end)
            }
        }
    }

    async fn count(self, tenure: Tenure, owner: String, most: usize, end: watch::Sender<Option<Problem>>) {
        let clock = tenure.store().clock();
        let began = clock.moment();
        let counted = count(&tenure, &owner, most).await;
        let now = clock.moment();
        let pause = now.since(began).saturating_mul(PAUSES).max(APART);
        let failed = match counted {
            Ok(counted) => {
                if let Some(budget) = self.lock().get_mut(&owner) {
                    (budget.counted, budget.not_before) = (Some(counted), Some(now.after(pause)));
                    budget.counting = None;
                }
                None
            }
            // The next request counts anew.
            Err(error) => Some(Problem::from(error)),
        };
        // The clients that wait for it may have hung up.
        let _ = end.send(failed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Budget>> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the waiting jobs of an owner, newest first, and stops at `most`: a token that floods the store is found soon.
/// Args are not read: they can be a megabyte each.
async fn count(tenure: &Tenure, owner: &str, most: usize) -> Result<usize, Error> {
    let filter = Filter {
        states: vec![StateName::Queued, StateName::Scheduled, StateName::Blocked],
        conditions: vec![Condition::Owner(owner.to_owned())],
        ..Filter::default()
    };
    let (mut count, mut after) = (0_usize, None);
    loop {
        let (filter, at_most, values) = (filter.clone(), limits::PAGE_JOBS, Values::Omitted);
        let ask = PageAsk { filter, after, at_most, values, ..PageAsk::default() };
        let page = tenure.store().jobs(ask).await?;
        count += page.jobs.len();
        after = page.next;
        if after.is_none() || count >= most {
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Clock, ManualClock};

    use super::*;

    #[test]
    fn no_job_is_accepted_while_a_count_is_in_progress() {
        let (jobs, now) = (WaitingJobs::default(), ManualClock::new().moment());
        let step = || jobs.step("shop", 2, now);
        let Step::Count(first) = step() else { panic!("nothing was counted yet") };
        drop(first);
        jobs.lock().get_mut("shop").unwrap().counted = Some(0);
        assert!(matches!((step(), step()), (Step::Accepted, Step::Accepted)));
        let Step::Count(_second) = step() else { panic!("the room is used up") };
        assert!(matches!((step(), step()), (Step::Await(_), Step::Await(_))));
    }
}
