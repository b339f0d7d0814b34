//! Timers in a database: who fires them, what outlives what, and who stops whom.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands, and a server that is killed dies by real time"
)]

use crate::given;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{Fate, JobId, Origin, Overlap, SlotRecord, limits};
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{
    Fault, Fired, Hints, ManualClock, Store, TimerAct, TimerOutcome, TimerSet, Timers, TimersAsk, Views,
};
use tokio_postgres::Client;

use given::timers::{assert_timers_agree, name, records, timer};
use given::{host, open, schema, server, user};

const MINUTE: Duration = Duration::from_secs(60);
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Two programs on one database, and a look behind them.
async fn given() -> ([Arc<PostgresStore>; 2], Client, ManualClock) {
    let (schema, clock) = (schema(), ManualClock::new());
    let stores = [open(&schema, &clock).await, open(&schema, &clock).await];
    let client = user(&server().url()).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    (stores, client, clock)
}

async fn fire(store: &PostgresStore) -> Fired {
    store.fire(limits::FIRE_TIMERS).await.unwrap()
}

/// T062: who comes first fires, and who comes second finds it done.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_tasks_on_each_of_two_stores_fire_each_slot_once() {
    const ROUNDS: usize = 20;
    let (stores, client, clock) = given().await;
    let declare = || NAMES.iter().map(|text| timer(text, "every 1s")).collect::<Vec<_>>();
    assert_eq!(stores[0].set_timers(declare(), Some(host(1))).await.unwrap(), [TimerSet::New; 5]);
    assert_eq!(stores[1].set_timers(declare(), Some(host(2))).await.unwrap(), [TimerSet::Same; 5]);
    for round in 0..ROUNDS {
        clock.advance(Duration::from_secs(1));
        let tasks: Vec<_> = (0..16)
            .map(|task| {
                let store = Arc::clone(&stores[task % 2]);
                tokio::spawn(async move { store.fire(1 + task % 4).await.unwrap().jobs })
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
    assert_timers_agree(&client).await;
}

/// Who fires leaves alone what another host decides at this moment, and does not wait for it.
#[tokio::test]
async fn a_timer_that_another_host_decides_keeps_nobody_waiting() {
    let ([store, _], mut client, clock) = given().await;
    store.set_timers(vec![timer("a", "every 1m"), timer("b", "every 1m")], None).await.unwrap();
    clock.advance(MINUTE);
    let other = client.transaction().await.unwrap();
    other.execute("SELECT FROM timer_standing WHERE name = 'a' FOR UPDATE", &[]).await.unwrap();
    assert_eq!(fire(&store).await.jobs, 1);
    other.rollback().await.unwrap();
    assert_eq!(fire(&store).await.jobs, 1);
    assert_timers_agree(&client).await;
}

#[tokio::test]
async fn what_one_program_changes_of_a_timer_the_other_fires_by() {
    let ([one, two], _, clock) = given().await;
    one.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
    clock.advance(MINUTE);
    assert_eq!((fire(&two).await.jobs, fire(&one).await.jobs), (1, 0));
    let pause = TimerAct::Pause { reason: "moving \0 by hand".to_owned() };
    one.change_timer(&name("a"), pause).await.unwrap();
    assert_eq!(fire(&two).await.ripe_in, None);
    two.change_timer(&name("a"), TimerAct::Resume).await.unwrap();
    one.set_timers(vec![timer("a", "every 1s")], None).await.unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(fire(&two).await.jobs, 1);
}

/// A host that sleeps until the next slot has to hear that there is an earlier one.
#[tokio::test]
async fn a_timer_that_one_program_sets_is_heard_of_in_the_other() {
    let ([one, two], ..) = given().await;
    let mut due = two.due();
    due.mark_unchanged();
    one.set_timers(vec![timer("a", "every 1s")], None).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), due.changed()).await.unwrap().unwrap();
}

/// T061
#[tokio::test]
async fn a_restart_forgets_no_timer_and_no_slot() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    store.set_timers(vec![timer("a", "0 * * * * *")], None).await.unwrap();
    clock.advance(MINUTE);
    assert_eq!(fire(&store).await.jobs, 1);
    let before = store.timer(&name("a")).await.unwrap();
    store.close().await.unwrap();
    clock.advance(10 * MINUTE);
    let store = open(&schema, &clock).await;
    assert_eq!(store.timer(&name("a")).await.unwrap(), before);
    let again = store.set_timers(vec![timer("a", "0 * * * * *")], Some(host(1))).await.unwrap();
    assert_eq!(again, [TimerSet::Same]);
    fire(&store).await;
    let counted: Option<u64> = records(&*store).await.iter().map(|record| record.count).sum();
    assert_eq!(counted, Some(11));
}

/// Only a newer version can have written such rows.
#[tokio::test]
async fn a_timer_that_cannot_be_read_stops_none_of_the_others() {
    let ([store, _], client, clock) = given().await;
    let all = || vec![timer("newer", "every 1m"), timer("other", "every 1m"), timer("third", "every 1m")];
    store.set_timers(all(), None).await.unwrap();
    let spoil =
        "UPDATE timer SET agreed = '{\"version\":2,\"moon\":\"full\"}', revision = 7 WHERE name = 'newer'";
    client.execute(spoil, &[]).await.unwrap();
    clock.advance(MINUTE);
    let fired = fire(&store).await;
    assert_eq!((fired.timers, fired.jobs), (3, 2));
    assert_eq!(fired.ripe_in, Some(Duration::from_secs(1)), "it is passed by for a while");
    assert_eq!(fire(&store).await, Fired { ripe_in: fired.ripe_in, ..Fired::default() });

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
    let mend =
        "UPDATE timer SET agreed = (SELECT agreed FROM timer WHERE name = 'other') WHERE name = 'newer'";
    client.execute(mend, &[]).await.unwrap();
    clock.advance(MINUTE);
    assert_eq!(fire(&store).await.timers, 3);
    let slots = records(&*store).await.into_iter().filter(|record| record.timer == name("newer"));
    assert_eq!(slots.map(|record| record.count.unwrap()).sum::<u64>(), 2);
    assert_timers_agree(&client).await;
}

