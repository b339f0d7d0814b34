//! Jobs that a store accepted while its clock was ahead.
//!
//! A job without a delay is due at the time at which the store accepts it. If the clock was an hour ahead and is then
//! corrected, the job would wait for an hour. Its due time equals its creation time, and both lie in the future: only a
//! clock that went back can cause this.
//!
//! A job with a delay keeps its due time. A store keeps no delay, so such a job looks like one with a fixed due time, which
//! must not start early. Retries and snoozed jobs also keep their due times.

use std::time::Duration;

use tenure_core::{Due, Edit, Job, State, StateName, Timestamp, limits};

use crate::{Change, Cursor, Fault, Filter, Moment, PageAsk, Selection, Store, Values};

/// Largest step that is ignored. Time servers adjust clocks in smaller ones, and a job may wait for that long.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Between two looks at the newest jobs.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60);

/// Finds the jobs without a delay that a store accepted while its clock was ahead, and makes them due.
///
/// A search begins after each start, because the clock may have gone back before, and each time that the clock goes back.
/// Once a minute, a step looks at the newest jobs, because the clock may have gone ahead and back between two steps.
#[derive(Debug, Default)]
pub struct ClockCorrection {
    /// The clock at the last step.
    last: Option<(Timestamp, Moment)>,
    looked: Option<Moment>,
    search: Option<Search>,
    /// The newest job of the search that began last after a look at the newest jobs. Jobs with a delay stay ahead of the
    /// clock, and must not cause another search.
    searched: Option<Timestamp>,
}

/// A search from the newest job to older ones, a page at each step.
#[derive(Debug)]
struct Search {
    /// The new due time. All jobs of a search get the same one, so they keep the order in which they were enqueued.
    due: Timestamp,
    after: Option<Cursor>,
    /// Rows that the search has passed over since it last found a job.
    passed: usize,
}

impl Search {
    fn new(due: Timestamp) -> Self {
        Self { due, after: None, passed: 0 }
    }
}

impl ClockCorrection {
    /// Takes a bounded step. Returns `true` if the next step may find more jobs.
    ///
    /// The first step finds nothing, so that a program that ends at once does not pay for a search.
    ///
    /// # Errors
    /// The store could not answer. The next step repeats this one.
    pub async fn step(&mut self, store: &dyn Store) -> Result<bool, Fault> {
        let clock = store.clock();
        let (now, moment) = (clock.now(), clock.moment());
        let Some(last) = self.last.replace((now, moment)) else {
            (self.looked, self.search) = (Some(moment), Some(Search::new(now)));
            return Ok(false);
        };
        let is_time = self.looked.is_none_or(|looked| moment.since(looked) >= BETWEEN_LOOKS);
        if has_gone_back(last, now, moment) {
            self.search = Some(Search::new(now));
        } else if self.search.is_none() && is_time {
            let newest = store.jobs(PageAsk { values: Values::Omitted, ..PageAsk::default() }).await?;
            self.looked = Some(moment);
            let newest = newest.jobs.iter().map(|job| job.created).max();
            if newest > self.searched && newest > Some(now.after(TOLERANCE)) {
                self.searched = newest;
                self.search = Some(Search::new(now));
            }
        }
        let Some(search) = &self.search else { return Ok(false) };
        self.search = make_due(store, now, search).await?;
        Ok(self.search.is_some())
    }
}

/// Makes the jobs of one page due. Returns the rest of the search; `None` at its end.
async fn make_due(store: &dyn Store, now: Timestamp, search: &Search) -> Result<Option<Search>, Fault> {
    let Search { due, after, passed } = *search;
    let filter = Filter {
        states: vec![StateName::Scheduled, StateName::Blocked],
        created_from: Some(now.after(TOLERANCE)),
        ..Filter::default()
    };
    // The filter may examine many more jobs than it matches, so their values are read only for each match.
    let page = store.jobs(PageAsk { filter, after, values: Values::Omitted, ..PageAsk::default() }).await?;
    for found in page.jobs.iter().filter(|job| is_accepted_ahead(job, now)) {
        let seen = store.job(found.id).await?;
        let Some(job) = seen.filter(|job| is_accepted_ahead(job, now)) else { continue };
        let edit = Edit { seen: Some(Box::new(job)), due: Some(Due::At(due)), ..Edit::default() };
        // A refusal means that another change of the job came first.
        store.change(Change::Edit(Box::new(edit)), Selection::Ids(vec![found.id])).await?;
    }
    // The store accepted these jobs one after the other, so many rows without any of them end the search. An empty page
    // does not: it may have passed over few rows, if they are large.
    let passed = if page.jobs.is_empty() { passed + page.examined } else { 0 };
    let next = page.next.filter(|_| passed < limits::PAGE_EXAMINED);
    Ok(next.map(|next| Search { due, after: Some(next), passed }))
}

/// Returns `true` if the wall clock has fallen behind the monotonic clock since the last step.
fn has_gone_back((last, at): (Timestamp, Moment), now: Timestamp, moment: Moment) -> bool {
    last.after(moment.since(at)).since(now) > TOLERANCE
}

/// Returns `true` if the job waits for the time at which the store accepted it.
fn is_accepted_ahead(job: &Job, now: Timestamp) -> bool {
    match job.state {
        State::Waiting { due, .. } | State::Blocked { due, .. } => {
            due == job.created && due > now.after(TOLERANCE)
        }
        State::Running { .. } | State::Finished { .. } => false,
    }
}
