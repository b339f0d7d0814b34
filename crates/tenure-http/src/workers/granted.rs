//! The jobs that this server has granted to workers: what it knows of them it need not ask the store again. It may be
//! forgotten at any time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Args, Fence, JobId, JobRecord, State};

use crate::api::Api;
use crate::problem::{Problem, ProblemType};
use crate::workers::claim::LEASE;

/// Jobs that are kept in mind at most.
const MOST: usize = 100_000;

/// The jobs that were granted here and have not ended.
#[derive(Default)]
pub(crate) struct Granted {
    jobs: Mutex<BTreeMap<(Fence, JobId), Arc<JobRecord>>>,
}

impl Granted {
    pub(crate) fn remember(&self, jobs: &[Arc<JobRecord>]) {
        let mut kept = self.lock();
        kept.extend(jobs.iter().map(|job| ((job.fence, job.id), Arc::new(without_args(job)))));
        while kept.len() > MOST {
            // The one that was granted first.
            kept.pop_first();
        }
    }

    pub(crate) fn forget(&self, job: &JobRecord) {
        self.lock().remove(&(job.fence, job.id));
    }

    fn find(&self, fence: Fence, id: JobId) -> Option<Arc<JobRecord>> {
        self.lock().get(&(fence, id)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Fence, JobId), Arc<JobRecord>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All that is needed to end it.
fn without_args(job: &JobRecord) -> JobRecord {
    JobRecord { args: Args::stored(b"null"), failure: None, progress: None, ..job.clone() }
}

/// The job that was granted under this token, as far as it is known here without asking: the store decides whether it
/// is still held.
pub(crate) async fn of_token(api: &Api, id: JobId, token: &str) -> Result<Arc<JobRecord>, Problem> {
    grant_of_token(api, id, token).await.map(|(job, _)| job)
}

/// The same, and for how long it was granted.
pub(crate) async fn grant_of_token(
    api: &Api,
    id: JobId,
    token: &str,
) -> Result<(Arc<JobRecord>, Duration), Problem> {
    let (fence, lease) = api.key().await?.grant(id, token)?;
    if let Some(job) = api.granted().find(fence, id) {
        return if api.reach().covers_job(&job) { Ok((job, lease)) } else { Err(api.missing(id)) };
    }
    let job = api.job(id).await?;
    if job.fence == fence { Ok((Arc::new(job), lease)) } else { Err(lost(id)) }
}

/// For how long a job was granted that has just been.
pub(crate) fn lease_of(job: &JobRecord) -> Duration {
    match (&job.state, job.started) {
        (State::Running { until, .. }, Some(started)) => until.since(started),
        (
            State::Running { .. } | State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. },
            _,
        ) => LEASE,
    }
}

/// What a worker is told that has lost its job.
pub(crate) fn lost(id: JobId) -> Problem {
    let detail = format!("job {id} was taken from this worker, which may write nothing about it any more");
    Problem::new(ProblemType::LeaseLost, detail).with("job_id", id.to_string())
}
