//! A draft as the job of a timer.

use tenure_core::{AppId, Due, Invalid, JobId, TimerJob, Timestamp};

use super::Draft;
use crate::Error;

impl Draft {
    /// What a timer enqueues for each of its slots.
    pub(crate) fn finish_for_timer(self, app: Option<&AppId>) -> Result<TimerJob, Error> {
        let refuse = |field, found, allowed| Err(Invalid::new(field, found, allowed).into());
        if self.due != Due::Now {
            return refuse("due", "an instant or a delay", "none: the slots say when");
        }
        if self.id.is_some() {
            return refuse("id", "an id", "none: each slot has a job of its own");
        }
        let job = self.finish(JobId::new(Timestamp::EPOCH, 0), app)?;
        Ok(TimerJob {
            kind: job.kind,
            queue: job.queue,
            args: job.args,
            priority: job.priority,
            terms: job.terms,
        })
    }
}
