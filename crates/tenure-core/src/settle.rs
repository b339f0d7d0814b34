//! Ending an ownership by its owner: a verdict becomes a settlement, a settlement a transition.

use std::sync::Arc;

use crate::{
    AttemptEnd, Cause, Due, End, Failure, Fence, Job, JobId, Output, Retention, RetryPolicy, State,
    Timestamp, Transition, Why,
};

/// The outcome of a handler's run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The job succeeded.
    Succeeded(Option<Output>),
    /// The job failed for good.
    Failed(Failure),
    /// The attempt failed; retry at `due`, or by the policy if `None`.
    Retry {
        /// The error.
        failure: Failure,
        /// Due time of the retry, if not by the policy.
        due: Option<Due>,
    },
    /// Call the handler again later; no attempt is spent.
    Snoozed(Due),
    /// Return the job to its place in line; no attempt is spent.
    Released,
    /// The attempt stopped because the job was cancelled.
    Cancelled(Failure),
}

/// Proof that this program may settle this job. Not `Clone`: settling spends it.
#[derive(Debug, PartialEq)]
pub struct Reserved {
    job: Arc<Job>,
}

impl Reserved {
    /// The proof of a grant; only stores make one, in the step that writes the grant.
    #[must_use]
    pub fn granted(job: Job) -> Self {
        Self { job: Arc::new(job) }
    }

    /// The job, as it was when it was granted.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the job, so that a store can hand it out in another form.
    #[must_use]
    pub fn into_job(self) -> Job {
        Arc::unwrap_or_clone(self.job)
    }

    /// The same, to be looked at by whoever does it.
    #[must_use]
    pub fn shared(&self) -> Arc<Job> {
        Arc::clone(&self.job)
    }

    /// The number of this ownership.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.job.fence
    }

    /// Decides how this ownership ends. `policy` counts if the job has none of its own; `chance` is
    /// between 0 and 1 and spreads the wait before a retry.
    #[must_use]
    pub fn settle(self, verdict: Verdict, policy: &RetryPolicy, chance: f64) -> Settlement {
        let job = self.job;
        let policy = job.terms.retry.as_ref().unwrap_or(policy);
        let spent = spent(&job, &verdict, policy);
        let (next, failure, output) = match verdict {
            Verdict::Succeeded(output) => (Next::Succeed, None, output),
            Verdict::Failed(failure) => (Next::Fail, Some(failure), None),
            Verdict::Cancelled(failure) => (Next::Cancel, Some(failure), None),
            Verdict::Retry { failure, due } => {
                let due = due.unwrap_or(Due::In(policy.delay(job.attempt, chance)));
                (Next::Wait { due, why: Why::Retry }, Some(failure), None)
            }
            Verdict::Snoozed(due) => (Next::Wait { due, why: Why::Snoozed }, None, None),
            Verdict::Released => {
                let due = job.state.due().map_or(Due::Now, Due::At);
                (Next::Wait { due, why: Why::Released }, None, None)
            }
        };
        let retention = job.terms.retention;
        Settlement {
            id: job.id,
            seq: job.seq,
            fence: job.fence,
            attempt: job.attempt,
            next,
            spent,
            failure,
            output,
            retention,
        }
    }
}

/// What stands against another attempt, if the verdict asks for one and a limit is met.
fn spent(job: &Job, verdict: &Verdict, policy: &RetryPolicy) -> Option<Failure> {
    let delivered_too_often = job.delivery >= policy.max_deliveries;
    match verdict {
        Verdict::Succeeded(_) | Verdict::Failed(_) | Verdict::Cancelled(_) => None,
        Verdict::Retry { failure, .. } => {
            (job.attempt >= job.terms.attempts_by(policy) || delivered_too_often).then(|| failure.clone())
        }
        Verdict::Snoozed(_) | Verdict::Released => delivered_too_often.then(|| {
            let most = policy.max_deliveries;
            Failure::new(
                Cause::Deliveries,
                &format!("delivered {} times; the maximum is {most}", job.delivery),
            )
        }),
    }
}

