//! What happens after a handler fails, and how does it decide that?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Backoff, Failed, Job, RetryPolicy, Run, Tenure, Terms, Worker};

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Fetch {
    Flaky,
    RateLimited,
    Missing,
    NotReady,
    Hopeless,
}

impl Job for Fetch {
    const KIND: &'static str = "fetch";
    type Output = String;

    fn terms() -> Terms {
        let backoff = Backoff::Fixed(Duration::from_millis(50));
        let retry = RetryPolicy { backoff, max_attempts: 3, ..RetryPolicy::default() };
        Terms { retry: Some(retry), timeout: Some(Duration::from_secs(10)), ..Terms::default() }
    }
}

async fn fetch(run: Run<()>, job: Fetch) -> Result<String, Failed> {
    match job {
        // Any error means: retry by the policy.
        Fetch::Flaky if run.attempt() < 3 => Err(std::io::Error::other("connection reset").into()),
        Fetch::Hopeless => Err(Failed::retry("still no answer")),
        Fetch::RateLimited if run.attempt() < 2 => {
            Err(Failed::retry_after("too many requests", Duration::from_millis(200)))
        }
        Fetch::Missing => Err(Failed::for_good("404: there is no such page")),
        // Snoozing is not failing: it spends no attempt. Each start counts as a delivery.
        Fetch::NotReady if run.job().delivery < 5 => Err(Failed::snooze(Duration::from_millis(50))),
        Fetch::Flaky | Fetch::RateLimited | Fetch::NotReady => Ok("<html>".into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), tenure::Error> {
    let tenure = Tenure::open("memory:").await?;
    let mut jobs = Vec::new();
    for job in [Fetch::Flaky, Fetch::RateLimited, Fetch::Missing, Fetch::NotReady, Fetch::Hopeless] {
        jobs.push((job, tenure.enqueue(job).await?.id()));
    }

    let all_done = async {
        for (_, id) in &jobs {
            let _ = tenure.wait(*id).await;
        }
    };
    Worker::new(&tenure, ()).queue("default", 8).job(fetch).run(all_done).await?;

    for (job, id) in jobs {
        let record = tenure.jobs().get(id).await?;
        let ends: Vec<&str> = (tenure.jobs().attempts(id).await?.iter())
            .map(|attempt| attempt.ended.map_or("running", |(_, end)| end.as_str()))
            .collect();
        println!("{job:?}: {} after {} attempts", ends.join(", "), record.attempt);
        if let Some(failure) = record.failure {
            println!("  the last failure: {failure}");
        }
    }
    Ok(())
}
