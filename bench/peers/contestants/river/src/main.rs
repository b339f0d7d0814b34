//! River for Rust, on PostgreSQL or on SQLite: the URL says which.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use riverqueue::database::{PostgresDatabase, SchemaName};
use riverqueue::migrate::{PostgresMigrator, SqliteMigrator};
use riverqueue::sqlx::postgres::{PgPool, PgPoolOptions};
use riverqueue::sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use riverqueue::{Client, ClientBuilder, Job, JobArgs, QueueConfig, WorkContext, WorkOutcome, Workers, sqlx};
use serde::{Deserialize, Serialize};

const QUEUE: &str = "default";
const SCHEMA: &str = "river";
/// As its own benchmark has it.
const AT_ONCE: usize = 2_000;
const WORKER_CONNECTIONS: u32 = 50;
/// SQLite lets one write at a time: more of them stand in each other's way.
const SQLITE_CLIENT_CONNECTIONS: u32 = 1;
const SQLITE_WORKER_CONNECTIONS: u32 = 5;
const WAITS_FOR_WRITERS: Duration = Duration::from_secs(10);
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

fn is_on_sqlite() -> bool {
    url().starts_with("sqlite:")
}

async fn postgres(connections: u32) -> Outcome<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url()).await?)
}

async fn sqlite(connections: u32) -> Outcome<SqlitePool> {
    let options = SqliteConnectOptions::from_str(&url())?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(WAITS_FOR_WRITERS);
    Ok(SqlitePoolOptions::new().max_connections(connections).connect_with(options).await?)
}

async fn client(on_postgres: u32, on_sqlite: u32) -> Outcome<ClientBuilder> {
    let builder = if is_on_sqlite() {
        Client::builder(sqlite(on_sqlite).await?)
    } else {
        let schema = SchemaName::new(SCHEMA)?;
        Client::builder(PostgresDatabase::new(postgres(on_postgres).await?).with_schema(schema))
    };
    Ok(builder.fetch_cooldown(COOLDOWN))
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
        if is_on_sqlite() {
            SqliteMigrator::new(sqlite(1).await?).migrate_up().await?;
            return Ok(());
        }
        let pool = postgres(2).await?;
        sqlx::query("CREATE SCHEMA river").execute(&pool).await?;
        PostgresMigrator::new(pool).with_schema(SchemaName::new(SCHEMA)?).migrate_up().await?;
        Ok(())
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        Ok(Inserting(client(clients as u32, SQLITE_CLIENT_CONNECTIONS).await?.build()?))
    }

    async fn work(&self) -> Outcome<Ending> {
        let mut workers = Workers::new();
        workers.add_fn(noop)?;
        let queue = QueueConfig::new(AT_ONCE).with_fetch_cooldown(COOLDOWN).with_fetch_poll_interval(POLL);
        let client = client(WORKER_CONNECTIONS, SQLITE_WORKER_CONNECTIONS).await?;
        let client = client.workers(workers).queue(QUEUE, queue).build()?;
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
