//! A program with sqlx beside Tenure in one PostgreSQL database.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::time::Duration;

use own_postgres::Server;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tenure::{Accepted, Error, Failed, Job, NotDone, Run, StateName, Tenure, Worker};
use tenure_sqlx::take_part;

struct Rig {
    tenure: Tenure,
    pool: PgPool,
    _server: Server,
}

async fn rig() -> Rig {
    let server = Server::start_hasty().unwrap();
    let tenure = Tenure::open(&server.url()).await.unwrap();
    let pool = PgPool::connect(&server.url()).await.unwrap();
    sqlx::query("CREATE TABLE effect (amount bigint NOT NULL)").execute(&pool).await.unwrap();
    Rig { tenure, pool, _server: server }
}

async fn effects(pool: &PgPool) -> Vec<i64> {
    sqlx::query_scalar("SELECT amount FROM effect ORDER BY amount").fetch_all(pool).await.unwrap()
}

#[derive(Serialize, Deserialize)]
struct Book {
    amount: i64,
}

impl Job for Book {
    const KIND: &'static str = "book";
    type Output = ();
}

async fn book(run: Run<PgPool>, job: Book) -> Result<(), Failed> {
    let mut tx = run.app().begin().await?;
    run.check_in_with(take_part(&mut tx)).await?;
    sqlx::query("INSERT INTO effect VALUES ($1)").bind(job.amount).execute(&mut *tx).await?;
    run.complete_in(take_part(&mut tx)).await?;
    Ok(tx.commit().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_lives_or_dies_with_the_transaction_that_enqueued_it_and_ends_with_another() {
    let rig = rig().await;
    for commits in [false, true] {
        let mut tx = rig.pool.begin().await.unwrap();
        sqlx::query("INSERT INTO effect VALUES (1)").execute(&mut *tx).await.unwrap();
        let job = rig.tenure.enqueue(Book { amount: 7 }).unique_key("once").tag("red");
        let accepted = job.within(take_part(&mut tx)).await.unwrap();
        assert!(matches!(accepted, Accepted::New(_)));
        if !commits {
            tx.rollback().await.unwrap();
            continue;
        }
        tx.commit().await.unwrap();
        let (id, done) = (accepted.id(), rig.tenure.clone());
        let until = async move { done.wait_for::<Book>(id).await.unwrap() };
        let worker = Worker::new(&rig.tenure, rig.pool.clone()).queue("default", 1).job(book);
        let stopped = worker.run(until).await.unwrap();
        assert_eq!((stopped.settled, stopped.fenced), (1, 0));
        let state = rig.tenure.jobs().get(id).await.unwrap().state.name(rig.tenure.now());
        assert_eq!(state, StateName::Succeeded);
    }
    assert_eq!(effects(&rig.pool).await, [1, 7]);
    // Nothing tells a store of a rollback. The attempt did not fail, although the worker settled it without knowing.
    let totals = rig.tenure.totals();
    let of_kind = totals.jobs.values().flat_map(|kinds| kinds.values()).next().unwrap();
    let ended: Vec<_> = of_kind.ran.iter().map(|(outcome, took)| (*outcome, took.count())).collect();
    assert_eq!((of_kind.enqueued, ended), (2, vec![("succeeded", 1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_holder_writes_commits_with_the_check_and_what_a_loser_writes_does_not() {
    let rig = rig().await;
    let leases = rig.tenure.leases();
    let first = leases.try_hold("the books", Duration::from_secs(60)).await.unwrap().unwrap();
    let mut tx = rig.pool.begin().await.unwrap();
    leases.check_in(&first.pass(), take_part(&mut tx)).await.unwrap();
    sqlx::query("INSERT INTO effect VALUES (1)").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    let other = Tenure::open(&rig._server.url()).await.unwrap();
    other.leases().break_it("the books", Some(Duration::ZERO), "it hangs").await.unwrap();
    let mut tx = rig.pool.begin().await.unwrap();
    let refused = leases.check_in(&first.pass(), take_part(&mut tx)).await.unwrap_err();
    assert!(matches!(refused, Error::NotDone(NotDone::Lost) | Error::LeaseLost(_)), "{refused}");
    drop(tx);
    assert_eq!(effects(&rig.pool).await, [1]);
}
