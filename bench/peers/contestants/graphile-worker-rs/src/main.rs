//! The Rust port of graphile-worker.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker, WorkerContext,
    WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};

const AT_ONCE: usize = 24;
const BATCH: usize = 500;
const GATHERS: Duration = Duration::from_millis(1);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Args);

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        begun(&self.0);
        Ok::<(), String>(())
    }
}

struct Port;

#[derive(Clone)]
struct Inserting {
    utils: Arc<WorkerUtils>,
    /// Its connections end with it.
    _worker: Arc<Worker>,
}

fn options(connections: usize) -> WorkerOptions {
    WorkerOptions::default()
        .database_url(&url())
        .max_pg_conn(connections as u32)
        .schema("graphile_worker")
        .define_job::<Noop>()
        .listen_os_shutdown_signals(false)
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        self.utils.add_job(Noop(args), JobSpec::default()).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        let raw = |args: &Args| {
            let payload = serde_json::to_value(args)?;
            Ok(RawJobSpec { identifier: "noop".into(), payload, spec: JobSpec::default() })
        };
        let all = all.iter().map(raw).collect::<Result<Vec<_>, serde_json::Error>>()?;
        self.utils.add_raw_jobs(&all).await?;
        Ok(())
    }
}

impl Contestant for Port {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        options(2).init().await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        let worker = options(clients).init().await?;
        Ok(Inserting { utils: Arc::new(worker.create_utils()), _worker: Arc::new(worker) })
    }

    async fn work(&self) -> Outcome<Ending> {
        let options = options(AT_ONCE + 4)
            .concurrency(AT_ONCE)
            .local_queue(LocalQueueConfig::default().with_size(BATCH))
            .complete_job_batch_delay(GATHERS)
            .fail_job_batch_delay(GATHERS);
        let worker = Arc::new(options.init().await?);
        let running = Arc::clone(&worker);
        let working = tokio::spawn(async move { running.run().await.map_err(|error| error.to_string()) });
        Ok(Box::pin(async move {
            worker.request_shutdown();
            Ok(working.await??)
        }))
    }
}

fn main() -> ExitCode {
    compete(Port)
}
