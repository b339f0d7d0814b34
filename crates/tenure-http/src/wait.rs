//! Waiting until a job is as somebody wants it, but not for long.

use std::time::Duration;

use tenure::{JobId, JobRecord};

use crate::api::Api;
use crate::problem::Problem;

/// The job once it is so, or as it is when the time is over or the server is about to end.
pub(crate) async fn until(
    api: &Api,
    id: JobId,
    wait: Duration,
    is_so: impl Fn(&JobRecord) -> bool,
) -> Result<JobRecord, Problem> {
    if wait.is_zero() {
        return api.job(id).await;
    }
    let mut watcher = api.watchers().watch(id);
    let over = api.over(wait);
    tokio::pin!(over);
    loop {
        {
            // Drop the job before the wait: many requests may wait for large jobs.
            let job = api.job(id).await?;
            if is_so(&job) {
                return Ok(job);
            }
        }
        tokio::select! {
            biased;
            // First, so that no amount of changes keeps anybody waiting.
            () = &mut over => return api.job(id).await,
            () = watcher.changed() => {}
        }
    }
}
