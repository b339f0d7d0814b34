//! Workers with less usual settings.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure::testing::Lab;
use tenure::{Draft, Failed, Job, Kind, Run, Tenure, Worker};
use tokio::sync::watch;

use crate::Outcome;

async fn forward(run: Run<()>) -> Result<Value, Failed> {
    let args: Value = serde_json::from_slice(run.job().args.as_bytes())?;
    Ok(json!({ "forwarded": args }))
}

#[derive(Serialize, Deserialize)]
struct Charge {}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();
}

async fn charge(_run: Run<()>, _job: Charge) -> Result<(), Failed> {
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Report {}

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = ();
}

async fn report(_run: Run<()>, _job: Report) -> Result<(), Failed> {
    Ok(())
}

#[tokio::test]
async fn a_kind_without_a_type_has_a_handler() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    let id = tenure.enqueue_draft(Draft::raw("webhook_in", &json!({ "order": 7 }))).await?.id();
    let worker = Worker::new(&tenure, ()).queue("default", 4).raw_job("webhook_in", forward);
    worker.run(tenure.wait(id)).await?;
    let output = tenure.jobs().get(id).await?.output.map(|output| output.value).unwrap_or_default();
    assert_eq!(serde_json::from_slice::<Value>(&output)?, json!({ "forwarded": { "order": 7 } }));
    Ok(())
}

#[tokio::test]
async fn a_kind_is_left_to_others_until_the_worker_is_told_otherwise() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    let (leave, left) = watch::channel(BTreeSet::new());
    let worker = Worker::new(&tenure, ()).queue("default", 4).job(charge).job(report).leaving(left);
    leave.send(BTreeSet::from([Kind::new(Charge::KIND)?]))?;

    let charged = tenure.enqueue(Charge {}).await?.id();
    let reported = tenure.enqueue(Report {}).await?.id();
    let working = worker.run(tenure.wait(charged));
    let telling = async {
        drop(tenure.wait(reported).await);
        assert!(!tenure.jobs().get(charged).await.is_ok_and(|job| job.state.is_finished()));
        leave.send(BTreeSet::new())
    };
    let (stopped, told) = tokio::join!(working, telling);
    told?;
    assert_eq!(stopped?.settled, 2);
    Ok(())
}

#[tokio::test]
async fn a_worker_that_only_fires_schedules_needs_no_queue() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).only_timers());
    lab.tenure().enqueue(Report {}).await?;
    assert!(lab.turn().await?.is_empty());
    Ok(())
}
