//! The jobs that this server has granted to workers: what it knows of them it need not ask the store again. It may be
//! forgotten at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Args, Fence, Filter, JobId, JobRecord, PageAsk, State, Tenure, Terms, Values, limits};

use crate::api::Api;
use crate::problem::{Problem, ProblemType};
use crate::spans::Context;
use crate::trace::PARENT;
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
        kept.extend(jobs.iter().map(|job| ((job.fence, job.id), Arc::new(needed(job)))));
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

/// Returns a copy of the job with only the fields that its end needs. Other texts may be large, and no quota counts them here.
fn needed(job: &JobRecord) -> JobRecord {
    JobRecord {
        args: Args::stored(b"null"),
        terms: terms(&job.terms),
        cancel: None,
        failure: None,
        progress: None,
        output: None,
        ..job.clone()
    }
}

/// Returns terms without tags, metadata and the jobs before this one. The trace of the job stays, for its spans.
fn terms(all: &Arc<Terms>) -> Arc<Terms> {
    if all.meta.is_empty() && all.tags.is_empty() && all.after.is_none() {
        return Arc::clone(all);
    }
    let parent = all.meta.get(PARENT).filter(|text| Context::read(text).is_some());
    let meta = parent.map(|text| (PARENT.to_owned(), text.clone())).into_iter().collect();
    Arc::new(Terms { meta, tags: Vec::new(), after: None, ..Terms::clone(all) })
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

/// A job that was granted, and for how long it was.
pub(crate) type GrantOf = (Arc<JobRecord>, Duration);

/// The same for many. What is not known here, because another server has granted it, is read together and known from then on.
pub(crate) async fn grants_of_tokens(
    api: &Api,
    said: &[(JobId, &str)],
) -> Result<Vec<Result<GrantOf, Problem>>, Problem> {
    let key = api.key().await?;
    let grants: Vec<_> = said.iter().map(|(id, token)| key.grant(*id, token)).collect();
    let (mut unknown, mut found) = (Vec::new(), BTreeMap::new());
    for ((id, _), grant) in said.iter().zip(&grants) {
        let Ok((fence, _)) = grant else { continue };
        match api.granted().find(*fence, *id) {
            Some(job) => _ = found.insert((*fence, *id), job),
            None => unknown.push(*id),
        }
    }
    let read: Vec<Arc<JobRecord>> = read(api.tenure(), unknown).await?.into_iter().map(Arc::new).collect();
    let fences: BTreeSet<Fence> = grants.iter().flatten().map(|(fence, _)| *fence).collect();
    let held: Vec<_> = read.iter().filter(|job| fences.contains(&job.fence)).cloned().collect();
    api.granted().remember(&held);
    let there: BTreeMap<JobId, Arc<JobRecord>> = read.into_iter().map(|job| (job.id, job)).collect();
    let judged = said.iter().zip(grants).map(|((id, _), grant)| {
        let (fence, lease) = grant?;
        let job =
            found.get(&(fence, *id)).or_else(|| there.get(id)).filter(|job| api.reach().covers_job(job));
        let job = job.ok_or_else(|| api.missing(*id))?;
        if job.fence == fence { Ok((Arc::clone(job), lease)) } else { Err(lost(*id)) }
    });
    Ok(judged.collect())
}

/// Reads the jobs that exist, without args and results: a thousand jobs can have half a gigabyte of them.
async fn read(tenure: &Tenure, ids: Vec<JobId>) -> Result<Vec<JobRecord>, Problem> {
    let (mut jobs, mut after) = (Vec::new(), None);
    if ids.is_empty() {
        return Ok(jobs);
    }
    let filter = Filter { ids, ..Filter::default() };
    loop {
        let (filter, at_most, values) = (filter.clone(), limits::PAGE_JOBS, Values::Omitted);
        let ask = PageAsk { filter, after, at_most, values, ..PageAsk::default() };
        let page = tenure.store().jobs(ask).await?;
        jobs.extend(page.jobs);
        after = page.next;
        if after.is_none() {
            return Ok(jobs);
        }
    }
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
    let detail = format!("job {id} was taken from this worker; its reports are rejected");
    Problem::new(ProblemType::LeaseLost, detail).with("job_id", id.to_string())
}

#[cfg(test)]
mod tests {
    use tenure::{Chance, Draft, MemoryStore, SystemClock, Tenure};

    use super::*;

    #[tokio::test]
    async fn jobs_of_old_tokens_are_read_without_their_args() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        let tenure = Tenure::on(Arc::new(store), Chance::seeded(1));
        let draft = Draft::raw("bill", &serde_json::json!({ "large": "x".repeat(200_000) }));
        let id = tenure.enqueue_draft(draft).await.unwrap().id();
        let read = read(&tenure, vec![id]).await.unwrap();
        assert_eq!((read[0].id, read[0].args.as_bytes().len()), (id, 0));
    }

    #[tokio::test]
    async fn a_granted_job_keeps_its_trace_but_no_other_metadata() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        let tenure = Tenure::on(Arc::new(store), Chance::seeded(1));
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let draft = Draft::raw("bill", &serde_json::json!({ "large": "x".repeat(2_000) }))
            .tag("large")
            .meta("note", &"x".repeat(1_000))
            .meta(PARENT, trace);
        let id = tenure.enqueue_draft(draft).await.unwrap().id();
        let job = Arc::new(tenure.jobs().get(id).await.unwrap());
        let granted = Granted::default();
        granted.remember(&[Arc::clone(&job)]);
        let kept = granted.find(job.fence, id).unwrap();
        assert_eq!(kept.args.as_bytes(), b"null");
        assert!(kept.terms.tags.is_empty());
        assert_eq!(kept.terms.meta, BTreeMap::from([(PARENT.to_owned(), trace.to_owned())]));
        assert_eq!((kept.id, &kept.kind, &kept.queue), (job.id, &job.kind, &job.queue));
    }
}
