//! A loser's write is refused in the very transaction that would have made it.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Access, Fence, LeaseOutcome, LeaseRefusal, Ttl, may_use};
use tenure_postgres::{CheckInError, LOST, PostgresStore};
use tenure_store::{Clock, Leases, ManualClock, SystemClock};
use tokio_postgres::Client;

use given::leases::{acquire, acquire_for, break_within, granted, id, name, refusal, release, renew, wish};
use given::{open, schema, server, user};

/// A store, a connection of a user's own with a table for effects, and the clock.
async fn given() -> (Arc<PostgresStore>, Client, ManualClock, String) {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let client = user(&server().url()).await;
    client.execute(&format!("CREATE TABLE {schema}.entry (text text)"), &[]).await.unwrap();
    (store, client, clock, schema)
}

async fn entries(client: &Client, schema: &str) -> Vec<String> {
    let rows = client.query(&format!("SELECT text FROM {schema}.entry ORDER BY text"), &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Writes an entry in the name of a holder.
async fn enter(
    store: &PostgresStore,
    client: &mut Client,
    schema: &str,
    number: u64,
    fence: Fence,
) -> Result<(), CheckInError> {
    let transaction = client.transaction().await.unwrap();
    // The entry comes first, so that only the check keeps it out.
    let entry = format!("INSERT INTO {schema}.entry VALUES ('by {number}')");
    transaction.execute(&entry, &[]).await.unwrap();
    store.check_in().lease(&transaction, &name("ledger"), id(number), fence).await?;
    transaction.commit().await.unwrap();
    Ok(())
}

/// T009: a holder that was paused past its lease wakes when its successor has begun.
#[tokio::test]
async fn what_a_paused_holder_writes_after_its_successor_began_is_not_kept() {
    let (store, mut client, clock, schema) = given().await;
    let paused = granted(wish(&*store, acquire("ledger", 1)).await);
    enter(&store, &mut client, &schema, 1, paused).await.unwrap();
    clock.advance(Duration::from_secs(31));
    // Nobody has taken it, but its time is over.
    assert!(matches!(enter(&store, &mut client, &schema, 1, paused).await, Err(CheckInError::Lost)));
    let successor = granted(wish(&*store, acquire("ledger", 2)).await);
    assert!(matches!(enter(&store, &mut client, &schema, 1, paused).await, Err(CheckInError::Lost)));
    enter(&store, &mut client, &schema, 2, successor).await.unwrap();
    assert!(matches!(enter(&store, &mut client, &schema, 1, paused).await, Err(CheckInError::Lost)));
    assert_eq!(entries(&client, &schema).await, ["by 1", "by 2"]);
}

/// A refused check ends the transaction: what it had written is gone although its author commits.
#[tokio::test]
async fn who_does_not_look_at_the_answer_commits_nothing() {
    let (store, client, _, schema) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    let check = format!("SELECT {schema}.check_lease('ledger', '{}', {})", id(2), fence.number());
    client.batch_execute(&format!("BEGIN; INSERT INTO {schema}.entry VALUES ('late')")).await.unwrap();
    let error = client.batch_execute(&check).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), LOST);
    client.batch_execute("COMMIT").await.unwrap();
    assert!(entries(&client, &schema).await.is_empty());
}

