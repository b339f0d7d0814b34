//! Why is my job not running?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Backoff, Draft, Error, Failed, Happening, Job, JobId, RetryPolicy, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Print {
    page: u32,
}

impl Job for Print {
    const KIND: &'static str = "print";
    type Output = ();
}

async fn print(_run: Run<()>, _job: Print) -> Result<(), Failed> {
    Err(Failed::retry("out of paper"))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    let hourly = Backoff::Fixed(Duration::from_secs(3600));
    let hourly = RetryPolicy { backoff: hourly, ..RetryPolicy::default() };
    let failing = tenure.enqueue(Print { page: 1 }).retry(hourly).await?.id();
    tell(&tenure, "before any worker is there", failing).await?;

    let explained = async {
        if let Err(error) = explain(&tenure, failing).await {
            println!("{error}");
        }
    };
    Worker::new(&tenure, ()).queue("default", 1).queue("poster", 1).job(print).run(explained).await?;
    Ok(())
}

async fn explain(tenure: &Tenure, failing: JobId) -> Result<(), Error> {
    until_it_has_failed(tenure, failing).await;
    // A worker registers while its first jobs already run.
    while tenure.hosts().await?.is_empty() {
        tokio::task::yield_now().await;
    }
    tell(tenure, "after its first attempt", failing).await?;

    let later = tenure.enqueue(Print { page: 2 }).after(Duration::from_secs(86_400)).await?.id();
    tell(tenure, "enqueued for tomorrow", later).await?;

    tenure.queues().pause("poster").await?;
    let poster = tenure.enqueue(Print { page: 3 }).queue("poster").await?.id();
    tell(tenure, "in a paused queue", poster).await?;

    let misspelt = tenure.enqueue_draft(Draft::raw("pirnt", &json!({ "page": 4 }))).await?.id();
    tell(tenure, "of a kind that is misspelt", misspelt).await?;

    let elsewhere = tenure.enqueue(Print { page: 5 }).queue("plotter").await?.id();
    tell(tenure, "in a queue that no worker serves", elsewhere).await
}

async fn tell(tenure: &Tenure, which: &str, id: JobId) -> Result<(), Error> {
    println!("a job {which}: {}", tenure.explain(id).await?);
    Ok(())
}

async fn until_it_has_failed(tenure: &Tenure, id: JobId) {
    let mut events = tenure.events();
    while let Ok(event) = events.recv().await {
        if event.id == id && matches!(event.what, Happening::Became { .. }) {
            return;
        }
    }
}
