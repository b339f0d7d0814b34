//! Transactions with tokio-postgres, and what takes their place on SQLite.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::rusqlite::{Connection, TransactionBehavior};
use tenure::{Failed, Job, Run, StateName, Tenure, Worker};

use crate::Outcome;

mod tokio_postgres {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Welcome {
        user: i64,
    }

    impl Job for Welcome {
        const KIND: &'static str = "welcome";
        type Output = ();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_job_lives_with_the_transaction_that_enqueued_it() -> Outcome {
        let server = own_postgres::Server::start_hasty()?;
        let tenure = Tenure::open(&server.url()).await?;
        let (mut client, connection) =
            ::tokio_postgres::connect(&server.url(), ::tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let table = "CREATE TABLE account (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)";
        client.execute(table, &[]).await?;

        let mut tx = client.transaction().await?;
        let user: i64 = tx.query_one("INSERT INTO account DEFAULT VALUES RETURNING id", &[]).await?.get(0);
        tenure.enqueue(Welcome { user }).within(&mut tx).await?;
        tx.commit().await?;

        let mut tx = client.transaction().await?;
        tenure.enqueue(Welcome { user: 2 }).within(&mut tx).await?;
        tx.rollback().await?;
        let jobs: u64 = tenure.counts().await?.iter().map(|count| count.jobs).sum();
        assert_eq!(jobs, 1);
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Welcome {
    email: String,
}

impl Job for Welcome {
    const KIND: &'static str = "welcome";
    type Output = ();
}

fn welcome(run: Run<PathBuf>, job: Welcome) -> Result<(), Failed> {
    let mut conn = Connection::open(run.app())?;
    conn.busy_timeout(Duration::from_secs(5))?;
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    run.check_in(&txn)?;
    txn.execute("UPDATE account SET welcomed = 1 WHERE email = ?1", [&job.email])?;
    Ok(txn.commit()?)
}

async fn sign_up(tenure: &Tenure, conn: &Connection, email: &str) -> Outcome {
    let job = tenure.new_id();
    conn.execute("INSERT INTO account (email, welcome_job) VALUES (?1, ?2)", (email, job.to_string()))?;
    tenure.enqueue(Welcome { email: email.to_owned() }).id(job).await?;
    Ok(())
}

fn not_welcomed(conn: &Connection) -> Result<Vec<(String, String)>, tenure::rusqlite::Error> {
    let mut select = conn.prepare("SELECT email, welcome_job FROM account WHERE welcomed = 0")?;
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

async fn enqueue_again(tenure: &Tenure, conn: &Connection) -> Outcome {
    for (email, job) in not_welcomed(conn)? {
        tenure.enqueue(Welcome { email }).id(job.parse()?).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_kept_from_being_enqueued_is_enqueued_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("jobs.db");
    let tenure = Tenure::open(&format!("sqlite://{}", file.display())).await?;
    let conn = Connection::open(&file)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.execute(
        "CREATE TABLE account (email TEXT, welcome_job TEXT, welcomed INTEGER NOT NULL DEFAULT 0)",
        (),
    )?;
    sign_up(&tenure, &conn, "ada@example.com").await?;
    let lost = tenure.new_id();
    let insert = "INSERT INTO account (email, welcome_job) VALUES ('bob@example.com', ?1)";
    conn.execute(insert, [lost.to_string()])?;
    for _ in 0..2 {
        enqueue_again(&tenure, &conn).await?;
    }
    let jobs: u64 = tenure.counts().await?.iter().map(|count| count.jobs).sum();
    assert_eq!(jobs, 2);

    let all = async {
        while !not_welcomed(&conn).is_ok_and(|left| left.is_empty()) {
            tokio::task::yield_now().await;
        }
        drop(tenure.wait(lost).await);
    };
    Worker::new(&tenure, file.clone()).queue("default", 1).blocking_job(welcome).run(all).await?;
    assert_eq!(tenure.jobs().get(lost).await?.state.name(tenure.now()), StateName::Succeeded);
    Ok(())
}
