//! Many programs contend for leases in one database: stores that share nothing else.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{Fence, LeaseOutcome, LeaseRefusal, Ttl, What};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Chance, Clock, Hints, LeaseWish, Leases, LedgerAsk, ManualClock, Order, Store, SystemClock,
};

use given::leases::{acquire, acquire_for, break_within, granted, id, name, release, renew, who, wish};
use given::{open, options, schema, server, user};

const PROGRAMS: u64 = 16;
const NAMES: u64 = 12;

/// What all programs watch for themselves, by name.
#[derive(Default)]
struct Watch {
    /// Who believes to hold it; 0 is nobody.
    holders: [AtomicU64; NAMES as usize],
    /// The last fence that was granted.
    fences: [AtomicU64; NAMES as usize],
    grants: AtomicU64,
}

/// T017: sixteen programs take many names at once, each time in another order, renew them and give them back. Nobody
/// ever holds one with another, and no call has ended as a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_programs_that_want_the_same_names_in_any_order_hold_each_one_at_a_time() {
    let (schema, clock, watch) = (schema(), ManualClock::new(), Arc::new(Watch::default()));
    let mut programs = Vec::new();
    for number in 1..=PROGRAMS {
        let store = open(&schema, &clock).await;
        let watch = Arc::clone(&watch);
        programs.push(tokio::spawn(async move {
            let chance = Chance::seeded(number);
            for _ in 0..25 {
                contend(&store, &watch, number, &chance).await;
            }
            store.close().await.unwrap();
        }));
    }
    for program in programs {
        program.await.unwrap();
    }
    let store = open(&schema, &clock).await;
    let ask = LedgerAsk { what: vec![What::Acquired], at_most: 1000, ..LedgerAsk::default() };
    let (mut told, mut behind) = (BTreeSet::new(), None);
    loop {
        let page = store.ledger(LedgerAsk { behind, ..ask.clone() }).await.unwrap();
        for entry in page.entries {
            assert!(told.insert((entry.note.name, entry.note.fence)), "no fence is granted twice");
        }
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    let grants = watch.grants.load(Ordering::SeqCst);
    let fences = watch.fences.iter().map(|fence| fence.load(Ordering::SeqCst));
    assert_eq!((told.len() as u64, fences.sum::<u64>()), (grants, grants), "a grant raises a fence by one");
    assert!(grants > 100, "{grants} grants prove little");
}

/// Asks again if somebody was in the way for longer than a call waits, on a slow machine; a deadlock is no such thing.
async fn ask(store: &PostgresStore, wishes: Vec<LeaseWish>) -> Vec<LeaseOutcome> {
    loop {
        match store.lease(wishes.clone()).await {
            Ok(outcomes) => return outcomes,
            Err(fault) => assert!(fault.to_string().contains("locked by another transaction"), "{fault}"),
        }
    }
}

/// Takes some names, renews what it got, and gives it back.
async fn contend(store: &PostgresStore, watch: &Watch, number: u64, chance: &Chance) {
    let mut names: Vec<u64> = (0..1 + chance.below(NAMES)).map(|_| chance.below(NAMES)).collect();
    let text = |which: u64| format!("name-{which}");
    let wishes = names.iter().map(|which| acquire(&text(*which), number)).collect();
    let outcomes = ask(store, wishes).await;
    let mut mine: BTreeMap<u64, Fence> = BTreeMap::new();
    for (which, outcome) in names.drain(..).zip(outcomes) {
        let LeaseOutcome::Granted { fence, .. } = outcome else { continue };
        if mine.insert(which, fence).is_some() {
            continue;
        }
        let at = which as usize;
        assert_eq!(watch.holders[at].swap(number, Ordering::SeqCst), 0, "{which} has two holders");
        let before = watch.fences[at].swap(fence.number(), Ordering::SeqCst);
        assert!(before < fence.number(), "fence {fence} after {before}");
        watch.grants.fetch_add(1, Ordering::SeqCst);
    }
    let wishes = mine.iter().map(|(which, fence)| renew(&text(*which), number, *fence)).collect();
    for outcome in ask(store, wishes).await {
        assert!(matches!(outcome, LeaseOutcome::Renewed { .. }), "{outcome:?}");
    }
    for which in mine.keys() {
        assert_eq!(watch.holders[*which as usize].swap(0, Ordering::SeqCst), number);
    }
    let wishes = mine.iter().rev().map(|(which, fence)| release(&text(*which), number, *fence)).collect();
    for outcome in ask(store, wishes).await {
        assert_eq!(outcome, LeaseOutcome::Released);
    }
}

