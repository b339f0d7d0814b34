//! The floor: the same rows in the bare driver, one table, one index for the line, no id, no guard.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contestant::{Args, Contestant, Ending, Outcome, Producer, begun, compete, url};
use tokio::sync::watch;
use tokio_postgres::{Client, NoTls, Statement};

const SCHEMA: &str = "
    CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue int NOT NULL DEFAULT 1,
        state smallint NOT NULL DEFAULT 0, priority smallint NOT NULL DEFAULT 0, attempt smallint NOT NULL DEFAULT 0,
        run_at timestamptz NOT NULL DEFAULT now(), lease timestamptz, payload jsonb NOT NULL) WITH (fillfactor = 70);
    CREATE INDEX job_line ON job (queue, priority, run_at, id) WHERE state = 0";
const INSERT: &str = "INSERT INTO job (payload) VALUES ($1::text::jsonb)";
const INSERT_MANY: &str = "INSERT INTO job (payload) SELECT x::jsonb FROM unnest($1::text[]) x";
const CLAIM: &str = "
    UPDATE job SET state = 1, attempt = attempt + 1, lease = now() + interval '1 minute'
    WHERE id = ANY (ARRAY(SELECT id FROM job WHERE state = 0 AND queue = 1
        ORDER BY priority, run_at, id LIMIT 500 FOR UPDATE SKIP LOCKED))
    RETURNING id, payload::text";
const KEEP: &str = "UPDATE job SET state = 2, lease = NULL WHERE id = ANY ($1)";
const FORGET: &str = "DELETE FROM job WHERE id = ANY ($1)";

/// How long it waits when there was nothing to claim.
const PAUSE: Duration = Duration::from_millis(1);

/// How a job ends.
struct Floor {
    end: &'static str,
}

#[derive(Clone)]
struct Inserting {
    clients: Arc<Vec<(Client, Statement, Statement)>>,
    turn: Arc<AtomicUsize>,
}

async fn connect() -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Inserting {
    fn client(&self) -> &(Client, Statement, Statement) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.clients[turn % self.clients.len()]
    }
}

impl Producer for Inserting {
    async fn one(&self, args: Args) -> Outcome {
        let (client, one, _) = self.client();
        client.execute(one, &[&serde_json::to_string(&args)?]).await?;
        Ok(())
    }

    async fn many(&self, all: Vec<Args>) -> Outcome {
        let (client, _, many) = self.client();
        let all = all.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        client.execute(many, &[&all]).await?;
        Ok(())
    }
}

impl Contestant for Floor {
    type Producer = Inserting;

    async fn lay_out(&self) -> Outcome {
        Ok(connect().await?.batch_execute(SCHEMA).await?)
    }

    async fn producer(&self, clients: usize) -> Outcome<Inserting> {
        let mut connected = Vec::new();
        for _ in 0..clients {
            let client = connect().await?;
            let (one, many) = (client.prepare(INSERT).await?, client.prepare(INSERT_MANY).await?);
            connected.push((client, one, many));
        }
        Ok(Inserting { clients: Arc::new(connected), turn: Arc::default() })
    }

    async fn work(&self) -> Outcome<Ending> {
        let client = connect().await?;
        let (claim, end) = (client.prepare(CLAIM).await?, client.prepare(self.end).await?);
        let (stop, stopped) = watch::channel(false);
        let working = tokio::spawn(async move {
            while !*stopped.borrow() {
                let rows = client.query(&claim, &[]).await?;
                if rows.is_empty() {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                let mut ids: Vec<i64> = Vec::with_capacity(rows.len());
                for row in &rows {
                    begun(&serde_json::from_str(row.get(1))?);
                    ids.push(row.get(0));
                }
                client.execute(&end, &[&ids]).await?;
            }
            Outcome::Ok(())
        });
        Ok(Box::pin(async move {
            stop.send(true)?;
            working.await?
        }))
    }
}

fn main() -> ExitCode {
    let forgets = std::env::args().nth(1).as_deref() == Some("forget");
    compete(Floor { end: if forgets { FORGET } else { KEEP } })
}
