//! Sixteen callers at once who fire the same timers. Whoever comes first, each slot has one job.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::{Fate, Overlap, Policies, SlotRecord};

use super::given::{Given, seconds};
use super::races::{CALLERS, all_at_once};
use super::timers::timer;
use super::{Test, race};
use tenure_store::{TimerAct, TimerOutcome, TimerSet};

/// How often they fire together.
const ROUNDS: usize = 30;

pub(super) fn tests() -> Vec<Test> {
    vec![
        race(of_many_who_fire_each_slot_gets_one_job),
        race(of_many_who_set_a_timer_one_finds_it_new),
        race(of_many_triggers_one_is_granted_while_none_may_overlap),
        race(what_is_changed_while_it_fires_neither_loses_nor_doubles_a_slot),
    ]
}

/// The records of a timer follow one another without a gap, and each job has one.
fn assert_whole(records: &[SlotRecord], jobs: usize) {
    let brought: Vec<_> = records.iter().filter_map(SlotRecord::job).collect();
    assert_eq!(brought.iter().collect::<BTreeSet<_>>().len(), brought.len(), "a job for two slots");
    assert_eq!(brought.len(), jobs, "a job without its record");
    for pair in records.windows(2) {
        let gap = pair[1].first.since(pair[0].last);
        assert_eq!(gap, seconds(1), "between {:?} and {:?}", pair[0], pair[1]);
    }
}

async fn of_many_who_fire_each_slot_gets_one_job(given: Given) {
    given.set(timer("a", "every 1s", Policies { overlap: Overlap::QueueAll, ..Policies::default() })).await;
    let given = Arc::new(given);
    for _ in 0..ROUNDS {
        given.pass(seconds(1));
        let fired = all_at_once(CALLERS, |_| {
            let given = Arc::clone(&given);
            async move { given.fire().await.jobs }
        });
        assert_eq!(fired.await.into_iter().sum::<usize>(), 1);
    }
    assert_whole(&given.records().await, ROUNDS);
    assert_eq!(given.all().await.len(), ROUNDS);
}

async fn of_many_who_set_a_timer_one_finds_it_new(given: Given) {
    let given = Arc::new(given);
    let set = all_at_once(CALLERS, |_| {
        let given = Arc::clone(&given);
        async move { given.set(timer("a", "every 1h", Policies::default())).await }
    });
    let set = set.await;
    assert_eq!(set.iter().filter(|set| **set == TimerSet::New).count(), 1);
    assert_eq!(set.iter().filter(|set| **set == TimerSet::Same).count(), CALLERS - 1);
}

async fn of_many_triggers_one_is_granted_while_none_may_overlap(given: Given) {
    given.set(timer("a", "every 1h", Policies::default())).await;
    let given = Arc::new(given);
    let outcomes = all_at_once(CALLERS, |_| {
        let given = Arc::clone(&given);
        async move {
            let act = TimerAct::Trigger { id: given.id(), args: None, owner: None };
            given.store.change_timer(&super::timers::name("a"), act).await.unwrap()
        }
    });
    let granted = outcomes.await.into_iter().filter(|outcome| matches!(outcome, TimerOutcome::Triggered(_)));
    assert_eq!((granted.count(), given.all().await.len()), (1, 1));
}

async fn what_is_changed_while_it_fires_neither_loses_nor_doubles_a_slot(given: Given) {
    let policies = Policies { overlap: Overlap::QueueAll, ..Policies::default() };
    given.set(timer("a", "every 1s", policies)).await;
    let given = Arc::new(given);
    for _ in 0..ROUNDS {
        given.pass(seconds(1));
        let each = all_at_once(CALLERS, |caller| {
            let given = Arc::clone(&given);
            // Two spellings of one schedule: a change each time, and the same slots.
            let schedule = if caller % 4 < 2 { "every 1s" } else { "* * * * * *" };
            async move {
                if caller % 2 == 0 {
                    given.set(timer("a", schedule, policies)).await;
                } else {
                    given.fire().await;
                }
            }
        });
        each.await;
    }
    given.fire().await;
    let records = given.records().await;
    assert!(records.iter().all(|record| matches!(record.fate, Fate::Ran { .. })));
    assert_whole(&records, given.all().await.len());
    assert_eq!(records.len(), ROUNDS);
}
