//! underway on PostgreSQL.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Transaction};
use underway::{Queue, Task, Worker};

const QUEUE: &str = "noop";
const AT_ONCE: usize = 16;
/// Each job holds a connection for its transaction, and one more for its claim.
const WORKER_CONNECTIONS: u32 = 2 * AT_ONCE as u32 + 4;

#[derive(Clone)]
struct Noop;

impl Task for Noop {
    type Input = Args;
    type Output = ();

    async fn execute(
        &self,
        transaction: Transaction<'_, Postgres>,
        args: Args,
    ) -> underway::task::Result<()> {
        begun(&args);
        transaction.commit().await?;
        Ok(())
    }
}

struct Underway;

#[derive(Clone)]
struct Enqueueing {
    pool: PgPool,
    queue: Arc<Queue<Noop>>,
}

async fn pool(connections: u32) -> Outcome<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url()).await?)
}

async fn queue(pool: PgPool) -> Outcome<Arc<Queue<Noop>>> {
    Ok(Arc::new(Queue::builder().name(QUEUE).pool(pool).build().await?))
}

impl Producer for Enqueueing {
    async fn one(&self, args: Args) -> Outcome {
        self.queue.enqueue(&self.pool, &Noop, &args).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        self.queue.enqueue_multi(&self.pool, &Noop, &all).await?;
        Ok(())
    }
}

impl Contestant for Underway {
    type Producer = Enqueueing;

    async fn lay_out(&self) -> Outcome {
        let pool = pool(2).await?;
        underway::run_migrations(&pool).await?;
        queue(pool).await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Enqueueing> {
        let pool = pool(clients as u32).await?;
        Ok(Enqueueing { queue: queue(pool.clone()).await?, pool })
    }

    async fn work(&self) -> Outcome<Ending> {
        let mut worker = Worker::new(queue(pool(WORKER_CONNECTIONS).await?).await?, Noop);
        worker.set_concurrency_limit(AT_ONCE);
        let stop = worker.clone();
        let working = tokio::spawn(async move { worker.run().await });
        Ok(Box::pin(async move {
            stop.shutdown();
            Ok(working.await??)
        }))
    }
}

fn main() -> ExitCode {
    compete(Underway)
}
