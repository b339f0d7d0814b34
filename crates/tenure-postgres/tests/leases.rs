//! Leases in a database: what outlives what, what a wish costs, and what cannot be read.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{AppId, LeaseOutcome, LeaseRefusal, What};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Clock, Fault, Hosts, Jobs, Leases, LeasesAsk, LedgerAsk, ManualClock, Store, SystemClock,
};
use tokio_postgres::Client;

use given::leases::{acquire, forget, granted, id, name, refusal, release, renew, wait_for, who, wish};
use given::{host, number, open, schema, server, user};

/// A store, and a look behind it.
async fn given() -> (Arc<PostgresStore>, Client, ManualClock, String) {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let client = user(&server().url()).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    (store, client, clock, schema)
}

/// T008: a fence grows through release, deletion and re-creation of the name, and a restart.
#[tokio::test]
async fn a_fence_outlives_release_forgetting_and_reopening() {
    let (schema, clock) = (schema(), ManualClock::new());
    let mut last = None;
    for round in 0..3 {
        let store = open(&schema, &clock).await;
        let first = granted(wish(&*store, acquire("month-end", round)).await);
        assert!(Some(first) > last, "round {round}");
        wish(&*store, release("month-end", round, first)).await;
        assert_eq!(wish(&*store, forget("month-end")).await, LeaseOutcome::Forgotten);
        assert_eq!(store.lease_info(&name("month-end")).await.unwrap(), None);
        let again = granted(wish(&*store, acquire("month-end", round)).await);
        assert!(again > first);
        wish(&*store, release("month-end", round, again)).await;
        store.close().await.unwrap();
        last = Some(again);
    }
}

#[tokio::test]
async fn what_is_held_is_held_by_the_same_after_reopening() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let fence = granted(wish(&*store, acquire("month-end", 1)).await);
    let before = store.lease_info(&name("month-end")).await.unwrap().unwrap();
    store.close().await.unwrap();
    let store = open(&schema, &clock).await;
    assert_eq!(store.lease_info(&name("month-end")).await.unwrap(), Some(before));
    let refused = refusal(wish(&*store, acquire("month-end", 2)).await);
    assert!(matches!(refused, LeaseRefusal::Held { by, .. } if by == who(1)));
    assert!(matches!(wish(&*store, renew("month-end", 1, fence)).await, LeaseOutcome::Renewed { .. }));
}

#[tokio::test]
async fn ten_thousand_renewals_in_one_call_are_one_transaction_that_hardly_touches_an_index() {
    const LEASES: u64 = 10_000;
    let (store, client, clock, _) = given().await;
    let of = |number: u64| format!("lease-{number}");
    let wishes = (0..LEASES).map(|number| acquire(&of(number), number)).collect();
    let fences: Vec<_> = store.lease(wishes).await.unwrap().into_iter().map(granted).collect();
    clock.advance(Duration::from_secs(10));
    let wishes = (0..LEASES).zip(&fences).map(|(number, fence)| renew(&of(number), number, *fence)).collect();
    let sizes = "SELECT sum(pg_relation_size(indexrelid))::bigint FROM pg_index
         WHERE indrelid IN ('lease'::regclass, 'ledger'::regclass)";
    let before = number(&client, sizes).await;
    let outcomes = store.lease(wishes).await.unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, LeaseOutcome::Renewed { .. })));
    assert_eq!(number(&client, "SELECT count(DISTINCT xmin::text) FROM lease").await, 1);
    let grown = number(&client, sizes).await - before;
    assert!(grown < before / 20, "each index would have doubled: {grown} of {before} bytes");
}

/// Whoever waits asks again and again.
#[tokio::test]
async fn who_is_refused_again_writes_nothing() {
    let (store, client, clock, _) = given().await;
    granted(wish(&*store, acquire("month-end", 1)).await);
    for number in [2, 3] {
        refusal(wish(&*store, acquire("month-end", number)).await);
    }
    refusal(wish(&*store, wait_for("month-end", 4, Duration::from_secs(9))).await);
    let written = "SELECT max(x::text::bigint) FROM (SELECT xmin FROM ledger
         UNION ALL SELECT xmin FROM lease_line UNION ALL SELECT xmin FROM lease) w (x)";
    let before = number(&client, written).await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(1));
        for number in [2, 3] {
            refusal(wish(&*store, acquire("month-end", number)).await);
        }
        refusal(wish(&*store, wait_for("month-end", 4, Duration::from_secs(9))).await);
    }
    assert_eq!(number(&client, written).await, before);
    clock.advance(Duration::from_secs(1));
    refusal(wish(&*store, wait_for("month-end", 4, Duration::from_secs(9))).await);
    assert!(number(&client, written).await > before, "a place is kept for longer after a third of its time");
    let ask = LedgerAsk { what: vec![What::Refused], ..LedgerAsk::default() };
    assert_eq!(store.ledger(ask).await.unwrap().entries.len(), 3, "each is told once");
}

