//! Attempts that take longer than their job allows. A worker that lives tells so again and again: without an end it would hold
//! its job for ever. Whatever it says after the end is refused like that of any other who has lost a job.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Cause, Ending, Failure, JobId, JobRecord, Timestamp, Verdict};

use crate::problem::{Problem, ProblemType};

/// How long this attempt may take, if it has taken longer.
pub(crate) fn overdue(job: &JobRecord, now: Timestamp) -> Option<Duration> {
    let timeout = job.terms.timeout?;
    job.started.filter(|started| now.since(*started) > timeout).map(|_| timeout)
}

/// What ends it: as for any failure, the job's policy says what follows.
pub(crate) fn ending(job: Arc<JobRecord>, timeout: Duration) -> Ending {
    let message = format!("timed out after {} s", timeout.as_secs_f64());
    Ending { job, verdict: Verdict::Retry { failure: Failure::new(Cause::TimedOut, &message), due: None } }
}

/// What its worker is told.
pub(crate) fn told(id: JobId, timeout: Duration) -> Problem {
    let detail = format!(
        "job {id} was taken from this worker because the attempt exceeded its time limit of {} s",
        timeout.as_secs_f64()
    );
    Problem::new(ProblemType::LeaseLost, detail).with("job_id", id.to_string())
}
