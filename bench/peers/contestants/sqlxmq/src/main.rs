//! sqlxmq on PostgreSQL.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use sqlxmq::{CurrentJob, JobRegistry, job};

const TABLES: &str = include_str!(concat!(env!("OUT_DIR"), "/tables.sql"));

/// It fetches again when fewer than half of them run.
const AT_ONCE: usize = 100;
const WORKER_CONNECTIONS: u32 = 16;
const ENDS_WITHIN: Duration = Duration::from_secs(10);

#[job]
async fn noop(mut job: CurrentJob) -> Outcome {
    begun(&job.json()?.ok_or("a job without args")?);
    job.complete().await?;
    Ok(())
}

struct Sqlxmq;

#[derive(Clone)]
struct Spawning(PgPool);

async fn pool(connections: u32) -> Outcome<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url()).await?)
}

impl Producer for Spawning {
    async fn one(&self, args: Args) -> Outcome {
        noop.builder().set_json(&args)?.spawn(&self.0).await?;
        Ok(())
    }

    /// It has no way to enqueue many at once: one by one in a transaction.
    async fn many(&self, all: Vec<Args>) -> Outcome {
        let mut transaction = self.0.begin().await?;
        for args in all {
            noop.builder().set_json(&args)?.spawn(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }
}

impl Contestant for Sqlxmq {
    type Producer = Spawning;

    async fn lay_out(&self) -> Outcome {
        sqlx::raw_sql(TABLES).execute(&pool(1).await?).await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Spawning> {
        Ok(Spawning(pool(clients as u32).await?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let pool = pool(WORKER_CONNECTIONS).await?;
        let registry = JobRegistry::new(&[noop]);
        let mut running = registry.runner(&pool).set_concurrency(AT_ONCE / 2, AT_ONCE).run().await?;
        Ok(Box::pin(async move {
            running.stop().await;
            running.wait_jobs_finish(ENDS_WITHIN).await;
            Ok(())
        }))
    }
}

fn main() -> ExitCode {
    compete(Sqlxmq)
}