/// Names that nobody has ever held are given their rows by all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_programs_that_want_many_new_names_at_once_one_has_each() {
    let (schema, clock) = (schema(), ManualClock::new());
    let mut stores = Vec::new();
    for _ in 0..PROGRAMS {
        stores.push(open(&schema, &clock).await);
    }
    for round in 0..5 {
        let wanting = stores.iter().zip(1..).map(|(store, number)| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut wishes: Vec<LeaseWish> =
                    (0..40_u64).map(|which| acquire(&format!("{round}-{which}"), number)).collect();
                wishes.rotate_left(number as usize);
                if number % 2 == 0 {
                    wishes.reverse();
                }
                let names: Vec<_> = wishes.iter().map(|wish| wish.name.clone()).collect();
                let outcomes = ask(&store, wishes).await;
                let got = |(name, outcome)| matches!(outcome, LeaseOutcome::Granted { .. }).then_some(name);
                names.into_iter().zip(outcomes).filter_map(got).collect::<Vec<_>>()
            })
        });
        let mut had = Vec::new();
        for program in wanting.collect::<Vec<_>>() {
            had.extend(program.await.unwrap());
        }
        assert_eq!(had.len(), 40);
        assert_eq!(had.into_iter().collect::<BTreeSet<_>>().len(), 40);
    }
}

#[tokio::test]
async fn what_one_program_granted_the_other_refuses_and_a_renewal_there_counts() {
    let (schema, clock) = (schema(), ManualClock::new());
    let (one, two) = (open(&schema, &clock).await, open(&schema, &clock).await);
    let fence = granted(wish(&*one, acquire("month-end", 1)).await);
    assert!(matches!(wish(&*two, acquire("month-end", 2)).await, LeaseOutcome::Refused(_)));
    assert!(matches!(wish(&*two, renew("month-end", 1, fence)).await, LeaseOutcome::Renewed { .. }));
    assert_eq!(wish(&*two, release("month-end", 1, fence)).await, LeaseOutcome::Released);
    let next = granted(wish(&*two, acquire("month-end", 2)).await);
    assert_eq!(next.number(), fence.number() + 1);
    let refused = wish(&*one, renew("month-end", 1, fence)).await;
    assert_eq!(refused, LeaseOutcome::Refused(LeaseRefusal::Lost { fence: next }));
}

/// It looks once it has heard; nothing depends on that.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the server tells by real time; this bounds a failure")]
async fn a_program_hears_that_another_one_gave_a_lease_back_or_asked_it_to() {
    let (schema, clock) = (schema(), ManualClock::new());
    let (one, two) = (open(&schema, &clock).await, open(&schema, &clock).await);
    let soon = Duration::from_secs(20);
    for round in 0..3 {
        let fence = granted(wish(&*one, acquire("month-end", 1)).await);
        let (mut freed, mut asked) = (two.freed(), one.asked());
        wish(&*two, break_within("month-end", 5)).await;
        tokio::time::timeout(soon, asked.changed()).await.expect("its holder hears of it").unwrap();
        freed.mark_unchanged();
        wish(&*one, release("month-end", 1, fence)).await;
        tokio::time::timeout(soon, freed.changed()).await.expect("who waits hears of it").unwrap();
        let fence = granted(wish(&*two, acquire("month-end", 2)).await);
        wish(&*two, release("month-end", 2, fence)).await;
        assert!(fence.number() == 2 * (round + 1));
    }
}

