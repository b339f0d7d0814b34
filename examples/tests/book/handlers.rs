//! Errors of other types than `std::error::Error`, and arguments that change.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::testing::Lab;
use tenure::{Draft, Failed, Job, Run, StateName, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Import {
    file: String,
}

impl Job for Import {
    const KIND: &'static str = "import";
    type Output = u64;
}

/// Stands for a function that returns `anyhow::Result`.
fn read_all(file: &str) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    Err(format!("{file}: permission denied").into())
}

async fn import(_run: Run<()>, job: Import) -> Result<u64, Failed> {
    read_all(&job.file).map_err(|error| Failed::retry(format!("{error:#}")))
}

#[derive(Serialize, Deserialize)]
struct SendMail {
    #[serde(alias = "user")]
    account: u64,
    #[serde(default)]
    language: Option<String>,
}

impl Job for SendMail {
    const KIND: &'static str = "send_mail";
    type Output = u64;
}

async fn send_mail(_run: Run<()>, job: SendMail) -> Result<u64, Failed> {
    let _ = job.language;
    Ok(job.account)
}

#[tokio::test]
async fn any_error_can_be_converted() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(import));
    lab.tenure().enqueue(Import { file: "march.csv".into() }).await?;
    let ran = lab.turn().await?;
    assert_eq!(ran[0].state, StateName::Scheduled);
    let failure = ran[0].failure.as_ref().map(ToString::to_string);
    assert_eq!(failure.as_deref(), Some("march.csv: permission denied"));
    Ok(())
}

#[tokio::test]
async fn jobs_of_an_older_version_are_still_read() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(send_mail));
    for args in [json!({ "user": 7 }), json!({ "account": 7, "language": "da", "from_the_future": true })] {
        lab.tenure().enqueue_draft(Draft::raw("send_mail", &args)).await?;
    }
    lab.tenure().enqueue_draft(Draft::raw("send_mail", &json!({ "acount": 7 }))).await?;
    let ran = lab.drain().await?;
    let states: Vec<StateName> = ran.iter().map(|ran| ran.state).collect();
    assert_eq!(states, [StateName::Succeeded, StateName::Succeeded, StateName::Failed]);
    Ok(())
}