#[tokio::test]
async fn a_job_that_cannot_be_read_stops_its_timer_and_nothing_of_that_stays() {
    let ([store, _], client, clock) = given().await;
    let mut cancelling = timer("a", "every 1m");
    cancelling.policies.overlap = Overlap::CancelPrevious;
    store.set_timers(vec![cancelling, timer("b", "every 1m")], None).await.unwrap();
    clock.advance(MINUTE);
    assert_eq!(fire(&store).await.jobs, 2);
    let spoil = "UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = (SELECT min(seq) FROM job)";
    client.execute(spoil, &[]).await.unwrap();
    let before = store.timer(&name("a")).await.unwrap();
    clock.advance(MINUTE);
    let ripe_in = Some(Duration::from_secs(1));
    let fired = fire(&store).await;
    assert_eq!((fired.timers, fired.jobs, fired.records.len(), fired.ripe_in), (2, 1, 1, ripe_in));
    assert_eq!(store.timer(&name("a")).await.unwrap(), before);
    assert_eq!(records(&*store).await.len(), 3);
}

#[tokio::test]
async fn a_timer_that_cannot_be_read_can_be_removed() {
    let ([store, _], client, _) = given().await;
    store.set_timers(vec![timer("newer", "every 1m")], None).await.unwrap();
    client.execute("UPDATE timer SET agreed = '[]'", &[]).await.unwrap();
    let remove = || store.change_timer(&name("newer"), TimerAct::Remove);
    assert_eq!(remove().await, Ok(TimerOutcome::Done));
    assert_eq!(remove().await, Ok(TimerOutcome::NotFound));
    assert_timers_agree(&client).await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_left_out() {
    let ([store, _], client, clock) = given().await;
    store.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
    for _ in 0..3 {
        clock.advance(MINUTE);
        fire(&store).await;
    }
    let middle = records(&*store).await[1].last.as_micros();
    client.execute("UPDATE timer_slot SET fate = 9 WHERE last = $1", &[&middle]).await.unwrap();
    assert_eq!(records(&*store).await.len(), 2);
}

/// Programs from before version 8 wrote no count for one slot, and their jobs had other IDs.
#[tokio::test]
async fn a_record_from_before_ids_had_a_version_of_their_own_names_the_job_of_then() {
    let ([store, _], client, clock) = given().await;
    store.set_timers(vec![timer("a", "every 1m")], None).await.unwrap();
    clock.advance(MINUTE);
    fire(&store).await;
    let slot = records(&*store).await[0].last;
    let job = async || records(&*store).await[0].job().unwrap();
    assert_eq!(job().await, JobId::of_slot(&name("a"), slot, Origin::Schedule));
    let unsaid = "UPDATE timer_slot SET count = NULL WHERE job IS NULL";
    assert_eq!(client.execute(unsaid, &[]).await.unwrap(), 1);
    assert_eq!(job().await, JobId::of_slot_before_version_8(&name("a"), slot, Origin::Schedule));
}

/// Fires until it is told to stop, whatever becomes of the server.
async fn fire_on(store: Arc<PostgresStore>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        if let Err(fault) = store.fire(limits::FIRE_TIMERS).await {
            assert!(fault.is_passing(), "{fault}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// T063: a server that is killed while two programs fire loses no slot, and none has two jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_while_timers_fire_loses_and_doubles_no_slot() {
    let server = Server::start().unwrap();
    let url = server.url();
    let open = async || PostgresStore::open(&url, Options::default(), None).await.unwrap();
    let stores = [open().await, open().await];
    let timers = (0..10).map(|number| timer(&format!("timer-{number}"), "every 1s")).collect();
    stores[0].set_timers(timers, None).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let firing = stores.each_ref().map(|store| tokio::spawn(fire_on(Arc::clone(store), Arc::clone(&stop))));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        server.crash().unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.start_again().unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    stop.store(true, Ordering::Relaxed);
    for task in firing {
        task.await.unwrap();
    }
    let client = user(&server.url()).await;
    client.batch_execute("SET search_path = tenure").await.unwrap();
    assert_timers_agree(&client).await;
    let told = records(&*stores[0]).await;
    for number in 0..10 {
        let timer = name(&format!("timer-{number}"));
        let mine: Vec<_> = told.iter().filter(|record| record.timer == timer).collect();
        let gaps = mine.windows(2).map(|pair| pair[1].first.since(pair[0].last));
        assert!(gaps.into_iter().all(|gap| gap == Duration::from_secs(1)), "{timer} has a gap");
        assert!(mine.len() > 2, "{timer} has {} records", mine.len());
    }
    let jobs = told.iter().filter(|record| matches!(record.fate, Fate::Ran { .. })).count();
    let counts = stores[1].counts().await.unwrap();
    assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), jobs as u64);
}
