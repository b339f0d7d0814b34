//! How do I stop workers remotely, without a signal?

use std::future::pending;

use serde::{Deserialize, Serialize};
use tenure::{Error, Failed, Job, Run, Tenure, Worker, WorkerCommand};

#[derive(Serialize, Deserialize)]
struct Sweep;

impl Job for Sweep {
    const KIND: &'static str = "sweep";
    type Output = ();
}

async fn sweep(_run: Run<()>, _job: Sweep) -> Result<(), Failed> {
    Ok(())
}

/// Another program can do this with its own handle, or an operator with `tenure worker stop`.
async fn end_all(tenure: &Tenure) -> Result<(), Error> {
    for host in tenure.hosts().await? {
        tenure.worker_commands().tell(host.id, WorkerCommand::Terminate).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    let id = tenure.enqueue(Sweep).await?.id();
    // Nothing in this program stops the worker.
    let working = Worker::new(&tenure, ()).queue("default", 1).job(sweep).run(pending::<()>());
    let telling = async {
        tenure.wait_for::<Sweep>(id).await?;
        end_all(&tenure).await
    };
    let (stopped, told) = tokio::join!(working, telling);
    told?;
    let stopped = stopped?;
    println!("settled {}, told to stop: {}", stopped.settled, stopped.told);
    Ok(())
}
