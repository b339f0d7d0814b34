//! Tests of one handler, of code that enqueues, and of schedules; and a bulk operation.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::when::every;
use tenure::{BulkAct, Failed, Job, PageAsk, Run, Tenure, Worker, search};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Quote {
    items: u64,
}

impl Job for Quote {
    const KIND: &'static str = "quote";
    type Output = u64;
}

struct Prices {
    euro: u64,
}

async fn quote(run: Run<Prices>, job: Quote) -> Result<u64, Failed> {
    Ok(job.items * run.app().euro)
}

async fn place_order(tenure: &Tenure, items: u64) -> Outcome {
    if items > 0 {
        tenure.enqueue(Quote { items }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn one_handler_is_tested_with_its_state() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, Prices { euro: 7 }).queue("default", 1).job(quote));
    let id = lab.tenure().enqueue(Quote { items: 3 }).await?.id();
    lab.turn().await?;
    assert_eq!(lab.tenure().wait_for::<Quote>(id).await?, 21);
    Ok(())
}

#[tokio::test]
async fn code_that_enqueues_needs_no_worker() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    place_order(&tenure, 0).await?;
    assert!(tenure.counts().await?.is_empty(), "an empty order enqueues nothing");
    place_order(&tenure, 3).await?;
    let page = tenure.jobs().page(PageAsk { at_most: 10, ..PageAsk::default() }).await?;
    assert_eq!(page.jobs[0].kind.as_str(), "quote");
    Ok(())
}

#[tokio::test]
async fn a_schedule_fires_as_time_passes() -> Outcome {
    let mut lab = Lab::new(|tenure| {
        let worker = Worker::new(tenure, Prices { euro: 7 }).queue("default", 1).job(quote);
        worker.timer("hourly", every(Duration::from_secs(3600)), || Quote { items: 1 })
    });
    lab.advance(Duration::from_secs(3600));
    assert_eq!(lab.drain().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_bulk_operation_is_a_job() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    let failed = search("state:failed kind:import created:>-12h", tenure.now())?;
    let operation = tenure.bulk(BulkAct::Retry, failed).await?.await?;
    assert_eq!(tenure.jobs().get(operation.id()).await?.kind.as_str(), "tenure.bulk");
    Ok(())
}
