//! How do I test my jobs? The page on testing shows this file.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Error, Failed, Job, Run, StateName, Worker};

#[derive(Serialize, Deserialize)]
struct Charge {
    cents: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    cents: u64,
}

impl Job for Receipt {
    const KIND: &'static str = "receipt";
    type Output = ();
}

async fn charge(run: Run<()>, job: Charge) -> Result<(), Failed> {
    if run.attempt() == 1 {
        return Err(Failed::retry_after("the bank is busy", Duration::from_secs(60)));
    }
    run.tenure().enqueue(Receipt { cents: job.cents }).await?;
    Ok(())
}

#[tokio::test]
async fn a_charge_is_tried_again_and_leaves_a_receipt() -> Result<(), Error> {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(charge));
    lab.tenure().enqueue(Charge { cents: 500 }).await?;

    let ran = lab.turn().await?;
    assert_eq!(ran[0].state, StateName::Scheduled);
    assert!(lab.turn().await?.is_empty(), "it is not due yet");

    lab.advance(Duration::from_secs(60));
    assert_eq!(lab.turn().await?[0].state, StateName::Succeeded);
    lab.assert_enqueued::<Receipt>(|receipt| receipt.cents == 500).await;
    Ok(())
}

async fn nightly(run: Run<()>, _job: Receipt) -> Result<(), Failed> {
    run.sleep(Duration::from_secs(8 * 3600)).await?;
    Ok(())
}

#[tokio::test]
async fn a_night_takes_no_time() -> Result<(), Error> {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 1).job(nightly));
    lab.tenure().enqueue(Receipt { cents: 1 }).await?;
    let evening = lab.now();

    assert_eq!(lab.drain().await?.len(), 1);
    assert_eq!(lab.now().since(evening), Duration::from_secs(8 * 3600));
    Ok(())
}
