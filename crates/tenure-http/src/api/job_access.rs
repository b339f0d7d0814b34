//! Jobs that a client reaches: by its token, by the owner of the job, and by the service that mounts the routes.

use tenure::{FaultCause, JobId, JobRecord, Name};

use super::Api;
use crate::problem::{Problem, ProblemType};

impl Api {
    /// Returns a job. One that is out of the client's reach is missing.
    pub(crate) async fn job(&self, id: JobId) -> Result<JobRecord, Problem> {
        // Held until this request has the job, so that few requests read a large job at once. The semaphore never closes.
        let _permit = self.inner.job_reads.acquire().await.ok();
        let found = match self.tenure().store().job(id).await {
            // Its queue and kind, which decide about its reach, are unknown.
            Err(fault) if !self.reaches_all() && fault.cause() == Some(FaultCause::UnreadableData) => None,
            found => found?,
        };
        let is_reached = |job: &JobRecord| self.reach().covers_job(job) && self.may_be_shown(job);
        let found = found.filter(is_reached).ok_or_else(|| self.missing(id))?;
        if self.may_access(&found) {
            return Ok(found);
        }
        if !self.may_read() {
            return Err(self.missing(id));
        }
        let detail = format!("job {id} was enqueued by another client; this requires the scope manage");
        Err(Problem::new(ProblemType::Forbidden, detail).with("needs", "manage"))
    }

    fn may_access(&self, job: &JobRecord) -> bool {
        !self.own_only || job.terms.owner.as_deref() == self.who.name()
    }

    /// Returns true if this request has to do only with jobs that its client enqueued.
    pub(crate) fn sees_own_only(&self) -> bool {
        self.own_only
    }

    fn reaches_all(&self) -> bool {
        self.reach().is_whole() && !self.own_only
    }

    /// Returns true if the service that mounts the status pages lets this request see the job.
    fn may_be_shown(&self, job: &JobRecord) -> bool {
        let Some(items) = &self.inner.rules.items else { return true };
        self.asks.as_ref().is_some_and(|asks| (items.may)(asks, job))
    }

    /// Refuses a client that does not reach this job, without a look at the store for clients that reach all.
    pub(crate) async fn reached(&self, id: JobId) -> Result<(), Problem> {
        if self.reaches_all() {
            return Ok(());
        }
        self.job(id).await.map(drop)
    }

    /// Returns true if there is a job with this ID and the client must not see it. A deleted job is no secret: its own client
    /// may ask for it again.
    pub(crate) async fn conceals(&self, id: JobId) -> bool {
        if self.reaches_all() {
            return false;
        }
        match self.tenure().store().job(id).await {
            Ok(Some(job)) => {
                !(self.reach().covers_job(&job) && self.may_be_shown(&job) && self.may_access(&job))
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Takes the job out of a unique conflict if the client must not see it.
    pub(crate) async fn conceal(&self, problem: Problem) -> Problem {
        match problem.key_holder() {
            Some(id) if self.conceals(id).await => concealed_holder(),
            Some(_) | None => problem,
        }
    }

    /// Refuses a client that does not reach jobs of this kind in this queue.
    pub(crate) fn check_reach(&self, queue: &str, kind: &str) -> Result<(), Problem> {
        if self.reach().covers(queue, kind) {
            return Ok(());
        }
        Err(self.beyond(&format!("jobs of kind {kind:?} in queue {queue:?}")))
    }

    /// Refuses to set the job of a program's schedule unless the client's reach is the whole store, as the routes for
    /// programs do. Such a schedule runs the program with any args. It has the name of its kind, `SET.PROGRAM`. Its queue
    /// does not matter, because jobs can be moved to another queue.
    pub(crate) fn check_program(&self, schedule: &Name, kind: &str) -> Result<(), Problem> {
        if self.reach().is_whole() || schedule.as_str() != kind || !kind.contains('.') {
            return Ok(());
        }
        let detail = format!(
            "the schedule has the name of its kind, {kind}, as schedules of programs do, and so needs an access token for the \
             whole store; give the schedule another name"
        );
        Err(Problem::new(ProblemType::Forbidden, detail))
    }

    /// Returns the problem for jobs that are out of the client's reach.
    pub(crate) fn beyond(&self, what: &str) -> Problem {
        let detail = format!("the access token does not cover {what}; `GET /v1/whoami` shows its limits");
        Problem::new(ProblemType::Forbidden, detail)
    }

    /// Returns the problem for a missing job. A deleted job leaves no trace, so it looks like an ID that never existed.
    pub(crate) fn missing(&self, id: JobId) -> Problem {
        let detail =
            format!("job {id} not found: no such job was accepted, or it was deleted after its retention");
        Problem::new(ProblemType::NotFound, detail)
    }
}

/// Returns the problem for a unique key that a job out of the client's reach holds.
pub(crate) fn concealed_holder() -> Problem {
    Problem::new(
        ProblemType::UniqueConflict,
        "a job that this token cannot see holds the unique key; use a token that can see it: one of the same name, \
         or one with the scope read for its queue and kind",
    )
}