#[tokio::test]
async fn places_in_line_whose_time_is_over_do_not_pile_up() {
    let (store, client, clock, _) = given().await;
    let places = async || number(&client, "SELECT count(*) FROM lease_line").await;
    granted(wish(&*store, acquire("month-end", 1)).await);
    for number in 2..60 {
        refusal(wish(&*store, wait_for("month-end", number, Duration::from_secs(1))).await);
        clock.advance(Duration::from_millis(100));
    }
    // Nobody has tended: ten wait at a time.
    assert!(places().await <= 12, "{} places are kept", places().await);
    clock.advance(Duration::from_secs(1));
    store.tend().await.unwrap();
    assert_eq!(places().await, 0);
}

#[tokio::test]
async fn a_prefix_is_meant_byte_by_byte() {
    let (store, ..) = given().await;
    let names = ["a", "a%", "a%b", "a_", "ab", "A", "aé", "a\u{10FFFF}", "a\u{10FFFF}b", "b", "é"];
    store.lease(names.iter().map(|name| acquire(name, 1)).collect()).await.unwrap();
    for prefix in ["", "a", "a%", "a_", "A", "aé", "a\u{10FFFF}", "\u{10FFFF}", "e", "a\0"] {
        let mut expected: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(prefix)).collect();
        expected.sort_unstable();
        for at_most in [1, 2, 100] {
            assert_eq!(listed(&store, prefix, at_most).await, expected, "{prefix:?} by {at_most}");
        }
    }
}

/// The names of all pages.
async fn listed(store: &PostgresStore, prefix: &str, at_most: usize) -> Vec<String> {
    let mut ask = LeasesAsk { prefix: prefix.to_owned(), at_most, ..LeasesAsk::default() };
    let mut names = Vec::new();
    loop {
        let page = store.leases(ask.clone()).await.unwrap();
        assert!(page.leases.len() <= at_most);
        names.extend(page.leases.into_iter().map(|info| info.lease.name.to_string()));
        let Some(next) = page.next else { return names };
        ask.behind = Some(next);
    }
}

/// Only a newer version can have written such a row.
#[tokio::test]
async fn a_lease_that_cannot_be_read_is_a_fault_for_who_asks_for_it_and_stops_nobody_else() {
    let (store, client, clock, _) = given().await;
    let fence = granted(wish(&*store, acquire("newer", 1)).await);
    let others = granted(wish(&*store, acquire("other", 1)).await);
    client.batch_execute("UPDATE lease SET phase = 9 WHERE name = 'newer'").await.unwrap();

    // Alone it is a fault, which names it and may pass.
    for asked in [acquire("newer", 2), renew("newer", 1, fence), forget("newer")] {
        let fault = store.lease(vec![asked]).await.unwrap_err();
        assert!(fault.is_passing() && fault.to_string().contains("lease newer"), "{fault}");
    }
    let fault = store.lease_info(&name("newer")).await.unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("lease newer")), "{fault}");

    // Calls of others that go along with it have their answers.
    let (faulted, renewed) =
        tokio::join!(store.lease(vec![acquire("newer", 2)]), store.lease(vec![renew("other", 1, others)]));
    assert!(faulted.is_err() && matches!(renewed.unwrap()[0], LeaseOutcome::Renewed { .. }));

    // Among others it can be neither taken nor renewed, and those have their answers.
    let together = vec![renew("newer", 1, fence), renew("other", 1, others), acquire("newer", 2)];
    let outcomes = store.lease(together).await.unwrap();
    assert!(matches!(outcomes[0], LeaseOutcome::Refused(LeaseRefusal::Breaking { .. })));
    assert!(matches!(outcomes[1], LeaseOutcome::Renewed { .. }));
    assert!(matches!(outcomes[2], LeaseOutcome::Refused(LeaseRefusal::Breaking { .. })));
    assert_eq!(listed(&store, "", 10).await, ["other"]);

    // A lapse is noticed without it.
    client.batch_execute("UPDATE lease SET phase = 0, id = NULL WHERE name = 'newer'").await.unwrap();
    clock.advance(Duration::from_secs(3600));
    assert!(!store.tend().await.unwrap().more);
    let ask = LedgerAsk { what: vec![What::Lapsed], ..LedgerAsk::default() };
    let lapsed = store.ledger(ask).await.unwrap().entries;
    assert_eq!(lapsed.iter().map(|entry| entry.note.name.as_str()).collect::<Vec<_>>(), ["other"]);

    // Once it can be read, it goes on.
    let mend = format!("UPDATE lease SET id = '{}' WHERE name = 'newer'", id(1));
    client.batch_execute(&mend).await.unwrap();
    assert!(granted(wish(&*store, acquire("newer", 2)).await) > fence);
}

