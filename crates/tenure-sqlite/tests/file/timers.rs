//! Timers in a file: what outlives what, what a look costs, and who stops whom.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{JobId, Origin, Timestamp, limits};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{
    Change, Clock, Fault, Fired, Jobs, ManualClock, Order, Pruned, Selection, SlotsAsk, Store, TimerAct,
    TimerOutcome, TimerSet, Timers, TimersAsk, Views,
};

use crate::given::leases::other;
use crate::given::timers::{assert_timers_agree, name, records, timer};
use crate::given::{file, host, runtime};

const MINUTE: Duration = Duration::from_secs(60);

fn open(file: &std::path::Path, clock: &ManualClock) -> Arc<SqliteStore> {
    SqliteStore::open(file, Options::default(), Arc::new(clock.clone())).unwrap()
}

async fn fire(store: &SqliteStore) -> Fired {
    store.fire(limits::FIRE_TIMERS).await.unwrap()
}

/// T054
#[test]
fn a_restart_forgets_no_timer_and_no_slot() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    runtime().block_on(async {
        let store = open(&file, &clock);
        store.set_timers(vec![timer("a", "0 * * * * *")], None).await.unwrap();
        clock.advance(MINUTE);
        assert_eq!(fire(&store).await.jobs, 1);
        let before = store.timer(&name("a")).await.unwrap();
        store.close().await.unwrap();

        clock.advance(10 * MINUTE);
        let store = open(&file, &clock);
        assert_eq!(store.timer(&name("a")).await.unwrap(), before);
        assert_eq!(
            store.set_timers(vec![timer("a", "0 * * * * *")], Some(host(1))).await.unwrap(),
            [TimerSet::Same]
        );
        fire(&store).await;
        let counted: Option<u64> = records(&*store).await.iter().map(|record| record.count).sum();
        assert_eq!(counted, Some(11));
        assert_timers_agree(&other(&file));
    });
}

#[test]
fn whoever_finds_nothing_ripe_writes_nothing() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        assert_eq!(fire(&store).await, Fired::default());
        store.set_timers(vec![timer("a", "every 1h"), timer("b", "every 1h")], None).await.unwrap();
        let commits = store.commits();
        let other = other(&file);
        // Not even while another program writes has it to wait.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..20 {
            clock.advance(MINUTE);
            assert_eq!((fire(&store).await.timers, store.commits()), (0, commits));
        }
        other.execute_batch("ROLLBACK").unwrap();
        // Nor does a host that starts and finds all as it declares it.
        store.set_timers(vec![timer("a", "every 1h"), timer("b", "every 1h")], Some(host(1))).await.unwrap();
        assert_eq!(store.commits(), commits);
    });
}

#[test]
fn what_ripe_timers_bring_together_is_one_commit() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let timers: Vec<_> = (0..200).map(|number| timer(&format!("timer-{number}"), "every 1h")).collect();
        for some in timers.chunks(limits::SET_TIMERS) {
            store.set_timers(some.to_vec(), None).await.unwrap();
        }
        clock.advance(61 * MINUTE);
        let commits = store.commits();
        assert_eq!(fire(&store).await.jobs, 200);
        assert_eq!(store.commits(), commits + 1);
    });
}

/// However many rows a newer version has written, the ones behind them are found.
#[test]
fn a_page_goes_on_behind_rows_that_cannot_be_read() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        store.set_timers(vec![timer("z", "every 1m")], None).await.unwrap();
        clock.advance(MINUTE);
        fire(&store).await;
        let many = limits::PAGE_EXAMINED;
        let strange = format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {many})
             INSERT INTO timer_slot (last, timer, origin, fate, at) SELECT n, 'a', 0, 99, 0 FROM n;
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {many})
             INSERT INTO timer (name, version, revision, created, changed, agreed, args)
                 SELECT 'a' || n, 1, 0, 0, 0, '{{}}', x'' FROM n;
             INSERT INTO timer_standing (name, runs) SELECT name, 0 FROM timer WHERE name < 'z';"
        );
        other(&file).execute_batch(&strange).unwrap();
        let (mut found, mut behind) = (Vec::new(), None);
        for _ in 0..3 {
            let ask = SlotsAsk { order: Order::OldestFirst, behind, ..SlotsAsk::default() };
            let page = store.slots(ask).await.unwrap();
            found.extend(page.slots);
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        assert_eq!((found.len(), behind), (1, None));
        let first = store.timers(TimersAsk::default()).await.unwrap();
        assert_eq!(first.timers, []);
        let second = store.timers(TimersAsk { behind: first.next, ..TimersAsk::default() }).await.unwrap();
        assert_eq!((second.timers.len(), second.next), (1, None));
    });
}

