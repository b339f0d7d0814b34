//! apalis on SQLite.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use apalis::prelude::{BackendExt, BoxDynError, TaskBuilder, WorkerBuilder};
use apalis_sqlite::queries::push_tasks;
use apalis_sqlite::{Config, SqlitePool, SqliteStorage};
use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::Notify;

const QUEUE: &str = "bench";
const BATCH: usize = 500;
const WORKER_CONNECTIONS: u32 = 2;
/// Its hook does not tell of jobs that another process enqueues.
const POLL: Duration = Duration::from_millis(20);
const WAITS_FOR_WRITERS: Duration = Duration::from_secs(10);
/// It does not say when the last results are on record; this is long enough for them.
const WRITES_WITHIN: Duration = Duration::from_secs(2);

struct Apalis;

#[derive(Clone)]
struct Inserting(SqlitePool);

async fn pool(connections: u32) -> Outcome<SqlitePool> {
    let options = SqliteConnectOptions::from_str(&url())?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(WAITS_FOR_WRITERS);
    Ok(SqlitePoolOptions::new().max_connections(connections).connect_with(options).await?)
}

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
        let mut transaction = self.0.begin().await?;
        push_tasks(&mut *transaction, QUEUE, &tasks).await?;
        Ok(transaction.commit().await?)
    }
}

impl Contestant for Apalis {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        Ok(SqliteStorage::<()>::setup(&pool(1).await?).await?)
    }

    /// One connection for all clients: SQLite lets one write at a time.
    async fn producer(&self, _clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(pool(1).await?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let pool = pool(WORKER_CONNECTIONS).await?;
        let config = Config::default().queue(QUEUE).batch_size(BATCH);
        let storage = SqliteStorage::<Args>::new(&pool).with_config(config).poll_with_interval(POLL);
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
