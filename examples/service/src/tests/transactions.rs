//! Transactions with sqlx on the store's database. The page on transactions shows these blocks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, PgPool};
use tenure::{Accepted, Draft, Error, Failed, Job, NotDone, Run, StateName, Tenure, Worker};
use tenure_sqlx::take_part;

use super::test_server;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const TABLES: [&str; 3] = [
    "CREATE TABLE account (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, reminded boolean NOT NULL DEFAULT false, welcome_job text)",
    "CREATE TABLE entry (amount bigint NOT NULL)",
    "CREATE TABLE total (cents bigint NOT NULL)",
];

/// Opens a new database on the test server.
async fn open() -> Result<(Tenure, PgPool, String), Box<dyn std::error::Error + Send + Sync>> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (server, number) = (test_server(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let create = format!("CREATE DATABASE transactions_{number}");
    sqlx::query(AssertSqlSafe(create)).execute(&PgPool::connect(&server).await?).await?;
    let (address, _) = server.rsplit_once('/').expect("the URL names a database");
    let url = format!("{address}/transactions_{number}");
    let (tenure, pool) = (Tenure::open(&url).await?, PgPool::connect(&url).await?);
    for table in TABLES {
        sqlx::query(table).execute(&pool).await?;
    }
    Ok((tenure, pool, url))
}

#[derive(Serialize, Deserialize)]
struct Welcome {
    user: i64,
}

impl Job for Welcome {
    const KIND: &'static str = "welcome";
    type Output = ();
}

#[derive(Serialize, Deserialize)]
struct Remind {
    user: i64,
}

impl Job for Remind {
    const KIND: &'static str = "remind";
    type Output = ();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_account_has_its_own_welcome() -> Outcome {
    let (tenure, pool, _) = open().await?;
    for _ in 0..2 {
        let mut tx = pool.begin().await?;
        let insert = "INSERT INTO account DEFAULT VALUES RETURNING id";
        let user: i64 = sqlx::query_scalar(insert).fetch_one(&mut *tx).await?;
        tenure.enqueue(Welcome { user }).within(take_part(&mut tx)).await?;
        tx.commit().await?;
    }
    let mut tx = pool.begin().await?;
    let user = 1;
    let job = tenure.enqueue(Welcome { user }).unique_key(format!("welcome-{user}"));
    let first = job.within(take_part(&mut tx)).await?;
    let job = tenure.enqueue(Welcome { user }).unique_key(format!("welcome-{user}"));
    assert_eq!(job.within(take_part(&mut tx)).await?, Accepted::Existing(first.id()));
    tx.commit().await?;
    let jobs: u64 = tenure.counts().await?.iter().map(|count| count.jobs).sum();
    assert_eq!(jobs, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_keeps_the_id_of_its_job() -> Outcome {
    let (tenure, pool, _) = open().await?;
    let mut tx = pool.begin().await?;
    let job = tenure.new_id();
    let insert = "INSERT INTO account (welcome_job) VALUES ($1) RETURNING id";
    let user: i64 = sqlx::query_scalar(insert).bind(job.to_string()).fetch_one(&mut *tx).await?;
    tenure.enqueue(Welcome { user }).id(job).within(take_part(&mut tx)).await?;
    tx.commit().await?;
    let job: String = sqlx::query_scalar("SELECT welcome_job FROM account").fetch_one(&pool).await?;
    let state = match tenure.jobs().get(job.parse()?).await {
        Ok(job) => job.state.name(tenure.now()).to_string(),
        Err(Error::NotFound(_)) => "deleted".to_owned(),
        Err(error) => return Err(error.into()),
    };
    assert_eq!(state, "queued");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_jobs_come_in_with_one_round_trip() -> Outcome {
    let (tenure, pool, _) = open().await?;
    sqlx::query("INSERT INTO account SELECT FROM generate_series(1, 100)").execute(&pool).await?;
    let mut tx = pool.begin().await?;
    let update = "UPDATE account SET reminded = true WHERE NOT reminded RETURNING id";
    let users: Vec<i64> = sqlx::query_scalar(update).fetch_all(&mut *tx).await?;
    let jobs = users.iter().map(|user| Draft::of(&Remind { user: *user }));
    let accepted = tenure.enqueue_all_within(jobs, take_part(&mut tx)).await?;
    tx.commit().await?;
    assert_eq!(accepted.len(), 100);
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Book {
    amount: i64,
}

impl Job for Book {
    const KIND: &'static str = "book";
    type Output = i64;
}

async fn book(run: Run<PgPool>, job: Book) -> Result<i64, Failed> {
    let mut tx = run.app().begin().await?;
    let insert = "INSERT INTO entry (amount) VALUES ($1)";
    sqlx::query(insert).bind(job.amount).execute(&mut *tx).await?;
    let sum = "SELECT sum(amount)::bigint FROM entry";
    let total: i64 = sqlx::query_scalar(sum).fetch_one(&mut *tx).await?;
    run.complete_with(take_part(&mut tx), &total).await?;
    tx.commit().await?;
    Ok(total)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_and_the_end_of_its_job_commit_together() -> Outcome {
    let (tenure, pool, _) = open().await?;
    let id = tenure.enqueue(Book { amount: 7 }).await?.id();
    let worker = Worker::new(&tenure, pool.clone()).queue("default", 1).job(book);
    worker.run(tenure.wait(id)).await?;
    assert_eq!(tenure.wait_for::<Book>(id).await?, 7);
    assert_eq!(tenure.jobs().get(id).await?.state.name(tenure.now()), StateName::Succeeded);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_under_a_lease_is_refused_once_the_lease_is_lost() -> Outcome {
    let (tenure, pool, url) = open().await?;
    sqlx::query("INSERT INTO total VALUES (0)").execute(&pool).await?;
    let held = tenure.leases().hold("the-books").await?;
    let mut tx = pool.begin().await?;
    tenure.leases().check_in(&held.pass(), take_part(&mut tx)).await?;
    sqlx::query("UPDATE total SET cents = cents + 1").execute(&mut *tx).await?;
    tx.commit().await?;

    let other = Tenure::open(&url).await?;
    other.leases().break_it("the-books", Some(Duration::ZERO), "it hangs").await?;
    let mut tx = pool.begin().await?;
    let refused = tenure.leases().check_in(&held.pass(), take_part(&mut tx)).await;
    assert!(matches!(refused, Err(Error::NotDone(NotDone::Lost) | Error::LeaseLost(_))), "{refused:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_program_on_the_database_enqueues_by_a_function() -> Outcome {
    let (tenure, pool, _) = open().await?;
    let enqueue = r#"SELECT tenure.enqueue('welcome', '{"user": 7}', unique_key => 'welcome-7')"#;
    sqlx::query(enqueue).execute(&pool).await?;
    let again = tenure.enqueue(Welcome { user: 7 }).unique_key("welcome-7").await?;
    assert!(matches!(again, Accepted::Existing(_)), "{again:?}");
    Ok(())
}