/// Only a newer version can have written such rows.
#[test]
fn a_timer_that_cannot_be_read_stops_none_of_the_others() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    let all = || vec![timer("newer", "every 1m"), timer("other", "every 1m"), timer("third", "every 1m")];
    runtime().block_on(async {
        store.set_timers(all(), None).await.unwrap();
        let spoil = "UPDATE timer SET agreed = '{\"version\":2,\"moon\":\"full\"}', revision = 7 WHERE name = 'newer'";
        other(&file).execute(spoil, []).unwrap();
        clock.advance(MINUTE);
        let fired = fire(&store).await;
        assert_eq!((fired.timers, fired.jobs), (3, 2));
        assert_eq!(fired.ripe_in, Some(Duration::from_secs(1)), "it is passed by for a while");
        assert_eq!(fire(&store).await, Fired { ripe_in: fired.ripe_in, ..Fired::default() });
        let told: Vec<String> = records(&*store).await.iter().map(|record| record.timer.to_string()).collect();
        assert_eq!(told, ["other", "third"]);

        // Whoever names it is told what to do, and among others it stays as it is.
        for fault in [
            store.timer(&name("newer")).await.unwrap_err(),
            store.change_timer(&name("newer"), TimerAct::Resume).await.unwrap_err(),
            store.set_timers(vec![timer("newer", "every 1m")], None).await.unwrap_err(),
        ] {
            assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("timer newer")), "{fault}");
        }
        let set = store.set_timers(all(), None).await.unwrap();
        assert_eq!(set, [TimerSet::Outdated { by: 7 }, TimerSet::Same, TimerSet::Same]);
        let listed = store.timers(TimersAsk { at_most: 1, ..TimersAsk::default() }).await.unwrap();
        assert_eq!((listed.timers[0].name(), listed.next), (&name("other"), Some(name("other"))));

        // Once it can be read, its slots are decided, none of them lost.
        let mend = "UPDATE timer SET agreed = (SELECT agreed FROM timer WHERE name = 'other') WHERE name = 'newer'";
        other(&file).execute(mend, []).unwrap();
        clock.advance(MINUTE);
        assert_eq!(fire(&store).await.timers, 3);
        let slots = records(&*store).await.into_iter().filter(|record| record.timer == name("newer"));
        assert_eq!(slots.map(|record| record.count.unwrap()).sum::<u64>(), 2);
        assert_timers_agree(&other(&file));
    });
}

#[test]
fn a_job_that_cannot_be_read_stops_its_timer_and_nothing_of_that_stays() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let mut cancelling = timer("a", "every 1m");
        cancelling.policies.overlap = tenure_core::Overlap::CancelPrevious;
        store.set_timers(vec![cancelling, timer("b", "every 1m")], None).await.unwrap();
        clock.advance(MINUTE);
        assert_eq!(fire(&store).await.jobs, 2);
        let spoil = "UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 1";
        other(&file).execute(spoil, []).unwrap();
        let before = store.timer(&name("a")).await.unwrap();
        clock.advance(MINUTE);
        let ripe_in = Some(Duration::from_secs(1));
        let fired = fire(&store).await;
        assert_eq!((fired.timers, fired.jobs, fired.records.len(), fired.ripe_in), (2, 1, 1, ripe_in));
        assert_eq!(store.timer(&name("a")).await.unwrap(), before);
        assert_eq!(records(&*store).await.len(), 3);
    });
}

#[test]
fn a_timer_that_cannot_be_read_can_be_removed() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        store.set_timers(vec![timer("newer", "every 1m")], None).await.unwrap();
        other(&file).execute("UPDATE timer SET agreed = '[]'", []).unwrap();
        let remove = || store.change_timer(&name("newer"), TimerAct::Remove);
        assert_eq!(remove().await, Ok(TimerOutcome::Done));
        assert_eq!(remove().await, Ok(TimerOutcome::NotFound));
        assert_timers_agree(&other(&file));
    });
}

