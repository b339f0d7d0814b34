//! Ending a job in a transaction of the user's own: effect and end commit together, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure::{
    Backoff, Chance, Clock, Failed, InTransaction, JobId, NotDone, PostgresStore, RetryPolicy, Run,
    StateName, Stopped, Store, SystemClock, Tenure, Verdict, Worker,
};
use tenure_core::Reserved;
use tenure_store::{Held, Prepared, Settled, TxnRequest};
use tokio_postgres::{Client, Transaction};

use super::common::{LEASE, Plain, on_postgres, postgres_options, try_reserve};
use super::{Rig, number, rig};

/// What a handler does besides.
struct App {
    rig: Rig,
    tries: Arc<AtomicU32>,
    how: How,
}

/// How it ends its transaction, the first time.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Commits,
    RollsBack,
    /// It rolls back, and says that all is well.
    Forgets,
    /// It commits, and does not learn that it has.
    DoesNotLearn,
}

/// A program by real time.
fn in_real_time() -> Rig {
    let options = postgres_options();
    let store = on_postgres(options.clone(), None);
    let tenure = Tenure::on(Arc::clone(&store) as _, Chance::from_system());
    Rig { tenure, store, options, clock: tenure::ManualClock::new() }
}

async fn write(run: Run<App>, job: Plain) -> Result<u64, Failed> {
    let app = run.app();
    let first = app.tries.fetch_add(1, Ordering::Relaxed) == 0;
    let mut client = app.rig.client().await;
    let mut tx = client.transaction().await?;
    tx.execute("INSERT INTO effect VALUES ($1)", &[&i64::try_from(job.number)?]).await?;
    run.complete_with(&mut tx, &(job.number * 2)).await?;
    match app.how {
        How::RollsBack if first => {
            tx.rollback().await?;
            Err(Failed::retry("it rolled back"))
        }
        How::Forgets if first => {
            tx.rollback().await?;
            Ok(0)
        }
        How::DoesNotLearn => {
            tx.commit().await?;
            Err(Failed::retry("the answer to the commit was lost"))
        }
        How::Commits | How::RollsBack | How::Forgets => {
            tx.commit().await?;
            Ok(0)
        }
    }
}

