//! How do I limit the concurrency or the rate of jobs across all workers?

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Failed, Job, JobId, Limit, Rate, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl Job for Mail {
    const KIND: &'static str = "mail";
    type Output = ();
}

/// The number of running jobs, and its maximum.
#[derive(Default)]
struct Count {
    now: AtomicU32,
    most: AtomicU32,
}

async fn mail(run: Run<Arc<Count>>, _job: Mail) -> Result<(), Failed> {
    let now = run.app().now.fetch_add(1, Ordering::SeqCst) + 1;
    run.app().most.fetch_max(now, Ordering::SeqCst);
    run.sleep(Duration::from_millis(20)).await?;
    run.app().now.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

fn drafts(count: usize) -> impl Iterator<Item = Draft> {
    (0..count).map(|n| Draft::of(&Mail { to: format!("reader-{n}@example.org") }))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    at_once(&tenure).await?;
    of_a_queue(&tenure).await?;
    in_a_time(&tenure).await
}

/// Each job brings the number. The last one counts.
async fn at_once(tenure: &Tenure) -> Result<(), Error> {
    let accepted = tenure.enqueue_all(drafts(9).map(|draft| draft.limited("smtp", 2))).await?;
    let ids: Vec<JobId> = accepted.into_iter().map(|accepted| accepted.id()).collect();
    println!("the third: {}", tenure.explain(ids[2]).await?);
    let count = work(tenure, &ids).await?;
    println!("a number: {} at once", count.most.load(Ordering::SeqCst));
    Ok(())
}

/// A queue has one limit for all its jobs, whatever their kind.
async fn of_a_queue(tenure: &Tenure) -> Result<(), Error> {
    tenure.queues().limit("default", Limit::of(3)).await?;
    let accepted = tenure.enqueue_all(drafts(9)).await?;
    let ids: Vec<JobId> = accepted.into_iter().map(|accepted| accepted.id()).collect();
    let count = work(tenure, &ids).await?;
    println!("a queue: {} at once", count.most.load(Ordering::SeqCst));
    tenure.queues().limit("default", Limit::default()).await?;
    Ok(())
}

/// An operator sets a rate: twenty starts a second, without bursts.
async fn in_a_time(tenure: &Tenure) -> Result<(), Error> {
    let rate = Rate::new(20, Duration::from_secs(1)).burst(1);
    tenure.limits().set("smtp", rate).await?;
    let accepted = tenure.enqueue_all(drafts(5).map(|draft| draft.limit_key("smtp"))).await?;
    let ids: Vec<JobId> = accepted.into_iter().map(|accepted| accepted.id()).collect();
    let started = tenure.now();
    work(tenure, &ids).await?;
    let kept = tenure.now().since(started) >= Duration::from_millis(4 * 50);
    println!(
        "a rate: 5 jobs in {}",
        if kept { "no less than a fifth of a second" } else { "too short a time" }
    );
    for info in tenure.limits().list().await? {
        println!("limit {}: set by us, {} of it running", info.key, info.meter.running);
    }
    Ok(())
}

async fn work(tenure: &Tenure, ids: &[JobId]) -> Result<Arc<Count>, Error> {
    let ended = async {
        for id in ids {
            drop(tenure.wait(*id).await);
        }
    };
    let count = Arc::new(Count::default());
    Worker::new(tenure, Arc::clone(&count)).queue("default", 8).job(mail).run(ended).await?;
    Ok(count)
}