#[tokio::test]
async fn an_entry_of_the_ledger_that_cannot_be_read_is_left_out() {
    let (store, client, ..) = given().await;
    let wishes = (1..=3).map(|number| acquire(&format!("lease-{number}"), number)).collect();
    store.lease(wishes).await.unwrap();
    client.batch_execute("UPDATE ledger SET what = 77 WHERE number = 2").await.unwrap();
    for at_most in [1, 100] {
        let (mut numbers, mut ask) = (vec![], LedgerAsk { at_most, ..LedgerAsk::default() });
        loop {
            let page = store.ledger(ask.clone()).await.unwrap();
            numbers.extend(page.entries.iter().map(|entry| entry.number));
            ask.behind = page.next;
            if ask.behind.is_none() {
                break;
            }
        }
        assert_eq!(numbers, [3, 1]);
    }
}

/// It is renewed many times between two looks: the look finds it held, and comes again when it may have lapsed.
#[tokio::test]
async fn a_lapse_is_noticed_of_what_was_renewed_since_it_was_to_be_looked_at() {
    let (store, _, clock, _) = given().await;
    let fence = granted(wish(&*store, acquire("month-end", 1)).await);
    let lapses = async || {
        let ask = LedgerAsk { what: vec![What::Lapsed], ..LedgerAsk::default() };
        store.ledger(ask).await.unwrap().entries
    };
    for _ in 0..5 {
        clock.advance(Duration::from_secs(20));
        wish(&*store, renew("month-end", 1, fence)).await;
        store.tend().await.unwrap();
        assert!(lapses().await.is_empty());
    }
    clock.advance(Duration::from_secs(30));
    let at = clock.now();
    clock.advance(Duration::from_secs(5));
    store.tend().await.unwrap();
    assert_eq!(lapses().await.iter().map(|entry| entry.note.at).collect::<Vec<_>>(), [at]);
}

#[tokio::test]
async fn an_app_id_is_still_its_programs_after_reopening() {
    let (schema, clock) = (schema(), ManualClock::new());
    let app = AppId::new("billing").unwrap();
    let store = open(&schema, &clock).await;
    store.claim_app(&app, "billing-service", host(1)).await.unwrap().unwrap();
    store.close().await.unwrap();
    let store = open(&schema, &clock).await;
    let taken = store.claim_app(&app, "mailer", host(2)).await.unwrap().unwrap_err();
    assert_eq!((taken.program.as_str(), taken.host), ("billing-service", host(1)));
    store.claim_app(&app, "billing-service", host(3)).await.unwrap().unwrap();
    let apps = store.apps().await.unwrap();
    assert_eq!(apps.iter().map(|app| app.host).collect::<Vec<_>>(), [host(3)]);
}

#[tokio::test]
#[ignore = "for whoever looks at speed"]
async fn what_a_thousand_renewals_cost() {
    const LEASES: u64 = 1_000;
    let (store, client, clock, _) = given().await;
    let of = |number: u64| format!("lease-{number}");
    let wishes = (0..LEASES).map(|number| acquire(&of(number), number)).collect();
    let fences: Vec<_> = store.lease(wishes).await.unwrap().into_iter().map(granted).collect();
    let written =
        async || number(&client, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").await;
    for _ in 0..10 {
        clock.advance(Duration::from_secs(5));
        let wishes = (0..LEASES).zip(&fences).map(|(number, fence)| renew(&of(number), number, *fence));
        let (before, began) = (written().await, SystemClock.moment());
        store.lease(wishes.collect()).await.unwrap();
        let took = SystemClock.moment().since(began);
        println!("{took:?}, {} bytes of log each", (written().await - before) / LEASES as i64);
    }
}
