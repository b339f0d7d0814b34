//! Waiting for a lease: in line, woken, cancelled, over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Leased, leased, settle_down};
use tenure::{Chance, Error, Faults, FaultyStore, Held, LeaseRefusal, Tenure};
use tokio::task::JoinHandle;

const TTL: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);

type Waiting = JoinHandle<Result<Held, Error>>;

fn wait(tenure: &Tenure, name: &'static str) -> Waiting {
    let tenure = tenure.clone();
    tokio::spawn(async move { tenure.leases().hold(name).ttl(TTL).await })
}

async fn waiting(rig: &Leased, name: &str) -> u32 {
    rig.another().leases().info(name).await.unwrap().map_or(0, |info| info.waiting)
}

#[tokio::test]
async fn who_waits_has_it_as_soon_as_it_is_given_back() {
    let rig = leased();
    let held = rig.another().leases().hold("x").ttl(TTL).await.unwrap();
    let next = wait(&rig.tenure, "x");
    rig.pass(TTL * 2).await;
    assert!(!next.is_finished());
    held.release().await.unwrap();
    // No time passes: the store calls it out.
    settle_down().await;
    assert!(next.is_finished());
    assert!(next.await.unwrap().unwrap().fence().number() == 2);
}

#[tokio::test]
async fn who_waits_has_it_soon_after_its_holder_has_died() {
    let rig = leased();
    let dies = FaultyStore::new(Arc::clone(&rig.store), Faults::none(1));
    let dies = Arc::new(dies);
    let dead = Tenure::on(Arc::clone(&dies) as _, Chance::seeded(5)).leases_on_runtime();
    let _held = dead.leases().hold("x").ttl(TTL).await.unwrap();
    let next = wait(&rig.tenure, "x");
    rig.pass(Duration::from_secs(4)).await;
    dies.down(true);
    rig.pass(TTL).await;
    assert!(!next.is_finished() || rig.another().leases().last("x", 1).await.unwrap()[0].fence.number() == 2);
    rig.pass(SECOND).await;
    assert!(next.is_finished(), "the lease has lapsed, and nobody said so");
}

#[tokio::test]
async fn who_waits_goes_on_waiting_while_the_store_is_away() {
    let rig = leased();
    let held = rig.another().leases().hold("x").ttl(TTL).await.unwrap();
    let next = wait(&rig.tenure, "x");
    rig.pass(SECOND).await;
    rig.network.down(true);
    rig.pass(TTL * 4).await;
    held.release().await.unwrap();
    rig.network.down(false);
    rig.pass(SECOND * 3).await;
    assert!(next.is_finished());
}

/// Over all programs, not only within one.
#[tokio::test]
async fn those_who_wait_have_it_in_the_order_in_which_they_came() {
    let rig = leased();
    let programs = [rig.tenure.clone(), rig.another(), rig.another()];
    let first = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for turn in 0..9 {
        let (tenure, order) = (programs[turn % 3].clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let held = tenure.leases().hold("x").ttl(TTL).await.unwrap();
            held.run(async |_| order.lock().unwrap().push(turn)).await.unwrap();
        }));
        settle_down().await;
    }
    assert_eq!(waiting(&rig, "x").await, 9);
    first.release().await.unwrap();
    rig.pass(SECOND * 20).await;
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..9).collect::<Vec<_>>());
}

/// T037: at once, whatever is under way.
#[tokio::test]
async fn whoever_stops_waiting_gives_up_its_place_at_once() {
    let rig = leased();
    let held = rig.another().leases().hold("x").ttl(TTL).await.unwrap();
    let (first, second) = (wait(&rig.tenure, "x"), wait(&rig.tenure, "x"));
    rig.pass(SECOND).await;
    assert_eq!(waiting(&rig, "x").await, 2);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    settle_down().await;
    assert_eq!(waiting(&rig, "x").await, 1);
    held.release().await.unwrap();
    settle_down().await;
    assert!(second.is_finished(), "nobody is kept back by who has gone");
    second.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(rig.tenure.leases().tally().waiting, 0);
}

/// T037, T039: the grant is on its way when its asker goes.
#[tokio::test]
async fn whoever_stops_waiting_while_it_is_granted_leaves_it_free() {
    for steps in 0..40 {
        let rig = leased();
        rig.network.set(Faults { delay: 1.0, longest_delay: SECOND, ..Faults::none(steps) });
        let asks = wait(&rig.tenure, "x");
        for _ in 0..steps {
            settle_down().await;
            rig.clock.advance(Duration::from_millis(50));
        }
        asks.abort();
        drop(asks.await);
        rig.pass(SECOND * 3).await;
        let other = rig.another();
        assert!(other.leases().try_hold("x", TTL).await.unwrap().is_some(), "after {steps} steps");
        assert_eq!(rig.tenure.leases().tally().held, 0);
    }
}

