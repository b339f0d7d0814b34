//! What an attempt writes after another has begun is refused in the very transaction that would have made it.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::time::Duration;

use tenure_core::{Reserved, StateName, Verdict};
use tenure_postgres::{CheckInError, PostgresStore};
use tenure_store::{Held, Jobs, ManualClock, Renew, Renewal, Settled};
use tokio_postgres::Client;

use given::jobs::{ask, held, new_jobs, settle};
use given::{host, number, open, schema, server, user};

async fn take(store: &PostgresStore, by: u64) -> Reserved {
    store.reserve(ask(host(by), 1)).await.unwrap().jobs.remove(0)
}

async fn enter(store: &PostgresStore, client: &mut Client, held: Held) -> Result<(), CheckInError> {
    let transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO pg_temp.entry VALUES (1)", &[]).await.unwrap();
    store.check_in().job(&transaction, &held).await?;
    transaction.commit().await.unwrap();
    Ok(())
}

fn is_lost(checked: &Result<(), CheckInError>) -> bool {
    matches!(checked, Err(CheckInError::Lost))
}

/// T009: the same for a job.
#[tokio::test]
async fn what_a_paused_attempt_writes_after_the_next_one_began_is_not_kept() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let mut client = user(&server().url()).await;
    client.batch_execute("CREATE TEMP TABLE entry (number int)").await.unwrap();
    store.enqueue(new_jobs(1, 2)).await.unwrap();
    let paused = held(&take(&store, 1).await);
    enter(&store, &mut client, paused).await.unwrap();
    // It has lapsed and nobody has noticed: its settlement would count, and so does this.
    clock.advance(Duration::from_secs(61));
    enter(&store, &mut client, paused).await.unwrap();
    let next = take_again(&store, 2, paused).await;
    assert!(is_lost(&enter(&store, &mut client, paused).await));
    enter(&store, &mut client, held(&next)).await.unwrap();
    let elsewhere = Held { id: new_jobs(2, 1)[0].id, ..held(&next) };
    assert!(is_lost(&enter(&store, &mut client, elsewhere).await), "another job's id");
    let ended = held(&next);
    store.settle(vec![settle(next, Verdict::Succeeded(None))], None).await.unwrap();
    assert!(is_lost(&enter(&store, &mut client, ended).await), "it has ended");
    assert_eq!(number(&client, "SELECT count(*) FROM entry").await, 3);
}

/// The job that was held so, in the hands of another.
async fn take_again(store: &PostgresStore, by: u64, before: Held) -> Reserved {
    loop {
        let next = take(store, by).await;
        if next.job().id == before.id {
            return next;
        }
    }
}

/// It pauses between the check and the commit, for longer than its reservation.
#[tokio::test]
async fn nobody_is_given_a_job_between_the_check_and_the_commit_and_nobody_waits() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let mut client = user(&server().url()).await;
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    let paused = held(&take(&store, 1).await);
    let transaction = client.transaction().await.unwrap();
    store.check_in().job(&transaction, &paused).await.unwrap();
    clock.advance(Duration::from_secs(61));
    store.tend().await.unwrap();
    assert!(store.reserve(ask(host(2), 1)).await.unwrap().jobs.is_empty(), "it is left to its holder");
    store.enqueue(new_jobs(2, 1)).await.unwrap();
    let other = take(&store, 2).await;
    assert_ne!(other.job().id, paused.id, "what else there is can be had");
    transaction.commit().await.unwrap();
    let next = take(&store, 2).await;
    assert!(next.job().id == paused.id && next.fence() > paused.fence);
}

/// A transaction may last longer than a reservation.
#[tokio::test]
async fn an_attempt_is_renewed_and_settled_while_its_transaction_is_open() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let mut client = user(&server().url()).await;
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    let reserved = take(&store, 1).await;
    let mine = held(&reserved);
    let transaction = client.transaction().await.unwrap();
    for _ in 0..3 {
        store.check_in().job(&transaction, &mine).await.unwrap();
        clock.advance(Duration::from_secs(50));
        let ask = Renew { ttl: Duration::from_secs(60), held: vec![mine] };
        let renewals = store.renew(ask).await.unwrap();
        assert!(!matches!(renewals[0], Renewal::Lost), "{renewals:?}");
    }
    let turn = store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded)]);
    transaction.commit().await.unwrap();
}
