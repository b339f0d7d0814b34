//! A retry in a test.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Failed, Job, Run, StateName, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Fetch {}

impl Job for Fetch {
    const KIND: &'static str = "fetch";
    type Output = ();
}

async fn fetch(run: Run<()>, _job: Fetch) -> Result<(), Failed> {
    if run.attempt() == 1 { Err(Failed::retry("connection reset")) } else { Ok(()) }
}

#[tokio::test]
async fn a_failed_attempt_is_retried_after_its_wait() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(fetch));
    lab.tenure().enqueue(Fetch {}).await?;
    assert_eq!(lab.turn().await?[0].state, StateName::Scheduled);
    lab.advance(Duration::from_secs(3));
    assert_eq!(lab.turn().await?[0].state, StateName::Succeeded);
    Ok(())
}
