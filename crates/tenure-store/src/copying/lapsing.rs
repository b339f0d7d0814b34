//! What becomes, in a copy, of what was held in the source: nobody holds anything under a fence from before.

use tenure_core::{Attempt, Epoch, Job, Lease, State, Timestamp, lapse};

/// A running job has lapsed, and with it its last attempt, which is the running one.
pub(super) fn job(job: Job, attempts: &mut [Attempt], epoch: Epoch, now: Timestamp) -> Job {
    let State::Running { until, .. } = job.state else { return job };
    let at = now.max(until);
    let Some(transition) = lapse(&job, epoch, at) else { return job };
    if let Some(running) = attempts.last_mut().filter(|attempt| attempt.ended.is_none()) {
        running.ended = transition.ended.map(|end| (at, end));
        running.failure.clone_from(&transition.failure);
    }
    job.after(transition)
}

/// A lease that somebody has or may go on with keeps others off as long as it did, under a fence that nobody was told.
/// Whoever asks again for the same acquisition hears it.
pub(super) fn lease(lease: Lease, epoch: Epoch) -> Lease {
    if lease.held.is_none() {
        return lease;
    }
    Lease { fence: lease.fence.next(epoch), ..lease }
}
