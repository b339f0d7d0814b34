//! Jobs in a file, shared by two programs.

use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, Run, StateName, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Hello {
    name: String,
}

impl Job for Hello {
    const KIND: &'static str = "hello";
    type Output = String;
}

async fn hello(_run: Run<()>, job: Hello) -> Result<String, Failed> {
    Ok(format!("Hello, {}!", job.name))
}

/// Opens the file in a folder of the test instead of the folder in which a program was started.
struct Tenure;

impl Tenure {
    async fn open(url: &str) -> Result<tenure::Tenure, tenure::Error> {
        thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a folder can be made"));
        let place = FOLDER.with(|folder| folder.path().to_owned());
        tenure::Tenure::open(&url.replace("sqlite://", &format!("sqlite://{}/", place.display()))).await
    }
}

/// What a program does to enqueue.
async fn enqueue() -> Outcome {
    let tenure = Tenure::open("sqlite://jobs.db").await?;
    tenure.enqueue(Hello { name: "Ada".into() }).await?;
    tenure.close().await?;
    Ok(())
}

/// What another one does to work until it gets a signal.
async fn work() -> Outcome {
    let tenure = Tenure::open("sqlite://jobs.db").await?;
    let worker = Worker::new(&tenure, ()).queue("default", 8).job(hello);
    worker.run(tenure::shutdown_signal()).await?;
    tenure.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_job_in_a_file_is_done_by_another_program() -> Outcome {
    enqueue().await?;
    let tenure = Tenure::open("sqlite://jobs.db").await?;
    let done = async {
        loop {
            let counts = tenure.counts().await?;
            if counts.iter().any(|count| count.state == StateName::Succeeded) {
                return Ok::<_, tenure::Error>(());
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        worked = work() => worked,
        done = done => Ok(done?),
    }
}