#[test]
fn a_record_that_cannot_be_read_is_left_out() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        store.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
        for _ in 0..3 {
            clock.advance(MINUTE);
            fire(&store).await;
        }
        let middle = records(&*store).await[1].last.as_micros();
        other(&file).execute("UPDATE timer_slot SET fate = 9 WHERE last = ?1", [middle]).unwrap();
        assert_eq!(records(&*store).await.len(), 2);
    });
}

/// What a record does not tell because it follows from the slot.
#[test]
fn a_record_names_its_job_wherever_it_comes_from() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let mut starting = timer("a", "every 1m");
        starting.policies.run_on_start = true;
        store.set_timers(vec![starting], Some(host(1))).await.unwrap();
        let id = JobId::new(Timestamp::EPOCH, 7);
        clock.advance(Duration::from_secs(1));
        store.change_timer(&name("a"), TimerAct::Trigger { id, args: None, owner: None }).await.unwrap();
        clock.advance(MINUTE);
        fire(&store).await;
        let act = TimerAct::Backfill { from: clock.now().before(5 * MINUTE), to: clock.now(), again: false };
        store.change_timer(&name("a"), act).await.unwrap();
        let records = records(&*store).await;
        for record in &records {
            assert!(store.job(record.job().unwrap()).await.unwrap().is_some(), "{record:?}");
        }
        let mut origins: Vec<Origin> = records.iter().map(|record| record.origin).collect();
        origins.sort();
        origins.dedup();
        assert_eq!(origins, [Origin::Schedule, Origin::Start, Origin::Trigger, Origin::Backfill]);
    });
}

/// Programs from before version 8 wrote no count for one slot, and their jobs had other IDs.
#[test]
fn a_record_from_before_ids_had_a_version_of_their_own_names_the_job_of_then() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        store.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
        clock.advance(MINUTE);
        fire(&store).await;
        let slot = records(&*store).await[0].last;
        let job = async || records(&*store).await[0].job().unwrap();
        assert_eq!(job().await, JobId::of_slot(&name("a"), slot, Origin::Schedule));
        let written = other(&file).execute("UPDATE timer_slot SET count = NULL WHERE job IS NULL", []);
        assert_eq!(written, Ok(1));
        assert_eq!(job().await, JobId::of_slot_before_version_8(&name("a"), slot, Origin::Schedule));
    });
}

#[test]
fn pruning_records_is_bounded_and_takes_the_oldest() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let timers: Vec<_> = (0..1_001).map(|number| timer(&format!("t{number:04}"), "every 1m")).collect();
        for some in timers.chunks(limits::SET_TIMERS) {
            store.set_timers(some.to_vec(), None).await.unwrap();
        }
        clock.advance(MINUTE);
        while fire(&store).await.timers > 0 {}
        let last = records(&*store).await.pop().unwrap();
        let (now, more) = (clock.now(), |removed, more| Pruned { removed, more });
        assert_eq!(store.prune_slots(now).await.unwrap(), more(0, false), "a slot of now is not before now");
        let prune = async || store.prune_slots(now.after(Duration::from_micros(1))).await.unwrap();
        assert_eq!(prune().await, more(limits::PRUNE_SLOTS, true));
        assert_eq!(records(&*store).await, [last]);
        assert_eq!((prune().await, prune().await), (more(1, false), more(0, false)));
    });
}

/// A job that was removed by hand is no obstacle: its timer goes on.
#[test]
fn jobs_that_are_gone_are_not_waited_for() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let mut one_at_a_time = timer("a", "every 1m");
        one_at_a_time.policies.overlap = tenure_core::Overlap::Skip;
        store.set_timers(vec![one_at_a_time], None).await.unwrap();
        for _ in 0..3 {
            clock.advance(MINUTE);
            assert_eq!(fire(&store).await.jobs, 1);
            let open = store.timer(&name("a")).await.unwrap().unwrap().open;
            store.change(Change::Delete, Selection::Ids(open)).await.unwrap();
        }
    });
}
