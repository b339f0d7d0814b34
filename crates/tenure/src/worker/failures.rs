//! One log event for each failed attempt.

use tenure_core::{
    AttemptEnd, Cause, Failure, Job, Next, RetryPolicy, Settlement, State, StateName, Timestamp,
};
use tenure_store::Settled;

/// Logs the end of an attempt if it failed: a warning if the job is retried or was lost, an error if it is final. The
/// end of a successful, cancelled, snoozed or released attempt is not logged.
pub(crate) fn log(
    job: &Job,
    policy: impl FnOnce() -> RetryPolicy,
    (settlement, settled): (&Settlement, Settled),
    now: Timestamp,
) {
    match settled {
        // A request to cancel came before the failure.
        Settled::Done(StateName::Cancelled) => {}
        Settled::Done(_) | Settled::Repeated => {
            if settlement.has_failed() || settlement.next() == Next::Fail {
                log_failure(job, &policy(), settlement, now);
            }
        }
        Settled::Fenced => {
            log_lost(job, &policy(), "another host has taken over this job; its result is rejected")
        }
        Settled::Gone => log_lost(job, &policy(), "the job was deleted while it was running"),
    }
}

fn log_failure(job: &Job, policy: &RetryPolicy, settlement: &Settlement, now: Timestamp) {
    let transition = settlement.resolve(now, None);
    let Some(Failure { cause, message: error }) = transition.failure else { return };
    let (cause, max_attempts) = (cause.as_str(), job.terms.attempts_by(policy));
    match (transition.ended, transition.state) {
        (Some(AttemptEnd::Retried), State::Waiting { due, .. }) => tracing::warn!(
            job.id = %job.id, kind = %job.kind, queue = %job.queue, attempt = job.attempt, max_attempts, cause, error,
            next_run = %due, "attempt failed; retrying"
        ),
        (Some(AttemptEnd::Failed), _) => tracing::error!(
            job.id = %job.id, kind = %job.kind, queue = %job.queue, attempt = job.attempt, max_attempts, cause, error,
            "job failed"
        ),
        _ => {} // Cancelled.
    }
}

fn log_lost(job: &Job, policy: &RetryPolicy, message: &str) {
    tracing::warn!(
        job.id = %job.id, kind = %job.kind, queue = %job.queue, attempt = job.attempt,
        max_attempts = job.terms.attempts_by(policy), cause = Cause::Lost.as_str(), fence = %job.fence, "{message}"
    );
}
