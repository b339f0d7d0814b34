//! Two programs fire the timers of one file: two stores that share nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{Fate, SlotRecord, limits};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Hints, Jobs, ManualClock, Store, TimerAct, TimerSet, Timers, Views};

use crate::given::agree::assert_agrees;
use crate::given::leases::other;
use crate::given::timers::{assert_timers_agree, name, records, timer};
use crate::given::{file, host, runtime};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn two(file: &std::path::Path, clock: &ManualClock) -> [Arc<SqliteStore>; 2] {
    [0, 1].map(|_| SqliteStore::open(file, Options::default(), Arc::new(clock.clone())).unwrap())
}

/// T052, T053: who comes first fires, and who comes second finds it done.
#[test]
fn eight_tasks_on_each_of_two_stores_fire_each_slot_once() {
    const ROUNDS: usize = 30;
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (stores, runtime) = (two(&file, &clock), runtime());
    let declare = || NAMES.iter().map(|text| timer(text, "every 1s")).collect::<Vec<_>>();
    runtime.block_on(async {
        assert_eq!(stores[0].set_timers(declare(), Some(host(1))).await.unwrap(), [TimerSet::New; 5]);
        assert_eq!(stores[1].set_timers(declare(), Some(host(2))).await.unwrap(), [TimerSet::Same; 5]);
        for round in 0..ROUNDS {
            clock.advance(Duration::from_secs(1));
            let tasks: Vec<_> = (0..16)
                .map(|task| {
                    let store = stores[task % 2].clone();
                    runtime.spawn(async move { store.fire(1 + task % 4).await.unwrap().jobs })
                })
                .collect();
            let mut jobs = 0;
            for task in tasks {
                jobs += task.await.unwrap();
            }
            assert_eq!(jobs, NAMES.len(), "in round {round}");
        }
        let told = records(&*stores[0]).await;
        for text in NAMES {
            let mine: Vec<&SlotRecord> = told.iter().filter(|record| record.timer == name(text)).collect();
            assert_eq!(mine.len(), ROUNDS);
            let steps = mine.windows(2).map(|pair| pair[1].last.since(pair[0].last));
            assert!(steps.into_iter().all(|step| step == Duration::from_secs(1)), "{text}");
        }
        assert!(told.iter().all(|record| matches!(record.fate, Fate::Ran { .. })));
        let jobs: BTreeSet<_> = told.iter().filter_map(SlotRecord::job).collect();
        let counts = stores[1].counts().await.unwrap();
        assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), jobs.len() as u64);
        assert_eq!(jobs.len(), told.len());
        for store in &stores {
            store.close().await.unwrap();
        }
    });
    let conn = Connection::open(&file).unwrap();
    assert_agrees(&conn);
    assert_timers_agree(&conn);
}

#[test]
fn what_one_store_changes_of_a_timer_the_other_fires_by() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let [one, two] = two(&file, &clock);
    runtime().block_on(async {
        one.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
        clock.advance(Duration::from_secs(60));
        assert_eq!(two.fire(limits::FIRE_TIMERS).await.unwrap().jobs, 1);
        assert_eq!(one.fire(limits::FIRE_TIMERS).await.unwrap().jobs, 0);
        let pause = TimerAct::Pause { reason: "moving".to_owned() };
        one.change_timer(&name("a"), pause).await.unwrap();
        assert_eq!(two.fire(limits::FIRE_TIMERS).await.unwrap().ripe_in, None);
        two.change_timer(&name("a"), TimerAct::Resume).await.unwrap();
        one.set_timers(vec![timer("a", "every 1s")], None).await.unwrap();
        clock.advance(Duration::from_secs(1));
        assert_eq!(two.fire(limits::FIRE_TIMERS).await.unwrap().jobs, 1);
    });
}

/// A host that sleeps until the next slot has to hear that there is an earlier one.
#[test]
fn a_timer_that_one_store_sets_is_heard_of_in_the_other_program() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let [one, two] = two(&file, &clock);
    runtime().block_on(async {
        let due = two.due();
        one.set_timers(vec![timer("a", "every 1s")], None).await.unwrap();
        two.tend().await.unwrap();
        assert!(due.has_changed().unwrap());
    });
}

/// While a fleet is updated, its older hosts meet timers that only the newer ones can read.
#[test]
fn a_host_that_cannot_read_a_timer_keeps_no_other_from_firing_it_in_time() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let [older, newer] = two(&file, &clock);
    let other = other(&file);
    let set = |agreed: &str| {
        other.execute("UPDATE timer SET agreed = ?1 WHERE name = 'a'", [agreed]).unwrap();
    };
    runtime().block_on(async {
        newer.set_timers(vec![timer("a", "every 1m"), timer("b", "every 1h")], None).await.unwrap();
        let sql = "SELECT agreed FROM timer WHERE name = 'a'";
        let agreed: String = other.query_row(sql, [], |row| row.get(0)).unwrap();
        for minute in 1..=5 {
            clock.advance(Duration::from_secs(60));
            // What the one cannot read and the other can is the same row: here it changes between them.
            set("{\"version\":2,\"moon\":\"full\"}");
            let mut waits = Vec::new();
            for _ in 0..minute {
                let fired = older.fire(limits::FIRE_TIMERS).await.unwrap();
                assert_eq!((fired.timers, fired.jobs), (1, 0));
                let wait = fired.ripe_in.unwrap();
                waits.push(wait.as_secs());
                clock.advance(wait);
            }
            assert_eq!(waits, [1, 2, 4, 8, 16][..minute], "it looks ever more seldom");
            set(&agreed);
            assert_eq!(newer.fire(limits::FIRE_TIMERS).await.unwrap().jobs, 1, "in minute {minute}");
            clock.advance(Duration::from_secs(60 - waits.iter().sum::<u64>()));
            newer.fire(limits::FIRE_TIMERS).await.unwrap();
        }
    });
}
