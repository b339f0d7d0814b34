//! Leases that are taken by SQL and by the library, from each other.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use given::leases::{acquire, granted, name, refusal, release, renew, wait_for, wish};
use given::{number, options, schema, server, user};
use tenure_core::{LeaseRefusal, What};
use tenure_postgres::PostgresStore;
use tenure_store::{Leases, LedgerAsk, Store};
use tokio_postgres::Client;

/// A store on the server's clock, by which those go who speak SQL.
async fn store(schema: &str) -> Arc<PostgresStore> {
    PostgresStore::open(&server().url(), options(schema), None).await.unwrap()
}

async fn fence(client: &Client, call: &str) -> Option<i64> {
    client.query_one(&format!("SELECT {call}"), &[]).await.unwrap().get(0)
}

async fn done(client: &Client, call: &str) -> bool {
    client.query_one(&format!("SELECT {call}"), &[]).await.unwrap().get(0)
}

/// As if so much time had passed since it was granted.
async fn let_pass(client: &Client, schema: &str, seconds: i64) {
    let micros = seconds * 1_000_000;
    let sql = format!("UPDATE {schema}.lease SET until = until - {micros}, look = look - {micros}");
    client.batch_execute(&sql).await.unwrap();
}

/// What the ledger tells of a lease: what happened, under which fence, and who.
async fn ledger(store: &PostgresStore) -> Vec<(What, u64, String)> {
    let ask = LedgerAsk { at_most: 100, ..LedgerAsk::default() };
    let mut entries = store.ledger(ask).await.unwrap().entries;
    entries.sort_by_key(|entry| entry.number);
    entries.into_iter().map(|entry| (entry.note.what, entry.note.fence.number(), entry.note.by.who)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_taken_by_sql_is_respected_by_the_library_and_the_other_way_round() {
    let s = schema();
    let (store, client) = (store(&s).await, user(&server().url()).await);
    let first = fence(&client, &format!("{s}.acquire_lease('billing', 'a trigger')")).await.unwrap();
    let LeaseRefusal::Held { by, fence: under, .. } = refusal(wish(&*store, acquire("billing", 1)).await)
    else {
        panic!("it is held");
    };
    assert_eq!((by.who.as_str(), under.number()), ("a trigger", first as u64));
    let info = store.lease_info(&name("billing")).await.unwrap().unwrap();
    assert_eq!(info.lease.fence.number(), first as u64);
    // Both ways: only its own fence renews it and gives it back.
    assert!(!done(&client, &format!("{s}.renew_lease('billing', {})", first + 1)).await);
    assert!(done(&client, &format!("{s}.renew_lease('billing', {first}, '40 s')")).await);
    assert!(done(&client, &format!("{s}.release_lease('billing', {first})")).await);
    assert!(!done(&client, &format!("{s}.release_lease('billing', {first})")).await);
    let second = granted(wish(&*store, acquire("billing", 1)).await);
    assert!(second.number() > first as u64);
    assert_eq!(fence(&client, &format!("{s}.acquire_lease('billing', 'a trigger')")).await, None);
    assert_eq!(fence(&client, &format!("{s}.acquire_lease('billing', 'a trigger')")).await, None);
    assert!(!done(&client, &format!("{s}.renew_lease('billing', {first})")).await);
    wish(&*store, renew("billing", 1, second)).await;
    wish(&*store, release("billing", 1, second)).await;
    let third = fence(&client, &format!("{s}.acquire_lease('billing', 'a trigger')")).await.unwrap();
    assert!(third > second.number() as i64);
    let (first, second, third) = (first as u64, second.number(), third as u64);
    let (trigger, host) = ("a trigger".to_owned(), "host-1".to_owned());
    assert_eq!(
        ledger(&store).await,
        [
            (What::Acquired, first, trigger.clone()),
            (What::Refused, first, host.clone()),
            (What::Released, first, trigger.clone()),
            (What::Acquired, second, host.clone()),
            (What::Refused, second, trigger.clone()),
            (What::Released, second, host),
            (What::Acquired, third, trigger),
        ]
    );
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lapsed_is_taken_over_with_a_greater_fence_and_its_holder_is_told() {
    let s = schema();
    let (store, client) = (store(&s).await, user(&server().url()).await);
    let first = fence(&client, &format!("{s}.acquire_lease('x', 'one', '5 s')")).await.unwrap();
    let_pass(&client, &s, 10).await;
    assert!(!done(&client, &format!("{s}.renew_lease('x', {first})")).await);
    let second = fence(&client, &format!("{s}.acquire_lease('x', 'two', '5 s')")).await.unwrap();
    let_pass(&client, &s, 10).await;
    let third = granted(wish(&*store, acquire("x", 1)).await).number();
    assert!(first < second && (second as u64) < third);
    let what: Vec<_> = ledger(&store).await.into_iter().map(|(what, fence, _)| (what, fence)).collect();
    assert_eq!(
        what,
        [
            (What::Acquired, first as u64),
            (What::Lapsed, first as u64),
            (What::TookOver, second as u64),
            (What::Lapsed, second as u64),
            (What::TookOver, third),
        ]
    );
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_in_line_comes_before_whoever_asks_by_sql() {
    let s = schema();
    let (store, client) = (store(&s).await, user(&server().url()).await);
    let first = granted(wish(&*store, acquire("x", 1)).await);
    refusal(wish(&*store, wait_for("x", 2, Duration::from_secs(20))).await);
    wish(&*store, release("x", 1, first)).await;
    assert_eq!(
        fence(&client, &format!("{s}.acquire_lease('x', 'me')")).await,
        None,
        "somebody has a head start"
    );
    granted(wish(&*store, wait_for("x", 2, Duration::from_secs(20))).await);
    store.close().await.unwrap();
}

/// T008: before the bar nobody is granted anything, and fences are of the epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bar_and_the_epoch_hold_for_sql_as_well() {
    let s = schema();
    let (store, client) = (store(&s).await, user(&server().url()).await);
    // The store has seen which server it is on: from here on it leaves the epoch alone.
    granted(wish(&*store, acquire("another", 1)).await);
    let set = |name: &str, value: &str| format!("UPDATE {s}.meta SET value = {value} WHERE name = '{name}'");
    client.batch_execute(&set("bar", &format!("{s}.micros() + 10000000"))).await.unwrap();
    assert_eq!(fence(&client, &format!("{s}.acquire_lease('x', 'me')")).await, None);
    assert_eq!(
        number(&client, &format!("SELECT count(*) FROM {s}.lease WHERE name = 'x'")).await,
        0,
        "nobody has held it"
    );
    client.batch_execute(&set("bar", "0")).await.unwrap();
    client.batch_execute(&set("floor", "3000")).await.unwrap();
    let first = fence(&client, &format!("{s}.acquire_lease('x', 'me')")).await.unwrap();
    assert_eq!(first, 3001);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_granted_with_the_transaction_that_takes_it_or_not_at_all() {
    let s = schema();
    let (store, mut client) = (store(&s).await, user(&server().url()).await);
    let tx = client.transaction().await.unwrap();
    tx.query_one(&format!("SELECT {s}.acquire_lease('x', 'me')"), &[]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(ledger(&store).await, []);
    assert!(store.lease_info(&name("x")).await.unwrap().is_none());
    let id = "00000000-0000-0000-0000-00000000000a";
    let first = fence(&client, &format!("{s}.acquire_lease('x', 'me', id => '{id}')")).await;
    let again = fence(&client, &format!("{s}.acquire_lease('x', 'me', id => '{id}')")).await;
    assert!(first.is_some() && first == again, "the same wish is answered the same");
    store.close().await.unwrap();
}

#[tokio::test]
async fn names_that_are_not_allowed_are_refused_and_nobody_calls_who_was_granted_nothing() {
    let s = schema();
    let (store, client) = (store(&s).await, user(&server().url()).await);
    for call in [
        "acquire_lease('', 'me')",
        "acquire_lease('a/../b', 'me')",
        "acquire_lease(E'a\\tb', 'me')",
        "acquire_lease('singleton/app/x', 'me')",
        "acquire_lease('x', E'me\\n')",
        "acquire_lease('x', 'me', '1 ms')",
        "acquire_lease('x', 'me', NULL)",
        "renew_lease('x', 1, '2 days')",
    ] {
        let refused = client.query_one(&format!("SELECT {s}.{call}"), &[]).await.unwrap_err();
        assert_eq!(refused.code().map(|code| code.code()), Some("22023"), "{call}: {refused}");
    }
    let role = format!("stranger_{s}");
    let setup = format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {s} TO {role}; SET ROLE {role};");
    client.batch_execute(&setup).await.unwrap();
    let refused = client.query_one(&format!("SELECT {s}.acquire_lease('x', 'me')"), &[]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"));
    let grant =
        format!("RESET ROLE; GRANT EXECUTE ON FUNCTION {s}.acquire_lease TO {role}; SET ROLE {role};");
    client.batch_execute(&grant).await.unwrap();
    assert!(fence(&client, &format!("{s}.acquire_lease('x', 'me')")).await.is_some());
    store.close().await.unwrap();
}

/// T017: many connections that speak SQL, and programs, want the same names. Each is held by one at a time, and no fence
/// is granted twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_connections_and_programs_hold_a_lease_one_at_a_time() {
    const NAMES: usize = 2;
    let s = schema();
    let holders: Arc<[AtomicU64; NAMES]> = Arc::default();
    let opened = store(&s).await;
    let mut racing = Vec::new();
    for me in 1..=8_u64 {
        let (s, holders) = (s.clone(), Arc::clone(&holders));
        racing.push(tokio::spawn(async move {
            let (client, mut fences) = (user(&server().url()).await, Vec::new());
            for turn in 0..40 {
                let at = turn % NAMES;
                let call = format!("{s}.acquire_lease('n{at}', 'c{me}')");
                let Some(granted) = fence(&client, &call).await else { continue };
                assert_eq!(holders[at].swap(me, Ordering::SeqCst), 0, "somebody else has it");
                fences.push((at, granted as u64));
                holders[at].store(0, Ordering::SeqCst);
                assert!(done(&client, &format!("{s}.release_lease('n{at}', {granted})")).await);
            }
            fences
        }));
    }
    for me in 11..=13_u64 {
        let (s, holders) = (s.clone(), Arc::clone(&holders));
        racing.push(tokio::spawn(async move {
            let (store, mut fences) = (store(&s).await, Vec::new());
            for turn in 0..40 {
                let at = turn % NAMES;
                let lease = format!("n{at}");
                let outcome = wish(&*store, acquire(&lease, me)).await;
                let tenure_core::LeaseOutcome::Granted { fence, .. } = outcome else { continue };
                assert_eq!(holders[at].swap(me, Ordering::SeqCst), 0, "somebody else has it");
                fences.push((at, fence.number()));
                holders[at].store(0, Ordering::SeqCst);
                wish(&*store, release(&lease, me, fence)).await;
            }
            store.close().await.unwrap();
            fences
        }));
    }
    let mut all = Vec::new();
    for racer in racing {
        all.extend(racer.await.unwrap());
    }
    let apart: BTreeSet<_> = all.iter().copied().collect();
    assert_eq!(apart.len(), all.len(), "a fence was granted twice");
    assert!(all.len() > 20, "{} grants prove little", all.len());
    for at in 0..NAMES {
        let greatest = all.iter().filter(|(name, _)| *name == at).map(|(_, fence)| *fence).max();
        let count = all.iter().filter(|(name, _)| *name == at).count() as u64;
        assert_eq!(greatest.unwrap_or(0), count, "a grant raises a fence by one");
    }
    let told = ledger_count(&opened, What::Acquired).await;
    assert_eq!(told, all.len(), "every grant is on record");
    opened.close().await.unwrap();
}

async fn ledger_count(store: &PostgresStore, what: What) -> usize {
    let (mut count, mut behind) = (0, None);
    loop {
        let ask = LedgerAsk { what: vec![what], at_most: 1000, behind, ..LedgerAsk::default() };
        let page = store.ledger(ask).await.unwrap();
        count += page.entries.len();
        behind = page.next;
        if behind.is_none() {
            return count;
        }
    }
}
