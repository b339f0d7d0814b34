//! One job that becomes many, and one that collects their results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Draft, End, Failed, Job, JobId, Run, StateName, Worker};

use crate::{Outcome, child};

#[derive(Serialize, Deserialize)]
struct Report {}

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = JobId;
}

#[derive(Serialize, Deserialize)]
struct Sum {
    region: u32,
}

impl Job for Sum {
    const KIND: &'static str = "sum";
    type Output = u64;
}

#[derive(Serialize, Deserialize)]
struct Combine {
    parts: Vec<JobId>,
}

impl Job for Combine {
    const KIND: &'static str = "combine";
    type Output = u64;
}

/// Fans out: one job for each region, and one that waits for all of them.
async fn report(run: Run<Arc<App>>, _job: Report) -> Result<JobId, Failed> {
    let mut batch = Vec::new();
    let mut parts = Vec::new();
    for region in 1..=run.app().regions {
        let id = child(run.id(), region);
        batch.push(Draft::of(&Sum { region }).derived_id(id));
        parts.push(id);
    }
    let last = child(run.id(), u32::MAX);
    batch.push(Draft::of(&Combine { parts: parts.clone() }).after_jobs(parts).derived_id(last));
    run.tenure().enqueue_all(batch).await?;
    Ok(last)
}

/// Fans in: reads the results of the parts, which have all succeeded.
async fn combine(run: Run<Arc<App>>, job: Combine) -> Result<u64, Failed> {
    let mut total = 0;
    for part in job.parts {
        total += run.tenure().wait_for::<Sum>(part).await?;
    }
    Ok(total)
}

struct App {
    regions: u32,
    unknown_region: Option<u32>,
}

async fn sum(run: Run<Arc<App>>, job: Sum) -> Result<u64, Failed> {
    if run.app().unknown_region == Some(job.region) {
        return Err(Failed::for_good("the region was closed"));
    }
    Ok(u64::from(job.region) * 100)
}

fn lab(unknown_region: Option<u32>) -> Lab<Arc<App>> {
    let app = Arc::new(App { regions: 20, unknown_region });
    Lab::new(|tenure| Worker::new(tenure, app).queue("default", 8).job(report).job(sum).job(combine))
}

#[tokio::test]
async fn the_parts_are_enqueued_once_and_their_results_are_combined() -> Outcome {
    let mut lab = lab(None);
    let parent = lab.tenure().enqueue(Report {}).await?.id();
    lab.drain().await?;
    let last = lab.tenure().wait_for::<Report>(parent).await?;
    assert_eq!(lab.tenure().wait_for::<Combine>(last).await?, 21_000);

    // The parent runs again, as it does if its worker dies just before it is done.
    lab.tenure().jobs().redo(parent).await?;
    assert_eq!(lab.drain().await?.len(), 1, "nothing was enqueued twice");
    Ok(())
}

#[tokio::test]
async fn a_part_that_fails_cancels_the_last_job() -> Outcome {
    let mut lab = lab(Some(7));
    let parent = lab.tenure().enqueue(Report {}).await?.id();
    lab.drain().await?;
    let last = lab.tenure().wait_for::<Report>(parent).await?;
    let ended = lab.tenure().wait(last).await?;
    assert_eq!(ended.end, End::Cancelled);
    let failed = lab.tenure().jobs().get(child(parent, 7)).await?;
    assert_eq!(failed.state.name(lab.now()), StateName::Failed);
    Ok(())
}
