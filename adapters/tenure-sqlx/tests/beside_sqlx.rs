//! A program with sqlx, and all that it usually brings along, beside Tenure on one file.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tenure::{
    Chance, Failed, Job, ManualClock, Run, SqliteOptions, SqliteStore, StateName, Store, Tenure, Worker,
};
use tenure_sqlx::{CheckInError, check_job, check_lease};

struct Rig {
    tenure: Tenure,
    clock: ManualClock,
    pool: SqlitePool,
    _folder: tempfile::TempDir,
}

async fn rig() -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let clock = ManualClock::new();
    let store = SqliteStore::open(&path, SqliteOptions::default(), Arc::new(clock.clone())).unwrap();
    let tenure = Tenure::on(store as Arc<dyn Store>, Chance::seeded(1));
    let options = SqliteConnectOptions::new().filename(&path).busy_timeout(Duration::from_secs(10));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE effect (fence INTEGER NOT NULL)").execute(&pool).await.unwrap();
    Rig { tenure, clock, pool, _folder: folder }
}

async fn effects(pool: &SqlitePool) -> Vec<i64> {
    sqlx::query_scalar("SELECT fence FROM effect ORDER BY rowid").fetch_all(pool).await.unwrap()
}

#[tokio::test]
async fn what_a_holder_writes_commits_with_the_check_and_what_a_loser_writes_does_not() {
    let rig = rig().await;
    let ttl = Duration::from_secs(15);
    let first = rig.tenure.leases().try_hold("the books", ttl).await.unwrap().unwrap();
    let stale = first.pass();
    let mut txn = rig.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    check_lease(&mut txn, &stale, rig.tenure.now()).await.unwrap();
    sqlx::query("INSERT INTO effect VALUES (1)").execute(&mut *txn).await.unwrap();
    txn.commit().await.unwrap();

    rig.tenure.leases().break_it("the books", Some(Duration::ZERO), "it hangs").await.unwrap();
    let second = rig.tenure.leases().try_hold("the books", ttl).await.unwrap().unwrap();
    assert!(second.fence() > stale.fence());
    let mut txn = rig.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused = check_lease(&mut txn, &stale, rig.tenure.now()).await.unwrap_err();
    assert!(matches!(refused, CheckInError::Lost), "{refused}");
    drop(txn);
    let mut txn = rig.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    check_lease(&mut txn, &second.pass(), rig.tenure.now()).await.unwrap();
    rig.clock.advance(Duration::from_secs(3600));
    let lapsed = check_lease(&mut txn, &second.pass(), rig.tenure.now()).await.unwrap_err();
    assert!(matches!(lapsed, CheckInError::Lost), "{lapsed}");
    drop(txn);
    assert_eq!(effects(&rig.pool).await, [1]);
}

#[derive(Serialize, Deserialize)]
struct Book {
    amount: i64,
}

impl Job for Book {
    const KIND: &'static str = "book";
    type Output = ();
}

async fn book(run: Run<SqlitePool>, job: Book) -> Result<(), Failed> {
    let mut txn = run.app().begin_with("BEGIN IMMEDIATE").await?;
    check_job(&mut txn, &run).await?;
    sqlx::query("INSERT INTO effect VALUES (?)").bind(job.amount).execute(&mut *txn).await?;
    txn.commit().await?;
    Ok(())
}

#[tokio::test]
async fn an_attempt_checks_in_with_the_fence_of_its_job() {
    let rig = rig().await;
    let id = rig.tenure.enqueue(Book { amount: 7 }).await.unwrap().id();
    let done = rig.tenure.clone();
    let until = async move { done.wait_for::<Book>(id).await.unwrap() };
    Worker::new(&rig.tenure, rig.pool.clone()).queue("default", 1).job(book).run(until).await.unwrap();
    let state = rig.tenure.jobs().get(id).await.unwrap().state.name(rig.tenure.now());
    assert_eq!(state, StateName::Succeeded);
    assert_eq!(effects(&rig.pool).await, [7]);
}
