//! Args that have changed while old jobs wait.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Draft, Failed, Job, Run, Tenure, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Welcome {
    #[serde(alias = "user_id")]
    user: i64,
    #[serde(default)]
    language: Option<String>,
}

impl Job for Welcome {
    const KIND: &'static str = "welcome";
    type Output = String;
}

async fn welcome(_run: Run<()>, job: Welcome) -> Result<String, Failed> {
    Ok(format!("{} {}", job.user, job.language.as_deref().unwrap_or("en")))
}

#[tokio::test]
async fn a_job_with_the_old_args_is_handled() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    let old = Draft::raw(Welcome::KIND, &json!({ "user_id": 7 }));
    let id = tenure.enqueue_draft(old).await?.id();
    let mut greeted = None;
    let done = async { greeted = Some(tenure.wait_for::<Welcome>(id).await) };
    Worker::new(&tenure, ()).queue("default", 1).job(welcome).run(done).await?;
    assert_eq!(greeted.ok_or("the worker ended early")??, "7 en");
    Ok(())
}
