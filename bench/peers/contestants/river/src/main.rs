//! River for Rust.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use riverqueue::database::{PostgresDatabase, SchemaName};
use riverqueue::migrate::PostgresMigrator;
use riverqueue::sqlx::{self, PgPool, postgres::PgPoolOptions};
use riverqueue::{Client, ClientBuilder, Job, JobArgs, QueueConfig, WorkContext, WorkOutcome, Workers};
use serde::{Deserialize, Serialize};

const QUEUE: &str = "default";
const SCHEMA: &str = "river";
/// As its own benchmark has it.
const AT_ONCE: usize = 2_000;
const WORKER_CONNECTIONS: u32 = 50;
const COOLDOWN: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Args);

impl JobArgs for Noop {
    const KIND: &'static str = "noop";
}

async fn noop(_context: WorkContext, job: Job<Noop>) -> Result<WorkOutcome, Infallible> {
    begun(&job.args.0);
    Ok(WorkOutcome::Complete)
}

struct River;

#[derive(Clone)]
struct Inserting(Client);

async fn pool(connections: u32) -> Outcome<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url()).await?)
}

async fn client(connections: u32) -> Outcome<ClientBuilder> {
    let database = PostgresDatabase::new(pool(connections).await?).with_schema(SchemaName::new(SCHEMA)?);
    Ok(Client::builder(database).fetch_cooldown(COOLDOWN))
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        self.0.insert(Noop(args)).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        self.0.insert_many(all.into_iter().map(Noop).collect::<Vec<_>>()).await?;
        Ok(())
    }
}

impl Contestant for River {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        let pool = pool(2).await?;
        sqlx::query("CREATE SCHEMA river").execute(&pool).await?;
        PostgresMigrator::new(pool).with_schema(SchemaName::new(SCHEMA)?).migrate_up().await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(client(clients as u32).await?.build()?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let mut workers = Workers::new();
        workers.add_fn(noop)?;
        let queue = QueueConfig::new(AT_ONCE).with_fetch_cooldown(COOLDOWN).with_fetch_poll_interval(POLL);
        let client = client(WORKER_CONNECTIONS).await?.workers(workers).queue(QUEUE, queue).build()?;
        let mut running = client.start()?;
        Ok(Box::pin(async move {
            let _as_long_as_it_runs = client;
            Ok(running.stop().await?)
        }))
    }
}

fn main() -> ExitCode {
    compete(River)
}
