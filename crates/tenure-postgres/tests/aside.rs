//! Jobs that only a newer version can read stop nobody else.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Head, Key, NewJob, OrderingKey, StateName, Terms, Verdict};
use tenure_store::{Jobs, ManualClock, Store};

use given::jobs::{ask, new_job, new_jobs, settle};
use given::{host, open, schema, server, user};

const SPOIL: &str = "UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 2";

fn ordered(number: u64) -> NewJob {
    let ordering = Some(OrderingKey { key: Key::new("ordering", "cart").unwrap(), head: Head::default() });
    NewJob { terms: Arc::new(Terms { ordering, ..Terms::default() }), ..new_job(number) }
}

/// What nobody can read shall not end what shares its keys: its turn comes when it can be read again.
#[tokio::test]
async fn a_job_with_keys_that_a_newer_version_wrote_keeps_its_turn_until_it_can_be_read() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let client = user(&server().url()).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    store.enqueue((1..=3).map(ordered).collect()).await.unwrap();
    let known: String = client.query_one("SELECT terms FROM job WHERE seq = 2", &[]).await.unwrap().get(0);
    let first = store.reserve(ask(host(1), 9)).await.unwrap().jobs.remove(0);
    client.execute(SPOIL, &[]).await.unwrap();
    let turn =
        store.settle(vec![settle(first, Verdict::Succeeded(None))], Some(ask(host(1), 9))).await.unwrap();
    assert_eq!(turn.settled, [tenure_store::Settled::Done(StateName::Succeeded)]);
    for _ in 0..3 {
        let reservation = store.reserve(ask(host(1), 9)).await.unwrap();
        assert_eq!(reservation.jobs, []);
        assert!(reservation.due_in > Some(Duration::from_millis(1)), "nobody looks again at once");
        clock.advance(Duration::from_secs(60));
    }
    client.execute("UPDATE job SET terms = $1 WHERE seq = 2", &[&known]).await.unwrap();
    clock.advance(Duration::from_secs(60));
    for expected in [2, 3] {
        let reserved = store.reserve(ask(host(1), 9)).await.unwrap().jobs.remove(0);
        assert_eq!(reserved.job().seq, expected);
        store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap();
    }
    store.close().await.unwrap();
}

/// It was granted, nobody could do it, and it lapses again and again.
#[tokio::test]
async fn a_running_job_that_cannot_be_read_is_left_alone_for_a_while_and_keeps_nobody_looking() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let client = user(&server().url()).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    store.enqueue(new_jobs(1, 3)).await.unwrap();
    let granted = store.reserve(ask(host(1), 3)).await.unwrap().jobs;
    assert_eq!(granted.len(), 3);
    client.execute(SPOIL, &[]).await.unwrap();
    clock.advance(ask(host(1), 3).ttl);
    let again = store.reserve(ask(host(2), 3)).await.unwrap();
    assert_eq!(again.jobs.len(), 2, "those that can be read are handed out again");
    assert!(again.due_in > Some(Duration::from_millis(1)), "{:?}", again.due_in);
    client.execute("UPDATE job SET terms = NULL WHERE seq = 2", &[]).await.unwrap();
    clock.advance(Duration::from_secs(61));
    let next = store.reserve(ask(host(3), 3)).await.unwrap().jobs;
    assert!(next.iter().any(|reserved| reserved.job().seq == 2), "{next:?}");
    store.close().await.unwrap();
}