/// A decided end of an ownership, to be written under its fence.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    id: JobId,
    seq: u64,
    fence: Fence,
    attempt: u32,
    next: Next,
    /// Why it may not wait again though its verdict asks for that.
    spent: Option<Failure>,
    failure: Option<Failure>,
    output: Option<Output>,
    retention: Retention,
}

/// What a job does after an ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has succeeded.
    Succeed,
    /// It has failed.
    Fail,
    /// It is cancelled.
    Cancel,
    /// It waits again.
    Wait {
        /// Until then.
        due: Due,
        /// For this.
        why: Why,
    },
}

impl Settlement {
    /// Whether something went wrong in the attempt.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// What went wrong in the attempt.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns the output of a job that succeeds.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.output.as_ref()
    }

    /// Returns the retention of the job after its end.
    #[must_use]
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// Returns the same settlement with its errors and its output in another form, such as encrypted.
    ///
    /// # Errors
    /// The first error of `failure` or `output`.
    pub fn in_form<E>(
        self,
        failure: impl Fn(Failure) -> Result<Failure, E>,
        output: impl Fn(Output) -> Result<Output, E>,
    ) -> Result<Self, E> {
        Ok(Self {
            spent: self.spent.map(&failure).transpose()?,
            failure: self.failure.map(&failure).transpose()?,
            output: self.output.map(output).transpose()?,
            ..self
        })
    }

    /// Returns the settlement of an attempt that has completed its job in a transaction of its own.
    #[must_use]
    pub fn committed(self) -> Self {
        Self { next: Next::Succeed, spent: None, failure: None, output: None, ..self }
    }

    /// Returns the same settlement with an error that people see, although it costs no attempt.
    #[must_use]
    pub fn because(self, failure: Failure) -> Self {
        Self { failure: Some(failure), ..self }
    }

    /// The job.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The job's place in the order of acceptance: where its store finds it fastest.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The ownership that it ends. The store refuses any other.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What comes next, unless a wish to cancel came in between.
    #[must_use]
    pub fn next(&self) -> Next {
        if self.spent.is_some() { Next::Fail } else { self.next }
    }

    /// The transition to write, by the store's clock. `asked` is the wish to cancel that the row
    /// holds: a job whose end was asked for does not wait again. It is cancelled even where a limit
    /// would have failed it, so that the same answer of its handler means the same at every attempt.
    #[must_use]
    pub fn resolve(&self, now: Timestamp, asked: Option<&str>) -> Transition {
        let finished = |end: End, ended: AttemptEnd, failure: Option<Failure>| Transition {
            state: State::Finished { at: now, end },
            attempt: self.attempt,
            fence: self.fence,
            ended: Some(ended),
            failure,
            output: self.output.clone(),
            expires: self.retention.expiry(end, now),
        };
        match (self.next, asked) {
            (Next::Succeed, _) => finished(End::Succeeded, AttemptEnd::Succeeded, None),
            (Next::Fail, _) => finished(End::Failed, AttemptEnd::Failed, self.failure.clone()),
            (Next::Cancel, _) => finished(End::Cancelled, AttemptEnd::Cancelled, self.failure.clone()),
            (Next::Wait { .. }, Some(reason)) => {
                let failure = self.failure.clone().unwrap_or_else(|| Failure::new(Cause::Cancelled, reason));
                finished(End::Cancelled, AttemptEnd::Cancelled, Some(failure))
            }
            (Next::Wait { due, why }, None) => {
                if let Some(spent) = &self.spent {
                    return finished(End::Failed, AttemptEnd::Failed, Some(spent.clone()));
                }
                let ended = ended_by(why);
                let attempt = if ended.spends() { self.attempt } else { self.attempt.saturating_sub(1) };
                Transition {
                    state: State::Waiting { due: due.at(now), why },
                    attempt,
                    fence: self.fence,
                    ended: Some(ended),
                    failure: self.failure.clone(),
                    output: None,
                    expires: None,
                }
            }
        }
    }
}

fn ended_by(why: Why) -> AttemptEnd {
    match why {
        Why::Retry => AttemptEnd::Retried,
        Why::Snoozed => AttemptEnd::Snoozed,
        Why::Lost => AttemptEnd::Lost,
        Why::Released | Why::Enqueued | Why::Asked => AttemptEnd::Released,
    }
}
