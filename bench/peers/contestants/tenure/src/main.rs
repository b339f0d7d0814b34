//! Tenure, by its library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use serde::{Deserialize, Serialize};
use tenure::{Draft, Failed, Job, Run, Tenure, Worker};
use tokio::sync::oneshot;

const QUEUE: &str = "default";
const SLOTS: usize = 500;
/// While as many as there are slots run, as many are settled and as many are claimed.
const AHEAD: usize = 1_000;

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Args);

impl Job for Noop {
    const KIND: &'static str = "noop";
    type Output = ();
}

async fn noop(_run: Run<()>, job: Noop) -> Result<(), Failed> {
    begun(&job.0);
    Ok(())
}

struct ByLibrary;

#[derive(Clone)]
struct Enqueueing(Tenure);

async fn open() -> Outcome<Tenure> {
    Ok(Tenure::open(&url()).await?)
}

impl Producer for Enqueueing {
    async fn one(&self, args: Args) -> Outcome {
        self.0.enqueue(Noop(args)).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        self.0.enqueue_all(all.into_iter().map(|args| Draft::of(&Noop(args)))).await?;
        Ok(())
    }
}

impl Contestant for ByLibrary {
    type Producer = Enqueueing;

    async fn lay_out(&self) -> Outcome {
        Ok(open().await?.close().await?)
    }

    async fn producer(&self, _clients: usize) -> Outcome<Enqueueing> {
        Ok(Enqueueing(open().await?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let tenure = open().await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(&tenure, ()).queue(QUEUE, SLOTS).prefetch(AHEAD).job(noop);
        let working = tokio::spawn(worker.run(stopped));
        Ok(Box::pin(async move {
            drop(stop);
            working.await??;
            Ok(tenure.close().await?)
        }))
    }
}

fn main() -> ExitCode {
    compete(ByLibrary)
}