/// It pauses between the check and the commit, for longer than its lease. Nobody is granted it meanwhile, nobody waits
/// for it, and nothing else is held up.
#[tokio::test]
async fn nobody_is_granted_a_lease_between_the_check_and_the_commit_and_nobody_waits() {
    let (store, mut client, clock, schema) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    let other = granted(wish(&*store, acquire("other", 1)).await);
    let transaction = client.transaction().await.unwrap();
    store.check_in().lease(&transaction, &name("ledger"), id(1), fence).await.unwrap();
    clock.advance(Duration::from_secs(25));
    wish(&*store, renew("other", 1, other)).await;
    clock.advance(Duration::from_secs(6));
    let began = SystemClock.moment();
    let outcomes = store.lease(vec![acquire("ledger", 2), renew("other", 1, other)]).await.unwrap();
    let LeaseOutcome::Refused(LeaseRefusal::Awaited { ahead, again }) = outcomes[0] else {
        panic!("{:?}", outcomes[0])
    };
    assert!(ahead == 1 && again > clock.now() && again.since(clock.now()) < Duration::from_secs(1));
    assert!(matches!(outcomes[1], LeaseOutcome::Renewed { .. }), "{outcomes:?}");
    assert!(SystemClock.moment().since(began) < Duration::from_secs(5), "nobody has waited for a lock");
    transaction.execute(&format!("INSERT INTO {schema}.entry VALUES ('in time')"), &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert!(granted(wish(&*store, acquire("ledger", 2)).await) > fence);
    assert!(matches!(enter(&store, &mut client, &schema, 1, fence).await, Err(CheckInError::Lost)));
    assert_eq!(entries(&client, &schema).await, ["in time"]);
}

/// A transaction may last longer than a lease.
#[tokio::test]
async fn a_holder_renews_breaks_and_gives_back_while_its_transaction_is_open() {
    let (store, mut client, clock, _) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    let transaction = client.transaction().await.unwrap();
    for _ in 0..5 {
        store.check_in().lease(&transaction, &name("ledger"), id(1), fence).await.unwrap();
        clock.advance(Duration::from_secs(20));
        let renewed = wish(&*store, renew("ledger", 1, fence)).await;
        assert!(matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
    }
    assert!(matches!(wish(&*store, break_within("ledger", 5)).await, LeaseOutcome::Breaks { .. }));
    store.check_in().lease(&transaction, &name("ledger"), id(1), fence).await.unwrap();
    assert_eq!(wish(&*store, release("ledger", 1, fence)).await, LeaseOutcome::Released);
    // It is free, and left to what was begun under it.
    let refused = refusal(wish(&*store, acquire("ledger", 2)).await);
    assert!(matches!(refused, LeaseRefusal::Awaited { .. }), "{refused:?}");
    let lost = store.check_in().lease(&transaction, &name("ledger"), id(1), fence).await;
    assert!(matches!(lost, Err(CheckInError::Lost)), "{lost:?}");
    transaction.rollback().await.unwrap();
    granted(wish(&*store, acquire("ledger", 2)).await);
}

/// The check comes while somebody is being granted the lease and has not committed: it waits, and is refused.
#[tokio::test]
async fn a_check_that_meets_a_takeover_waits_for_it_and_is_refused() {
    let (store, mut client, _, schema) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    let taker = user(&server().url()).await;
    // As the store does it.
    let take = format!(
        "SET search_path = {schema}; BEGIN; SELECT FROM lease WHERE name = 'ledger' FOR NO KEY UPDATE;
         SELECT FROM lease WHERE name = 'ledger' FOR UPDATE SKIP LOCKED;
         UPDATE lease SET fence = fence + 1 WHERE name = 'ledger'"
    );
    taker.batch_execute(&take).await.unwrap();
    let entered = tokio::spawn({
        let (store, schema) = (Arc::clone(&store), schema.clone());
        async move {
            let entered = enter(&store, &mut client, &schema, 1, fence).await;
            (entered, client)
        }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while given::number(&taker, waits).await == 0 {}
    assert!(!entered.is_finished());
    taker.batch_execute("COMMIT").await.unwrap();
    let (entered, client) = entered.await.unwrap();
    assert!(matches!(entered, Err(CheckInError::Lost)), "{entered:?}");
    assert!(entries(&client, &schema).await.is_empty());
}

/// A transaction that sees the past does not take it for the present.
#[tokio::test]
async fn at_every_level_of_isolation_a_loser_is_refused() {
    let (store, client, clock, schema) = given().await;
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let name = level.to_lowercase();
        let fence = granted(wish(&*store, acquire(&name, 1)).await);
        client
            .batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT FROM {schema}.lease"))
            .await
            .unwrap();
        wish(&*store, renew(&name, 1, fence)).await;
        let at = clock.now().as_micros();
        let check = format!("SELECT {schema}.check_lease('{name}', '{}', {}, {at})", id(1), fence.number());
        // It was renewed since, and is held.
        client.batch_execute(&check).await.unwrap();
        client
            .batch_execute(&format!("COMMIT; BEGIN ISOLATION LEVEL {level}; SELECT FROM {schema}.lease"))
            .await
            .unwrap();
        clock.advance(Duration::from_secs(31));
        granted(wish(&*store, acquire(&name, 2)).await);
        // By its own clock it would still be held.
        let error = client.batch_execute(&check).await.unwrap_err();
        let code = error.code().unwrap().code();
        assert!(code == LOST || code == "40001", "{level}: {error:?}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// The function repeats what the domain decides; here they are compared in every state.
#[tokio::test]
async fn the_check_agrees_with_the_domain_on_who_may_write() {
    let (store, mut client, clock, schema) = given().await;
    let names = ["held", "endless", "freed", "lapses", "breaks", "broken", "endless breaks", "noticed"];
    for text in names {
        let seconds = if matches!(text, "lapses" | "noticed") { 20 } else { 60 };
        let ttl = Ttl::new(Duration::from_secs(seconds)).unwrap();
        let ttl = if text.starts_with("endless") { Ttl::Endless } else { ttl };
        granted(wish(&*store, acquire_for(text, 1, ttl)).await);
    }
    wish(&*store, release("freed", 1, Fence::from_number(1))).await;
    wish(&*store, break_within("breaks", 20)).await;
    wish(&*store, break_within("endless breaks", 20)).await;
    wish(&*store, break_within("broken", 0)).await;
    let mut verdicts = [0, 0];
    // To the very instants at which something ends.
    for seconds in [0, 19, 1, 1, 38, 1] {
        clock.advance(Duration::from_secs(seconds));
        for text in names {
            let lease = store.lease_info(&name(text)).await.unwrap().unwrap().lease;
            for (who, fence) in [(id(1), 1), (id(2), 1), (id(1), 0), (id(1), 2)] {
                let fence = Fence::from_number(fence);
                let expected = may_use(&lease, Access::Write, Some((who, fence)), clock.now());
                let transaction = client.transaction().await.unwrap();
                let checked = store.check_in().lease(&transaction, &name(text), who, fence).await;
                assert_eq!(checked.is_ok(), expected.is_ok(), "{text} after {seconds} s: {checked:?}");
                verdicts[usize::from(checked.is_ok())] += 1;
            }
        }
    }
    assert!(verdicts.iter().all(|count| *count >= 15), "{verdicts:?}");
    tenure_store::Jobs::tend(&*store).await.unwrap();
    for text in ["noticed", "unheard of"] {
        let transaction = client.transaction().await.unwrap();
        let checked = store.check_in().lease(&transaction, &name(text), id(1), Fence::from_number(1)).await;
        assert!(matches!(checked, Err(CheckInError::Lost)), "{text}");
    }
    // Without a clock of the store's own, it goes by the server's, which is long past that of this test or before it.
    let check = format!("SELECT {schema}.check_lease('endless', '{}', 1)", id(1));
    client.batch_execute(&check).await.unwrap();
}

#[tokio::test]
async fn another_database_is_told_from_a_lost_lease() {
    let (store, mut client, _, schema) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    client.batch_execute(&format!("ALTER SCHEMA {schema} RENAME TO {schema}_moved")).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let checked = store.check_in().lease(&transaction, &name("ledger"), id(1), fence).await;
    assert!(matches!(checked, Err(CheckInError::NotTheStore)), "{checked:?}");
}

/// Who has no right to the tables may be allowed the check alone.
#[tokio::test]
async fn a_role_that_may_only_check_can_check() {
    let (store, client, clock, schema) = given().await;
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    let at = clock.now().as_micros();
    let role = format!("role_{schema}");
    let set = format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role};
         GRANT EXECUTE ON FUNCTION {schema}.check_lease TO {role}; SET ROLE {role}; BEGIN;
         SELECT {schema}.check_lease('ledger', '{}', {}, {at})",
        id(1),
        fence.number()
    );
    client.batch_execute(&set).await.unwrap();
    let error = client.batch_execute(&format!("SELECT FROM {schema}.lease")).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42501");
}