/// Runs one job to its end; answers how often it was tried, its result, and what the worker counted.
async fn run_one(how: How) -> (u32, u64, Stopped, Client) {
    let rig = in_real_time();
    let client = rig.client().await;
    let tenure = rig.tenure.clone();
    let soon = RetryPolicy { backoff: Backoff::Fixed(Duration::from_millis(10)), ..RetryPolicy::default() };
    let id = tenure.enqueue(Plain { number: 7 }).unique_key("once").retry(soon).await.unwrap().id();
    let tries = Arc::new(AtomicU32::new(0));
    let app = App { rig, tries: Arc::clone(&tries), how };
    let done = tenure.clone();
    let result = Arc::new(std::sync::Mutex::new(0));
    let until = {
        let result = Arc::clone(&result);
        async move { *result.lock().unwrap() = done.wait_for::<Plain>(id).await.unwrap() }
    };
    let stopped = Worker::new(&tenure, app).queue("default", 1).job(write).run(until).await.unwrap();
    let again = tenure.enqueue(Plain { number: 8 }).unique_key("once").await.unwrap();
    assert_ne!(again.id(), id, "its key is free");
    let result = *result.lock().unwrap();
    (tries.load(Ordering::Relaxed), result, stopped, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_handler_writes_and_the_end_of_its_job_commit_together() {
    let (tries, result, stopped, client) = run_one(How::Commits).await;
    assert_eq!((tries, result), (1, 14));
    assert_eq!((stopped.settled, stopped.fenced), (1, 0));
    assert_eq!(number(&client, "SELECT count(*) FROM effect").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_transaction_did_not_commit_is_tried_again_whatever_its_handler_says() {
    for how in [How::RollsBack, How::Forgets] {
        let (tries, result, _, client) = run_one(how).await;
        assert_eq!((tries, result), (2, 14));
        assert_eq!(number(&client, "SELECT count(*) FROM effect").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_not_done_twice_because_the_answer_to_its_commit_was_lost() {
    let (tries, result, stopped, client) = run_one(How::DoesNotLearn).await;
    assert_eq!((tries, result), (1, 14));
    assert_eq!((stopped.settled, stopped.fenced), (1, 0));
    assert_eq!(number(&client, "SELECT count(*) FROM effect").await, 1);
}

fn held(reserved: &Reserved) -> Held {
    Held { id: reserved.job().id, seq: reserved.job().seq, fence: reserved.fence() }
}

async fn complete(store: &PostgresStore, tx: &mut Transaction<'_>, held: &Held) -> Result<(), NotDone> {
    tx.execute("INSERT INTO effect VALUES (1)", &[]).await.unwrap();
    let complete = TxnRequest::Complete { held: *held, kept_for: None, output: None };
    let call = store.extras().joint.unwrap().statement(&Prepared::new(complete)).unwrap();
    let mut tx = tx;
    InTransaction::ask(&mut tx, &call).await.map(drop)
}

async fn state(tenure: &Tenure, id: JobId) -> StateName {
    tenure.jobs().get(id).await.unwrap().state.name(tenure.now())
}

async fn effects(client: &Client) -> i64 {
    number(client, "SELECT count(*) FROM effect").await
}

/// T009: the write and the end of whoever lost the job are refused together.
#[tokio::test]
async fn a_loser_neither_writes_nor_ends_the_job() {
    let rig = rig();
    let mut client = rig.client().await;
    rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    let paused = try_reserve(&rig.tenure).await.remove(0);
    rig.clock.advance(LEASE * 2);
    let next = try_reserve(&rig.tenure).await.remove(0);
    assert!(next.fence() > paused.fence());
    let mut tx = client.transaction().await.unwrap();
    let refused = complete(&rig.store, &mut tx, &held(&paused)).await.unwrap_err();
    assert!(matches!(refused, NotDone::Lost), "{refused}");
    // What was undone cannot be committed by mistake.
    tx.commit().await.unwrap();
    assert_eq!(effects(&client).await, 0);
    let mut tx = client.transaction().await.unwrap();
    complete(&rig.store, &mut tx, &held(&next)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(effects(&client).await, 1);
    assert_eq!(state(&rig.tenure, next.job().id).await, StateName::Succeeded);
    // It has ended: nobody ends it once more, and a settlement is a repetition.
    let mut tx = client.transaction().await.unwrap();
    assert!(matches!(complete(&rig.store, &mut tx, &held(&next)).await, Err(NotDone::Lost)));
    drop(tx);
    let late = next.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
    assert_eq!(rig.store_settle(late).await, Settled::Repeated);
}

#[tokio::test]
async fn nobody_takes_a_job_between_its_completion_and_the_commit() {
    let rig = rig();
    let mut client = rig.client().await;
    let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let slow = try_reserve(&rig.tenure).await.remove(0);
    let mut tx = client.transaction().await.unwrap();
    complete(&rig.store, &mut tx, &held(&slow)).await.unwrap();
    rig.clock.advance(LEASE * 2);
    assert!(try_reserve(&rig.another()).await.is_empty());
    tx.commit().await.unwrap();
    assert_eq!(state(&rig.tenure, id).await, StateName::Succeeded);
    assert!(try_reserve(&rig.tenure).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_transactions_that_end_one_job_one_does() {
    let rig = rig();
    let (mut one, mut two) = (rig.client().await, rig.client().await);
    rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    let mine = held(&try_reserve(&rig.tenure).await.remove(0));
    let mut first = one.transaction().await.unwrap();
    complete(&rig.store, &mut first, &mine).await.unwrap();
    let store = Arc::clone(&rig.store);
    let second = tokio::spawn(async move {
        let mut second = two.transaction().await.unwrap();
        complete(&store, &mut second, &mine).await
    });
    SystemClock.sleep(Duration::from_millis(100)).await;
    first.commit().await.unwrap();
    assert!(matches!(second.await.unwrap(), Err(NotDone::Lost)));
    assert_eq!(effects(&rig.client().await).await, 1);
}

/// Its order, its limit, its key and those that wait for it go on, as after any other end.
#[tokio::test]
async fn who_waits_for_a_job_that_ends_in_a_transaction_goes_on() {
    let rig = rig();
    let mut client = rig.client().await;
    let tenure = &rig.tenure;
    let first = tenure.enqueue(Plain { number: 1 }).ordered("o").limited("l", 1).unique_key("u");
    let first = first.await.unwrap().id();
    let second = tenure.enqueue(Plain { number: 2 }).ordered("o").await.unwrap().id();
    let third = tenure.enqueue(Plain { number: 3 }).limited("l", 1).await.unwrap().id();
    let fourth = tenure.enqueue(Plain { number: 4 }).after_jobs([first]).await.unwrap().id();
    let reserved = try_reserve(tenure).await;
    assert_eq!(reserved.iter().map(|job| job.job().id).collect::<Vec<_>>(), [first]);
    let mut tx = client.transaction().await.unwrap();
    complete(&rig.store, &mut tx, &held(&reserved[0])).await.unwrap();
    tx.commit().await.unwrap();
    let mut next: Vec<JobId> = try_reserve(&rig.another()).await.iter().map(|job| job.job().id).collect();
    // What waited for a job may be granted by the turn after the one that noticed its end.
    next.extend(try_reserve(tenure).await.iter().map(|job| job.job().id));
    next.sort();
    assert_eq!(next, [second, third, fourth]);
    let again = tenure.enqueue(Plain { number: 5 }).unique_key("u").await.unwrap();
    assert_ne!(again.id(), first);
    let counts = tenure.counts().await.unwrap();
    let sum = |name| counts.iter().filter(|count| count.state == name).map(|count| count.jobs).sum::<u64>();
    assert_eq!([StateName::Running, StateName::Succeeded, StateName::Queued].map(sum), [3, 1, 1]);
}