/// T037: calls that hang count.
#[tokio::test]
async fn the_time_to_wait_is_real_time() {
    let rig = leased();
    let held = rig.another().leases().hold("x").ttl(TTL).await.unwrap();
    let waits = |span| {
        let tenure = rig.tenure.clone();
        tokio::spawn(async move { tenure.leases().hold("x").within(span).await })
    };
    let patient = waits(SECOND * 20);
    rig.pass(SECOND).await;
    rig.network.set(Faults { delay: 1.0, longest_delay: SECOND * 100_000, ..Faults::none(1) });
    let hanging = waits(SECOND * 7);
    rig.pass(Duration::from_millis(6_900)).await;
    assert!(!hanging.is_finished());
    rig.pass(Duration::from_millis(200)).await;
    assert!(matches!(hanging.await.unwrap(), Err(Error::Fault(_))), "it never heard that somebody has it");
    rig.pass(SECOND * 13).await;
    assert!(patient.await.unwrap().is_err());
    assert!(held.is_held());
}

#[tokio::test]
async fn without_any_time_there_is_one_try() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").within(Duration::ZERO).await.unwrap();
    let over = rig.another().leases().hold("x").within(Duration::ZERO).await.unwrap_err();
    let Error::WaitOver { refusal, .. } = over else { panic!("{over}") };
    assert!(matches!(*refusal, LeaseRefusal::Held { .. }), "{refusal}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn whoever_does_not_wait_does_not_get_ahead_of_those_who_do() {
    let rig = leased();
    let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
    // A program that is slow to hear: its place in line counts all the same.
    let slow = rig.another();
    let next = wait(&slow, "x");
    settle_down().await;
    held.release().await.unwrap();
    let refused = rig.tenure.leases().hold("x").try_now().await.unwrap_err();
    let Error::LeaseRefused { refusal, .. } = refused else { panic!("{refused}") };
    assert!(
        matches!(*refusal, LeaseRefusal::Awaited { ahead: 1, .. } | LeaseRefusal::Held { .. }),
        "{refusal}"
    );
    rig.pass(SECOND).await;
    assert!(next.is_finished());
}

/// However many wait: standby costs next to nothing.
#[tokio::test]
async fn a_thousand_who_wait_make_about_one_request_every_few_seconds() {
    let rig = leased();
    let holder = rig.another();
    let (mut held, mut tasks) = (Vec::new(), Vec::new());
    for number in 0..100 {
        held.push(holder.leases().hold(&format!("lease-{number}")).ttl(TTL).await.unwrap());
        for _ in 0..10 {
            let tenure = rig.tenure.clone();
            tasks.push(tokio::spawn(async move { tenure.leases().hold(&format!("lease-{number}")).await }));
        }
    }
    rig.pass(SECOND * 10).await;
    assert_eq!(rig.tenure.leases().tally().waiting, 1_000);
    let calls = rig.calls();
    for _ in 0..60 {
        rig.pass(SECOND).await;
    }
    let calls = rig.calls() - calls;
    assert!((10..=20).contains(&calls), "{calls} calls in a minute");
    tasks.iter().for_each(JoinHandle::abort);
    rig.pass(SECOND).await;
    assert_eq!(waiting(&rig, "lease-7").await, 0);
}

/// T017: many tasks of two programs take, use and give back a few names.
#[tokio::test]
async fn a_thousand_rounds_of_many_tasks_never_overlap() {
    let rig = leased();
    let names = ["a", "b", "c"];
    let inside: Arc<[Mutex<Option<u64>>]> = names.iter().map(|_| Mutex::new(None)).collect();
    let programs = [rig.tenure.clone(), rig.another()];
    let mut tasks = Vec::new();
    for task in 0..50_usize {
        let (tenure, inside) = (programs[task % 2].clone(), Arc::clone(&inside));
        tasks.push(tokio::spawn(async move {
            for round in 0..20_usize {
                let place = (task + round) % names.len();
                let held = tenure.leases().hold(names[place]).ttl(TTL).await.unwrap();
                let before = inside[place].lock().unwrap().replace(held.fence().number());
                assert_eq!(before, None, "{} is held twice", names[place]);
                tokio::task::yield_now().await;
                assert_eq!(inside[place].lock().unwrap().take(), Some(held.fence().number()));
                held.release().await.unwrap();
            }
        }));
    }
    while !tasks.iter().all(JoinHandle::is_finished) {
        rig.pass(Duration::from_millis(500)).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    let leases = rig.tenure.leases();
    assert_eq!((leases.tally().held, leases.tally().waiting), (0, 0));
    let fences = grants(&rig, &names).await;
    assert_eq!(fences, 1_000, "each round was one grant");
}

async fn grants(rig: &Leased, names: &[&str]) -> u64 {
    let mut sum = 0;
    for name in names {
        sum += rig.tenure.leases().info(name).await.unwrap().unwrap().lease.fence.number();
    }
    sum
}
