//! Jobs that a store accepted while its clock was ahead.
//!
//! A job without a delay is due at the time at which the store accepts it. If the clock was an hour ahead and is then
//! corrected, the job would wait for an hour. Its due time equals its creation time, and both lie in the future: only a
//! clock that went back can cause this.
//!
//! A job with a delay keeps its due time. A store keeps no delay, so such a job looks like one with a fixed due time, and
//! that one must not start early. Retries and snoozed jobs also keep their due times.

use std::time::Duration;

use tenure_core::{Due, Edit, Job, State, StateName, Timestamp};

use crate::{Change, Cursor, Fault, Filter, Moment, PageAsk, Selection, Store};

/// Time servers turn a clock in smaller steps, and a job may wait for that long.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Finds the jobs without a delay that a store accepted while its clock was ahead, and makes them due.
///
/// It looks for them once after each start, because the clock may have gone back before, and each time that the clock
/// goes back. Otherwise it reads only the clock.
#[derive(Debug, Default)]
pub struct ClockCorrection {
    /// The clock at the last step.
    last: Option<(Timestamp, Moment)>,
    walk: Option<Walk>,
}

/// A walk from the newest job to older ones, a page at each step.
#[derive(Debug)]
struct Walk {
    /// The due time that the jobs get. It is the same for all of them, so they keep the order in which they were enqueued.
    due: Timestamp,
    after: Option<Cursor>,
}

impl ClockCorrection {
    /// Takes a bounded step. Returns `true` if the next step may find more jobs.
    ///
    /// The first step finds nothing, so that a program that ends at once does not pay for a look.
    ///
    /// # Errors
    /// The store could not answer. The next step repeats this one.
    pub async fn step(&mut self, store: &dyn Store) -> Result<bool, Fault> {
        let clock = store.clock();
        let (now, moment) = (clock.now(), clock.moment());
        let last = self.last.replace((now, moment));
        if last.is_none_or(|last| has_gone_back(last, now, moment)) {
            self.walk = Some(Walk { due: now, after: None });
        }
        let (Some(_), Some(walk)) = (last, &self.walk) else { return Ok(false) };
        let due = walk.due;
        let filter = Filter {
            states: vec![StateName::Scheduled, StateName::Blocked],
            created_from: Some(now.after(TOLERANCE)),
            ..Filter::default()
        };
        let page = store.jobs(PageAsk { filter, after: walk.after, ..PageAsk::default() }).await?;
        // The store accepted these jobs one after the other, so a page without any of them ends the walk: those of an
        // earlier error of the clock were found at that time.
        let next = page.next.filter(|_| !page.jobs.is_empty());
        for job in page.jobs.into_iter().filter(|job| is_accepted_ahead(job, now)) {
            let selection = Selection::Ids(vec![job.id]);
            let edit = Edit { seen: Some(Box::new(job)), due: Some(Due::At(due)), ..Edit::default() };
            // A refusal means that another change of the job came first.
            store.change(Change::Edit(Box::new(edit)), selection).await?;
        }
        self.walk = next.map(|next| Walk { due, after: Some(next) });
        Ok(self.walk.is_some())
    }
}

/// Returns `true` if the time of day is earlier than the time that has passed allows.
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
