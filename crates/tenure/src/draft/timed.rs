//! A draft as the job of a timer.

use tenure_core::{AppId, Due, Invalid, JobId, TimerJob, Timestamp};

use super::Draft;
use crate::Error;

impl Draft {
    /// What a timer enqueues for each of its slots.
    pub(crate) fn finish_for_timer(self, app: Option<&AppId>) -> Result<TimerJob, Error> {
        let refuse = |field, found, allowed| Err(Invalid::new(field, found, allowed).into());
        if self.due != Due::Now {
            return refuse("due", "a due time or delay", "none; the schedule sets the due time");
        }
        if self.id.is_some() {
            return refuse("id", "an ID", "none; each run gets its own job ID");
        }
        // Its runs do not belong to the trace in which the schedule was set.
        let job = self.finish_untraced(JobId::new(Timestamp::EPOCH, 0), app)?;
        Ok(TimerJob {
            kind: job.kind,
            queue: job.queue,
            args: job.args,
            priority: job.priority,
            terms: job.terms,
        })
    }
}
