//! Two programs contend for leases in one file: two stores that share nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{Fence, LeaseAct, LeaseOutcome};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Hints, Jobs, LeaseWish, Leases, LedgerAsk, Store};

use crate::given::leases::{acquire, granted, name, release, renew, who, wish};
use crate::given::{file, new_jobs, open, open_live, runtime};

const NAMES: [&str; 3] = ["one", "two", "three"];

/// What all tasks watch for themselves.
#[derive(Default)]
struct Watch {
    /// By name: who believes to hold it; 0 is nobody.
    holders: [AtomicU64; 3],
    /// By name: the last fence that was granted.
    fences: [AtomicU64; 3],
}

/// T017: many tasks take, renew and give back a few names at once, and nobody ever holds one with another.
#[test]
fn sixteen_tasks_on_each_of_two_stores_hold_each_name_one_at_a_time() {
    const TASKS: u64 = 32;
    const ROUNDS: u64 = 5;
    let (_directory, file) = file();
    let stores = [0, 1].map(|_| open_live(&file, Options::default()));
    let (runtime, watch) = (runtime(), Arc::new(Watch::default()));
    let tasks: Vec<_> = (1..=TASKS)
        .map(|task| {
            let (store, watch) = (stores[usize::from(task % 2 == 0)].clone(), watch.clone());
            runtime.spawn(async move {
                for round in 0..ROUNDS {
                    let which = usize::try_from((task + round) % 3).unwrap();
                    while !contend(&store, &watch, task, which).await {}
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        let ask =
            LedgerAsk { what: vec![tenure_core::What::Acquired], at_most: 1000, ..LedgerAsk::default() };
        let began = stores[0].ledger(ask).await.unwrap().entries;
        assert_eq!(began.len() as u64, TASKS * ROUNDS);
        let told: BTreeSet<_> =
            began.iter().map(|entry| (entry.note.name.clone(), entry.note.fence)).collect();
        assert_eq!(told.len(), began.len(), "no fence is granted twice");
    });
}

/// Takes a name, renews it and gives it back; answers whether it could be had.
async fn contend(store: &SqliteStore, watch: &Watch, task: u64, which: usize) -> bool {
    let text = NAMES[which];
    let LeaseOutcome::Granted { fence, .. } = wish(store, acquire(text, task)).await else { return false };
    assert_eq!(watch.holders[which].swap(task, Ordering::SeqCst), 0, "{text} has two holders");
    let before = watch.fences[which].swap(fence.number(), Ordering::SeqCst);
    assert!(before < fence.number(), "fence {fence} after {before}");
    let renewed = wish(store, renew(text, task, fence)).await;
    assert!(matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
    assert_eq!(watch.holders[which].swap(0, Ordering::SeqCst), task);
    assert_eq!(wish(store, release(text, task, fence)).await, LeaseOutcome::Released);
    true
}

#[test]
fn what_one_store_granted_the_other_refuses_and_a_renewal_there_counts() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    runtime().block_on(async {
        let fence = granted(wish(&*one, acquire("month-end", 1)).await);
        assert!(matches!(wish(&*two, acquire("month-end", 2)).await, LeaseOutcome::Refused(_)));
        assert!(matches!(wish(&*two, renew("month-end", 1, fence)).await, LeaseOutcome::Renewed { .. }));
        assert_eq!(wish(&*two, release("month-end", 1, fence)).await, LeaseOutcome::Released);
        let next = granted(wish(&*two, acquire("month-end", 2)).await);
        assert!(next > fence);
        let refused = wish(&*one, renew("month-end", 1, fence)).await;
        let lost = tenure_core::LeaseRefusal::Lost { fence: next };
        assert_eq!(refused, LeaseOutcome::Refused(lost));
    });
}

/// Whoever waits answers this hint by asking for the lease, which may be a write. If every write of the other
/// program were such a hint, two programs would keep each other busy for ever.
#[test]
fn only_a_lease_that_became_free_hints_at_it_to_the_other_program() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    runtime().block_on(async {
        let fences: Vec<Fence> = one
            .lease(vec![acquire("first", 1), acquire("second", 1)])
            .await
            .unwrap()
            .into_iter()
            .map(granted)
            .collect();
        let (freed, mine) = (two.freed(), one.freed());
        wish(&*one, renew("first", 1, fences[0])).await;
        two.tend().await.unwrap();
        assert!(!freed.has_changed().unwrap() && !mine.has_changed().unwrap(), "nothing became free");

        let both = vec![release("first", 1, fences[0]), release("second", 1, fences[1])];
        one.lease(both).await.unwrap();
        assert!(mine.has_changed().unwrap(), "its own program hears at once");
        wish(&*two, acquire("third", 2)).await;
        assert!(freed.has_changed().unwrap(), "two became free");

        let (freed, mine) = (two.freed(), one.freed());
        one.enqueue(new_jobs(1, 1)).await.unwrap();
        two.tend().await.unwrap();
        one.enqueue(new_jobs(2, 1)).await.unwrap();
        assert!(!freed.has_changed().unwrap() && !mine.has_changed().unwrap(), "that has been told");
    });
}

#[test]
fn to_break_a_lease_is_heard_by_its_holder_in_the_other_program() {
    let (_directory, file) = file();
    let (one, two) = (open(&file), open(&file));
    runtime().block_on(async {
        granted(wish(&*two, acquire("month-end", 2)).await);
        let asked = two.asked();
        let act =
            LeaseAct::Break { within: Some(Duration::from_secs(5)), by: who(1), reason: "stuck".into() };
        wish(&*one, LeaseWish { name: name("month-end"), act }).await;
        two.tend().await.unwrap();
        assert!(asked.has_changed().unwrap());
    });
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the watch looks at the file by real time; this bounds a failure"
)]
fn a_store_hears_that_another_one_gave_a_lease_back() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let (one, two) = (open(&file), open(&file));
        let fence = granted(wish(&*one, acquire("month-end", 1)).await);
        let mut freed = two.freed();
        wish(&*one, release("month-end", 1, fence)).await;
        tokio::time::timeout(Duration::from_secs(60), freed.changed()).await.unwrap().unwrap();
        granted(wish(&*two, acquire("month-end", 2)).await);
        two.close().await.unwrap();
    });
}
