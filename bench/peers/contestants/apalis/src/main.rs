//! apalis on PostgreSQL.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use apalis::prelude::{BackendExt, BoxDynError, TaskBuilder, WorkerBuilder};
use apalis_postgres::queries::push_tasks;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use tokio::sync::Notify;

const QUEUE: &str = "bench";
const BATCH: usize = 500;
const POLL: Duration = Duration::from_millis(100);
/// It does not say when the last results are on record; this is long enough for them.
const WRITES_WITHIN: Duration = Duration::from_millis(400);

struct Apalis;

#[derive(Clone)]
struct Inserting(PgPool);

async fn noop(args: Args) -> Result<(), BoxDynError> {
    begun(&args);
    Ok(())
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        self.many(vec![args]).await
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        let tasks = all.iter().map(|args| Ok(TaskBuilder::new(serde_json::to_vec(args)?).build()));
        let tasks = tasks.collect::<Result<Vec<_>, serde_json::Error>>()?;
        push_tasks(&mut *self.0.acquire().await?, QUEUE, tasks).await?;
        Ok(())
    }
}

impl Contestant for Apalis {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        Ok(PostgresStorage::<()>::setup(&PgPool::connect(&url()).await?).await?)
    }

    async fn producer(&self, _clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(PgPool::connect(&url()).await?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let pool = PgPool::connect(&url()).await?;
        let config = Config::default().queue(QUEUE).batch_size(BATCH);
        let storage = PostgresStorage::<Args>::new(&pool).with_config(config);
        let storage = storage.with_pubsub().poll_with_interval(POLL);
        let worker =
            WorkerBuilder::new(format!("worker-{}", std::process::id())).backend(storage).build(noop);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let working = tokio::spawn(async move {
            tokio::select! {
                worked = worker.run() => worked.map_err(|error| error.to_string()),
                () = stopped.notified() => Ok(()),
            }
        });
        Ok(Box::pin(async move {
            tokio::time::sleep(WRITES_WITHIN).await;
            stop.notify_one();
            Ok(working.await??)
        }))
    }
}

fn main() -> ExitCode {
    compete(Apalis)
}
