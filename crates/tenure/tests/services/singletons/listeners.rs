//! What runs on one host at a time, as long as its host holds the lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::{Clock, Duty, Error, Failed, Faults, Singleton, SingletonOptions, Stopping, Worker};

use crate::common::fleet::{Fleet, fleet};
use crate::common::memory;

const SECOND: Duration = Duration::from_secs(1);
/// A listener's lease.
const LEASE: Duration = Duration::from_secs(60);

/// What all bodies of a test have seen.
#[derive(Default)]
struct Seen {
    begun: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    told: std::sync::Mutex<Vec<Stopping>>,
}

type App = Arc<Seen>;

struct Running(App);

impl Running {
    fn start(app: &App) -> Self {
        app.begun.fetch_add(1, Ordering::SeqCst);
        let running = app.running.fetch_add(1, Ordering::SeqCst) + 1;
        app.most.fetch_max(running, Ordering::SeqCst);
        Self(Arc::clone(app))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Works until it is told to stop.
async fn compact(duty: Duty<App>) -> Result<(), Failed> {
    let _running = Running::start(duty.app());
    let why = duty.stopped().await;
    duty.app().told.lock().unwrap().push(why);
    Ok(())
}

fn compactor(worker: Worker<App>) -> Worker<App> {
    worker.singleton("compactor", compact)
}

async fn holder(fleet: &Fleet) -> Option<String> {
    let (tenure, _) = fleet.handle(99).await;
    let info = tenure.singletons().listener("compactor").await.unwrap();
    info.and_then(|info| info.lease.held).map(|held| held.by.who)
}

/// T030: one of several instances listens; when it stops, the next one does, at once.
#[tokio::test]
async fn a_singleton_runs_on_one_instance_and_goes_to_the_next_when_that_stops() {
    let (fleet, seen) = (fleet(), App::default());
    let first = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let second = fleet.start(2, Arc::clone(&seen), compactor).await;
    fleet.pass(SECOND * 300).await;
    assert_eq!(seen.begun.load(Ordering::SeqCst), 1, "it goes on as long as its host lives");
    assert_eq!(holder(&fleet).await.as_deref(), Some("instance 1"));

    first.stop().await.1.unwrap();
    let waited = fleet.until("the second runs", async || seen.begun.load(Ordering::SeqCst) == 2).await;
    assert!(waited <= SECOND, "{waited:?}");
    assert_eq!(*seen.told.lock().unwrap(), [Stopping::HostStops]);
    second.stop().await.1.unwrap();
    assert_eq!((seen.most.load(Ordering::SeqCst), seen.running.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(holder(&fleet).await, None);
}

/// S-10: when an instance dies, another takes over when its lease is over.
#[tokio::test]
async fn a_singleton_of_a_dead_instance_runs_elsewhere_after_its_lease() {
    let (fleet, seen, other) = (fleet(), App::default(), App::default());
    let first = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let second = fleet.start(2, Arc::clone(&other), compactor).await;
    fleet.pass(SECOND * 10).await;
    first.kill();
    let waited = fleet.until("another runs", async || other.begun.load(Ordering::SeqCst) == 1).await;
    assert!(waited <= LEASE + SECOND * 5, "{waited:?}");
    second.stop().await.1.unwrap();
}

/// T036: who holds it, since when, until when, and how many stand by; nobody when it is over.
#[tokio::test]
async fn standby_is_visible() {
    let (fleet, seen) = (fleet(), App::default());
    let began = fleet.clock.now();
    let first = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let others = [
        fleet.start(2, Arc::clone(&seen), compactor).await,
        fleet.start(3, Arc::clone(&seen), compactor).await,
    ];
    fleet.pass(SECOND * 5).await;
    let (tenure, _) = fleet.handle(9).await;
    let info = tenure.singletons().listener("compactor").await.unwrap().unwrap();
    let held = info.lease.held.clone().unwrap();
    assert_eq!(held.by.who, "instance 1");
    assert_eq!(held.by.meta["alias"], "fleet/compactor.Listener");
    assert!(held.since.since(began) <= SECOND, "{}", held.since);
    assert!(info.lease.until().unwrap() > fleet.clock.now());
    assert_eq!(info.waiting, 2);
    let listed = tenure.singletons().list(None, 10).await.unwrap().leases;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].lease.name.as_str(), "singleton/fleet/listener/compactor");
    for instance in others.into_iter().chain([first]) {
        instance.stop().await.1.unwrap();
    }
    assert!(tenure.singletons().listener("compactor").await.unwrap().is_none());
}

/// S-5, T013: a lost lease stops the body and nothing else; the instance stands by again.
#[tokio::test]
async fn losing_the_lease_stops_the_body_and_the_worker_lives_on() {
    let (fleet, seen) = (fleet(), App::default());
    let instance = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let (operator, _) = fleet.handle(9).await;
    let name = "singleton/fleet/listener/compactor";
    operator.leases().break_it(name, Some(Duration::ZERO), "a test").await.unwrap();
    fleet.until("it was told", async || !seen.told.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.told.lock().unwrap(), [Stopping::Lost]);
    fleet.until("it runs again", async || seen.begun.load(Ordering::SeqCst) == 2).await;
    assert!(!instance.has_ended());
    assert_eq!(seen.most.load(Ordering::SeqCst), 1);
    instance.stop().await.1.unwrap();
}

/// T014: at the deadline the body is told, though no answer ever comes.
#[tokio::test]
async fn a_store_that_is_away_for_too_long_is_a_loss_that_the_body_is_told_of() {
    let (fleet, seen) = (fleet(), App::default());
    let instance = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    instance.way.down(true);
    let waited = fleet.until("it was told", async || !seen.told.lock().unwrap().is_empty()).await;
    assert!(waited < LEASE, "before anybody else can have it: {waited:?}");
    instance.way.down(false);
    fleet.until("it runs again", async || seen.begun.load(Ordering::SeqCst) == 2).await;
    instance.stop().await.1.unwrap();
}

/// T037: who stands by stops at once.
#[tokio::test]
async fn stopping_while_standing_by_takes_no_time() {
    let (fleet, seen) = (fleet(), App::default());
    let first = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let second = fleet.start(2, Arc::clone(&seen), compactor).await;
    fleet.pass(SECOND * 5).await;
    let (took, stopped) = second.stop().await;
    stopped.unwrap();
    assert!(took < SECOND, "{took:?}");
    let (tenure, _) = fleet.handle(9).await;
    fleet.pass(SECOND).await;
    let info = tenure.singletons().listener("compactor").await.unwrap().unwrap();
    assert_eq!(info.waiting, 0, "its place in line is given up");
    first.stop().await.1.unwrap();
}

/// T039: a body that fails or panics gives the lease back; another instance has it at once.
#[tokio::test]
async fn a_body_that_fails_gives_the_lease_to_whoever_stands_by() {
    async fn fails(duty: Duty<App>) -> Result<(), Failed> {
        let _running = Running::start(duty.app());
        if duty.app().begun.load(Ordering::SeqCst) > 1 {
            panic!("the disk is on fire");
        }
        Err(Failed::retry("the disk is full"))
    }
    let (fleet, bad, good) = (fleet(), App::default(), App::default());
    let first = fleet.start(1, Arc::clone(&bad), |worker| worker.singleton("compactor", fails)).await;
    fleet.until("it failed", async || bad.begun.load(Ordering::SeqCst) == 1).await;
    fleet.until("nobody has it", async || holder(&fleet).await.is_none()).await;
    fleet.until("it panicked", async || bad.begun.load(Ordering::SeqCst) == 2).await;
    let second = fleet.start(2, Arc::clone(&good), compactor).await;
    let waited = fleet.until("another runs", async || good.begun.load(Ordering::SeqCst) == 1).await;
    assert!(waited <= SECOND * 3, "{waited:?}");
    assert!(!first.has_ended(), "the process lives");
    fleet.pass(SECOND * 300).await;
    assert_eq!(good.begun.load(Ordering::SeqCst), 1);
    first.stop().await.1.unwrap();
    second.stop().await.1.unwrap();
}

/// T039: a body whose beginning panics is no different.
#[tokio::test]
async fn a_body_that_panics_before_its_first_wait_frees_the_lease() {
    let (fleet, seen) = (fleet(), App::default());
    let worker = |worker: Worker<App>| {
        worker.singleton("compactor", |duty: Duty<App>| {
            let _running = Running::start(duty.app());
            assert!(duty.app().begun.load(Ordering::SeqCst) > 1, "not the first time");
            compact(duty.clone())
        })
    };
    let instance = fleet.start(1, Arc::clone(&seen), worker).await;
    fleet.until("it runs at the second try", async || seen.begun.load(Ordering::SeqCst) == 3).await;
    instance.stop().await.1.unwrap();
}

/// T040: with a store that takes long, still one acquisition, one body, and nothing after the stop.
#[tokio::test]
async fn slow_tries_to_have_the_lease_do_not_overlap_and_nothing_begins_after_the_stop() {
    for seed in 1..=20 {
        let (fleet, seen) = (fleet(), App::default());
        let slow = Faults { delay: 1.0, longest_delay: SECOND * 20, ..Faults::none(seed) };
        let (first, second) = (
            fleet.start(1, Arc::clone(&seen), compactor).await,
            fleet.start(2, Arc::clone(&seen), compactor).await,
        );
        first.way.set(slow);
        second.way.set(slow);
        fleet.pass(SECOND * u32::try_from(seed * 4).unwrap()).await;
        let (_, one) = first.stop().await;
        let (_, two) = second.stop().await;
        one.and(two).unwrap();
        let begun = seen.begun.load(Ordering::SeqCst);
        fleet.pass(SECOND * 120).await;
        assert_eq!(seen.begun.load(Ordering::SeqCst), begun, "seed {seed}: nothing begins after the stop");
        assert_eq!(seen.running.load(Ordering::SeqCst), 0, "seed {seed}");
        assert!(seen.most.load(Ordering::SeqCst) <= 1, "seed {seed}");
        assert_eq!(holder(&fleet).await, None, "seed {seed}: nothing is held for ever");
    }
}

/// T041: a start that hangs while its lease is renewed: bounded, and the lease goes to another.
#[tokio::test]
async fn a_start_that_hangs_is_given_up_and_the_lease_handed_on() {
    async fn hangs(duty: Duty<App>) -> Result<(), Failed> {
        let _running = Running::start(duty.app());
        std::future::pending().await
    }
    async fn is_ready(duty: Duty<App>) -> Result<(), Failed> {
        duty.ready();
        compact(duty).await
    }
    let (fleet, stuck, good) = (fleet(), App::default(), App::default());
    let singleton = || Singleton::function().ready_within(SECOND * 10);
    let first = |worker: Worker<App>| worker.stop_grace(SECOND).singleton_with("reader", singleton(), hangs);
    let first = fleet.start(1, Arc::clone(&stuck), first).await;
    fleet.until("it hangs", async || stuck.begun.load(Ordering::SeqCst) == 1).await;
    let second = |worker: Worker<App>| worker.singleton_with("reader", singleton(), is_ready);
    let second = fleet.start(2, Arc::clone(&good), second).await;
    let waited = fleet.until("another runs", async || good.begun.load(Ordering::SeqCst) == 1).await;
    assert!(waited <= SECOND * 12, "{waited:?}");
    fleet.pass(SECOND * 300).await;
    assert_eq!(good.begun.load(Ordering::SeqCst), 1, "one that said it is ready goes on");
    first.stop().await.1.unwrap();
    second.stop().await.1.unwrap();
}

/// T041: a body that does not react is dropped when its grace is over, and only then is the lease free.
#[tokio::test]
async fn a_deaf_body_is_dropped_after_the_grace_and_the_lease_is_free_then() {
    async fn deaf(duty: Duty<App>) -> Result<(), Failed> {
        let _running = Running::start(duty.app());
        std::future::pending().await
    }
    let (fleet, seen) = (fleet(), App::default());
    let worker = |worker: Worker<App>| worker.stop_grace(SECOND * 3).singleton("compactor", deaf);
    let first = fleet.start(1, Arc::clone(&seen), worker).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let second = fleet.start(2, Arc::clone(&seen), worker).await;
    fleet.pass(SECOND).await;
    let (took, stopped) = first.stop().await;
    stopped.unwrap();
    assert!((SECOND * 3..SECOND * 5).contains(&took), "{took:?}");
    fleet.until("the second runs", async || seen.begun.load(Ordering::SeqCst) == 2).await;
    assert_eq!(seen.most.load(Ordering::SeqCst), 1, "never two at once");
    second.stop().await.1.unwrap();
}

/// T033: without an app id there is no name to share by accident.
#[tokio::test]
async fn a_singleton_without_an_app_id_is_a_start_up_error() {
    let rig = memory();
    let worker = Worker::new(&rig.tenure, App::default()).singleton("compactor", compact);
    let error = worker.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(&error, Error::NoApp { what, .. } if what == "singleton compactor"), "{error}");
    assert!(error.to_string().contains("OpenOptions::new().app"), "{error}");
    let error = rig.tenure.singletons().list(None, 1).await.unwrap_err();
    assert!(matches!(error, Error::NoApp { .. }), "{error}");
}

/// T030: mistakes in what is said about singletons are told before anything begins.
#[tokio::test]
async fn mistakes_are_start_up_errors() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(1).await;
    let told = async |build: fn(Worker<App>) -> Worker<App>| {
        let worker = build(Worker::new(&tenure, Arc::clone(&seen)));
        worker.run(std::future::pending::<()>()).await.unwrap_err().to_string()
    };
    let twice = told(|worker| compactor(compactor(worker))).await;
    assert!(twice.contains("compactor") && twice.contains("twice"), "{twice}");
    let host = told(|worker| worker.singleton_with("x", Singleton::host("y"), compact)).await;
    assert!(host.contains("listener with a host scope"), "{host}");
    let setting =
        told(|worker| worker.singleton_with("x", Singleton::function().scope("%tenure_no_such%"), compact))
            .await;
    assert!(setting.contains("tenure_no_such"), "{setting}");
    let range = told(|worker| {
        let lock_period = Duration::from_secs(14);
        compactor(worker).singleton_options(SingletonOptions { lock_period, ..SingletonOptions::default() })
    })
    .await;
    assert!(range.contains("lock_period") && range.contains("15 to 60"), "{range}");
    assert_eq!(seen.begun.load(Ordering::SeqCst), 0);
}

/// T037: one that does not come back by itself gives up after its time, in real time, calls included.
#[tokio::test]
async fn a_bounded_wait_for_a_lease_counts_the_time_that_calls_take() {
    let (fleet, seen) = (fleet(), App::default());
    let first = fleet.start(1, Arc::clone(&seen), compactor).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    let impatient = |worker: Worker<App>| {
        let options = SingletonOptions {
            listener_lock_recovery_polling_interval: None,
            lock_acquisition_timeout: Some(SECOND * 7),
            ..SingletonOptions::default()
        };
        compactor(worker).singleton_options(options)
    };
    let second = fleet.start(2, Arc::clone(&seen), impatient).await;
    second.way.set(Faults { delay: 1.0, longest_delay: SECOND * 3, ..Faults::none(3) });
    let waited = fleet.until("it gave up", async || second.has_ended()).await;
    // Before it waits, it says that it is there: that may take three seconds as well.
    assert!((SECOND * 7..SECOND * 11).contains(&waited), "{waited:?}");
    let told = second.stop().await.1.unwrap_err().to_string();
    assert!(told.contains("singleton/fleet/listener/compactor") && told.contains("instance 1"), "{told}");
    first.stop().await.1.unwrap();
}
