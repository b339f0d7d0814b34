//! awa, with its queue storage: append-only segments and receipts.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use awa::model::insert::params_with;
use awa::{Client, InsertOpts, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

const QUEUE: &str = "bench";
const AT_ONCE: u32 = 512;
const BATCH: usize = 512;
const WORKER_CONNECTIONS: u32 = 20;
const POLL: Duration = Duration::from_millis(50);
/// Without a deadline an attempt leaves no row that has to be written and removed: its cheapest way.
const NO_DEADLINE: Duration = Duration::ZERO;
const ROTATES_EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Args);

impl awa::JobArgs for Noop {
    fn kind() -> &'static str {
        "noop"
    }
}

struct Awa {
    as_it_comes: bool,
}

#[derive(Clone)]
struct Inserting {
    pool: PgPool,
    storage: Arc<QueueStorage>,
}

async fn pool(connections: u32) -> Outcome<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url()).await?)
}

fn options() -> InsertOpts {
    InsertOpts { queue: QUEUE.into(), ..InsertOpts::default() }
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        awa::insert_with(&self.pool, &Noop(args), options()).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        let all = all.into_iter().map(|args| params_with(&Noop(args), options()));
        self.storage.enqueue_params_copy(&self.pool, &all.collect::<Result<Vec<_>, _>>()?).await?;
        Ok(())
    }
}

impl Contestant for Awa {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        let pool = pool(2).await?;
        awa::migrations::run(&pool).await?;
        QueueStorage::new(QueueStorageConfig::default())?.install(&pool).await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        let storage = Arc::new(QueueStorage::new(QueueStorageConfig::default())?);
        Ok(Inserting { pool: pool(clients as u32).await?, storage })
    }

    async fn work(&self) -> Outcome<Ending> {
        let tuned = QueueConfig {
            max_workers: AT_ONCE,
            poll_interval: POLL,
            deadline_duration: NO_DEADLINE,
            claim_batch_size: BATCH,
            ..QueueConfig::default()
        };
        let queue = if self.as_it_comes { QueueConfig::default() } else { tuned };
        let client = Client::builder(pool(WORKER_CONNECTIONS).await?)
            .queue(QUEUE, queue)
            .register::<Noop, _, _>(|noop, _context| async move {
                begun(&noop.0);
                Ok(JobResult::Completed)
            })
            .queue_storage(QueueStorageConfig::default(), ROTATES_EVERY, ROTATES_EVERY)
            .build()?;
        client.start().await?;
        Ok(Box::pin(async move {
            client.shutdown(Duration::from_secs(8)).await;
            Ok(())
        }))
    }
}

fn main() -> ExitCode {
    compete(Awa { as_it_comes: std::env::args().nth(1).as_deref() == Some("as-it-comes") })
}
