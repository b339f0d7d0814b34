//! fang on PostgreSQL, with its asynchronous workers.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use fang::asynk::async_queue::{AsyncQueue, AsyncQueueable};
use fang::asynk::async_worker_pool::AsyncWorkerPool;
use fang::{AsyncRunnable, FangError, SleepParams};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

const TABLES: &str = include_str!(concat!(env!("OUT_DIR"), "/tables.sql"));

/// Each fetches one job, works, and fetches again.
const WORKERS: u32 = 16;
/// How long each of them sleeps when there was nothing; five to fifteen seconds as it comes.
const SLEEP: Duration = Duration::from_millis(20);
/// It cannot be stopped, and does not say when the last jobs are on record; this is long enough for them.
const WRITES_WITHIN: Duration = Duration::from_millis(500);

/// Who fetches a job after this was set does not begin with it.
static STOPPED: AtomicBool = AtomicBool::new(false);

#[derive(Serialize, Deserialize)]
struct Noop {
    args: Args,
}

#[typetag::serde]
#[fang::async_trait]
impl AsyncRunnable for Noop {
    async fn run(&self, _queue: &dyn AsyncQueueable) -> Result<(), FangError> {
        if STOPPED.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        begun(&self.args);
        Ok(())
    }
}

struct Fang;

#[derive(Clone)]
struct Inserting(AsyncQueue);

async fn queue(connections: u32) -> Outcome<AsyncQueue> {
    let mut queue = AsyncQueue::builder().uri(url()).max_pool_size(connections).build();
    queue.connect().await?;
    Ok(queue)
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        self.0.insert_task(&Noop { args }).await?;
        Ok(())
    }

    /// It has no way to enqueue many at once.
    async fn many(&self, all: Vec<Args>) -> Outcome {
        for args in all {
            self.one(args).await?;
        }
        Ok(())
    }
}

impl Contestant for Fang {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        let pool = PgPool::connect(&url()).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(queue(clients as u32).await?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let sleep = SleepParams {
            sleep_period: SLEEP,
            max_sleep_period: SLEEP,
            min_sleep_period: SLEEP,
            sleep_step: Duration::ZERO,
        };
        let queue = queue(WORKERS).await?;
        let mut workers: AsyncWorkerPool<AsyncQueue> =
            AsyncWorkerPool::builder().number_of_workers(WORKERS).queue(queue).sleep_params(sleep).build();
        workers.start().await;
        Ok(Box::pin(async move {
            STOPPED.store(true, Ordering::Relaxed);
            tokio::time::sleep(WRITES_WITHIN).await;
            Ok(())
        }))
    }
}

fn main() -> ExitCode {
    compete(Fang)
}