/// Transactions of several programs commit in any order; their notes are numbered in that order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_reads_the_ledger_on_and_on_misses_nothing_while_many_write() {
    const ROUNDS: u64 = 40;
    let (schema, clock) = (schema(), ManualClock::new());
    let mut writers = Vec::new();
    for number in 1..=6 {
        let store = open(&schema, &clock).await;
        writers.push(tokio::spawn(async move {
            for round in 0..ROUNDS {
                let wishes = vec![acquire(&format!("{number}-{round}"), number)];
                granted(ask(&store, wishes).await.remove(0));
            }
        }));
    }
    let reader = open(&schema, &clock).await;
    let (mut seen, mut behind) = (0, None);
    while seen < 6 * ROUNDS {
        let is_done = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let ask = LedgerAsk { order: Order::OldestFirst, behind, ..LedgerAsk::default() };
        let page = reader.ledger(ask).await.unwrap();
        assert!(!(is_done && page.entries.is_empty()), "only {seen} notes were seen");
        seen += page.entries.len() as u64;
        behind = page.entries.last().map(|entry| entry.number).or(behind);
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

/// What one call says wrongly is no reason to fail the calls that go along with it.
#[tokio::test]
async fn calls_that_go_together_do_not_fail_together() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let by = tenure_core::Holder::named("what no text of the server can hold: \0");
    let act = tenure_core::LeaseAct::Acquire { id: id(1), by, ttl: Ttl::Endless, wait: None };
    let wrong = LeaseWish { name: name("wrong"), act };
    let calls = [acquire("one", 1), wrong, acquire("two", 1)].map(|wish| store.lease(vec![wish]));
    let [one, wrong, two] = calls;
    let (one, wrong, two) = tokio::join!(one, wrong, two);
    assert!(matches!(one.unwrap()[0], LeaseOutcome::Granted { .. }));
    assert!(wrong.is_err());
    assert!(matches!(two.unwrap()[0], LeaseOutcome::Granted { .. }));
}

/// A program that was stopped in the midst of a transaction keeps what it has locked, and nothing else.
#[tokio::test]
async fn what_somebody_keeps_locked_fails_nobody_who_does_not_ask_for_it() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let wishes = vec![acquire("kept", 1), acquire("mine", 1)];
    let fences: Vec<Fence> = store.lease(wishes).await.unwrap().into_iter().map(granted).collect();
    let stopped = user(&server().url()).await;
    let keep = format!(
        "BEGIN; SELECT FROM {schema}.lease WHERE name = 'kept' FOR NO KEY UPDATE;
         INSERT INTO {schema}.lease (name, fence, forgotten, freed) VALUES ('kept new', 0, false, 0)"
    );
    stopped.batch_execute(&keep).await.unwrap();
    let (kept, mine) = tokio::join!(
        store.lease(vec![renew("kept", 1, fences[0]), renew("mine", 1, fences[1])]),
        store.lease(vec![renew("mine", 1, fences[1])])
    );
    let fault = kept.unwrap_err();
    assert!(fault.is_passing() && fault.to_string().contains("lease kept"), "{fault}");
    assert!(matches!(mine.unwrap()[0], LeaseOutcome::Renewed { .. }));
    assert!(store.lease(vec![acquire("kept new", 1)]).await.unwrap_err().is_passing());
    stopped.batch_execute("ROLLBACK").await.unwrap();
    assert!(matches!(wish(&*store, renew("kept", 1, fences[0])).await, LeaseOutcome::Renewed { .. }));
    granted(wish(&*store, acquire("kept new", 1)).await);
}

/// The server's own clock decides unless the store was given one.
#[tokio::test]
async fn by_the_servers_clock_a_lease_lasts_as_long_as_it_was_taken_for() {
    let schema = schema();
    let open = async || PostgresStore::open(&server().url(), options(&schema), None).await.unwrap();
    let (one, two) = (open().await, open().await);
    let ttl = Ttl::new(Duration::from_secs(1)).unwrap();
    let clock = one.clock();
    let began = clock.moment();
    let LeaseOutcome::Granted { fence, until } = wish(&*one, acquire_for("x", 1, ttl)).await else {
        panic!("it is free")
    };
    // The server's clock is this machine's.
    let shown = SystemClock.now();
    assert!(until.unwrap().since(shown) <= Duration::from_secs(1), "{until:?} at {shown}");
    let next = loop {
        let outcome = wish(&*two, acquire_for("x", 2, ttl)).await;
        if let LeaseOutcome::Granted { fence, .. } = outcome {
            break fence;
        }
        let LeaseOutcome::Refused(LeaseRefusal::Held { until: told, by, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((told, by), (until, who(1)));
    };
    assert!(next > fence && clock.moment().since(began) >= Duration::from_secs(1));
    let freed = two.freed();
    wish(&*two, release("x", 2, next)).await;
    assert!(freed.has_changed().unwrap());
}
