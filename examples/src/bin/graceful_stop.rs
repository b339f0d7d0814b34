//! What happens to running jobs when my program stops?

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Error, Failed, Job, JobId, Run, Tenure, Worker};
use tokio::sync::Semaphore;

struct App {
    started: Arc<Semaphore>,
}

#[derive(Serialize, Deserialize)]
struct Bake {
    seconds: u64,
}

impl Job for Bake {
    const KIND: &'static str = "bake";
    type Output = ();
}

async fn bake(run: Run<App>, job: Bake) -> Result<(), Failed> {
    run.app().started.add_permits(1);
    // An error that is caused by the stop gives the job back. It is not a failure.
    run.sleep(Duration::from_secs(job.seconds)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let tenure = Tenure::open(&url).await?;
    let rolls = tenure.enqueue(Bake { seconds: 0 }).await?.id();
    let cake = tenure.enqueue(Bake { seconds: 3600 }).await?.id();
    let bread = tenure.enqueue(Bake { seconds: 3600 }).await?.id();

    // Any future can end the worker. This one resolves when the third job has started.
    let started = Arc::new(Semaphore::new(0));
    let seen = Arc::clone(&started);
    let shutdown = async move { drop(seen.acquire_many(3).await) };

    let stopped = Worker::new(&tenure, App { started })
        .queue("default", 2)
        .job(bake)
        .finish_within(Duration::from_millis(200))
        .stop_grace(Duration::from_millis(100))
        .run(shutdown)
        .await?;
    println!("settled {}, left unsettled {}", stopped.settled, stopped.unsettled);

    // Another process, or this one after a restart, finds the rest in the file.
    tenure.close().await?;
    let tenure = Tenure::open(&url).await?;
    for (name, id) in [("rolls", rolls), ("cake", cake), ("bread", bread)] {
        println!("{name}: {}", status(&tenure, id).await?);
    }
    Ok(())
}

async fn status(tenure: &Tenure, id: JobId) -> Result<String, Error> {
    let job = tenure.jobs().get(id).await?;
    let state = job.state.name(tenure.store().clock().now());
    Ok(format!("{state}, attempts spent {}", job.attempt))
}
