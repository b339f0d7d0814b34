//! Several instances share out a list of roles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{
    Accepted, Backoff, Clock, Error, Failed, FaultyStore, JobId, ManualClock, RetryPolicy, Roster, Run,
    StateName, Stopped, Tenure, What,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::fleet::{Fleet, fleet};
use crate::common::{memory, settle_down};

const SECOND: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(60);

/// What was run where, when, and for which occurrence.
#[derive(Default)]
struct Diary {
    entries: Mutex<Vec<Entry>>,
    running: Mutex<BTreeMap<String, usize>>,
    overlaps: Mutex<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    role: String,
    instance: u64,
    occurrence: String,
}

type App = (Arc<Diary>, u64);

impl Diary {
    fn roles(&self) -> Vec<String> {
        self.entries.lock().unwrap().iter().map(|entry| entry.role.clone()).collect()
    }

    fn instances(&self) -> Vec<u64> {
        self.entries.lock().unwrap().iter().map(|entry| entry.instance).collect()
    }
}

struct Running(Arc<Diary>, String);

impl Running {
    fn start(run: &Run<App>, role: &str, occurrence: String) -> Self {
        let (diary, instance) = run.app();
        let entry = Entry { role: role.to_owned(), instance: *instance, occurrence };
        diary.entries.lock().unwrap().push(entry);
        let mut running = diary.running.lock().unwrap();
        let now = running.entry(role.to_owned()).or_default();
        *now += 1;
        if *now > 1 {
            *diary.overlaps.lock().unwrap() += 1;
        }
        Self(Arc::clone(diary), role.to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

/// A role that takes a second.
fn short(roster: Roster<App>, role: &'static str) -> Roster<App> {
    roster.role(role, async move |run: Run<App>, occurrence| {
        let _running = Running::start(&run, role, occurrence);
        run.sleep(SECOND).await?;
        Ok(())
    })
}

/// A role that goes on until it is told to stop.
fn endless(roster: Roster<App>, role: &'static str) -> Roster<App> {
    roster.role(role, async move |run: Run<App>, occurrence| {
        let _running = Running::start(&run, role, occurrence);
        Err(Failed::retry(format!("stopped: {:?}", run.stopped().await)))
    })
}

/// One instance of the program.
struct Instance {
    roster: Arc<Roster<App>>,
    way: Arc<FaultyStore>,
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<Stopped, Error>>,
    clock: ManualClock,
}

async fn instance(
    fleet: &Fleet,
    number: u64,
    diary: &Arc<Diary>,
    roles: fn(Roster<App>) -> Roster<App>,
) -> Instance {
    let (tenure, way) = fleet.handle(number).await;
    let roster = Roster::new(&tenure, "nightly", (Arc::clone(diary), number)).keeper_on_runtime();
    let roster = Arc::new(roles(roster.named(&format!("instance {number}"))));
    let (stop, stopped) = oneshot::channel();
    let run = tokio::spawn({
        let roster = Arc::clone(&roster);
        async move { roster.run(async move { drop(stopped.await) }).await }
    });
    settle_down().await;
    Instance { roster, way, stop: Some(stop), run, clock: fleet.clock.clone() }
}

impl Instance {
    async fn stop(mut self) -> Duration {
        let began = self.clock.moment();
        drop(self.stop.take());
        for _ in 0..2_000 {
            settle_down().await;
            if self.run.is_finished() {
                self.run.await.unwrap().unwrap();
                return self.clock.moment().since(began);
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("it did not stop");
    }

    fn kill(&self) {
        self.way.down(true);
        self.run.abort();
    }

    async fn tick(&self, occurrence: &str) -> Vec<Accepted> {
        self.roster.tick(occurrence).await.unwrap()
    }
}

async fn state(fleet: &Fleet, id: JobId) -> StateName {
    let (tenure, _) = fleet.handle(99).await;
    tenure.jobs().get(id).await.unwrap().state.name(fleet.clock.now())
}

fn five(roster: Roster<App>) -> Roster<App> {
    ["a", "b", "c", "d", "e"].into_iter().fold(roster, short)
}

/// T118: five roles, two instances: all run within three rounds, and both instances do their part.
#[tokio::test]
async fn every_role_gets_its_turn_and_every_instance_its_part() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, five).await;
    let two = instance(&fleet, 2, &diary, five).await;
    for night in 0..4 {
        let before = diary.roles().len();
        one.tick(&format!("night {night}")).await;
        two.tick(&format!("night {night}")).await;
        fleet.pass(SECOND * 4).await;
        let mut roles = diary.roles()[before..].to_vec();
        roles.sort();
        assert_eq!(roles, ["a", "b", "c", "d", "e"], "night {night}");
        let instances = diary.instances()[before..].to_vec();
        assert!(instances.contains(&1) && instances.contains(&2), "{instances:?}");
        fleet.pass(SECOND * 30).await;
    }
    assert_eq!(*diary.overlaps.lock().unwrap(), 0);
    one.stop().await;
    two.stop().await;
}

/// T119, W-9: a tick that comes after the occurrence is over does nothing, on any instance.
#[tokio::test]
async fn a_late_tick_of_an_occurrence_that_is_over_does_nothing() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, five).await;
    let two = instance(&fleet, 2, &diary, five).await;
    let first = one.tick("2026-03-29T02:00:00Z").await;
    assert!(first.iter().all(|accepted| matches!(accepted, Accepted::New(_))));
    fleet.until("all have run", async || diary.roles().len() == 5).await;
    fleet.pass(SECOND * 3_600).await;
    let late = two.tick("2026-03-29T02:00:00Z").await;
    let ids: Vec<_> = first.iter().map(|accepted| Accepted::Repeated(accepted.id())).collect();
    assert_eq!(late, ids);
    fleet.pass(SECOND * 60).await;
    assert_eq!(diary.roles().len(), 5);
    two.tick("2026-03-30T02:00:00Z").await;
    fleet.until("the next night runs", async || diary.roles().len() == 10).await;
    one.stop().await;
    two.stop().await;
}

/// Two occurrences of one role never overlap, even if the first takes longer than a night.
#[tokio::test]
async fn two_occurrences_of_one_role_run_one_after_the_other() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, |roster| short(roster.at_once(3), "a")).await;
    let two = instance(&fleet, 2, &diary, |roster| short(roster.at_once(3), "a")).await;
    for night in 0..5 {
        one.tick(&night.to_string()).await;
    }
    fleet.until("all nights are over", async || diary.roles().len() == 5).await;
    fleet.pass(SECOND * 30).await;
    assert_eq!(*diary.overlaps.lock().unwrap(), 0);
    let nights: Vec<_> = diary.entries.lock().unwrap().iter().map(|entry| entry.occurrence.clone()).collect();
    let mut each = nights.clone();
    each.sort();
    each.dedup();
    assert_eq!((nights.len(), each.len()), (5, 5), "{nights:?}");
    one.stop().await;
    two.stop().await;
}

/// T114, W-1: a role that fails or panics frees its reservation, is on record with its error, and is tried
/// again; the instance goes on with the others.
#[tokio::test]
async fn a_role_that_fails_is_on_record_and_holds_up_nothing() {
    fn roles(roster: Roster<App>) -> Roster<App> {
        let backoff = Backoff::Fixed(SECOND * 10);
        let roster = roster.retry(RetryPolicy { backoff, max_attempts: 3, ..RetryPolicy::default() });
        let roster = roster.role("panics", async |run: Run<App>, occurrence| {
            let _running = Running::start(&run, "panics", occurrence);
            panic!("the disk is on fire")
        });
        let roster = roster.role("fails", async |run: Run<App>, occurrence| {
            let _running = Running::start(&run, "fails", occurrence);
            if run.attempt() < 3 { Err(Failed::retry("the disk is full")) } else { Ok(()) }
        });
        short(roster, "works")
    }
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, roles).await;
    let (tenure, _) = fleet.handle(9).await;
    let accepted = one.tick("tonight").await;
    let [panics, fails, works] = [0, 1, 2].map(|role: usize| accepted[role].id());
    fleet.until("the last works", async || state(&fleet, works).await == StateName::Succeeded).await;
    let failure = tenure.jobs().get(panics).await.unwrap().failure.unwrap();
    assert_eq!(failure.to_string(), "panic: the disk is on fire");
    assert!(tenure.reservations().holder("nightly/panics").await.unwrap().is_none());

    fleet.until("it fails for good", async || state(&fleet, panics).await == StateName::Failed).await;
    fleet.until("it works at last", async || state(&fleet, fails).await == StateName::Succeeded).await;
    assert_eq!(tenure.jobs().get(panics).await.unwrap().attempt, 3);
    let record = tenure.reservations().reservers("nightly/panics").await.unwrap();
    assert_eq!(record.len(), 3);
    assert!(
        record.iter().all(|holding| holding.end == Some(What::Released) && holding.by.who == "instance 1")
    );
    one.stop().await;
}

/// T115, W-2: with nothing to reserve an instance waits at next to no cost, and takes a role soon after it
/// is free; ticking never waits.
#[tokio::test]
async fn an_instance_without_a_role_waits_cheaply_and_takes_one_when_it_is_free() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, |roster| endless(roster, "a")).await;
    one.tick("always").await;
    fleet.until("it runs", async || diary.instances() == [1]).await;
    let two = instance(&fleet, 2, &diary, |roster| endless(roster, "a")).await;
    let began = fleet.clock.now();
    two.tick("always").await;
    assert_eq!(fleet.clock.now(), began);
    let before = two.way.tally().calls;
    fleet.pass(SECOND * 300).await;
    let calls = two.way.tally().calls - before;
    // A third of them look whether a timer is ripe.
    assert!(calls < 130, "{calls} calls in five minutes of standby");
    one.stop().await;
    let waited = fleet.until("the other has it", async || diary.instances() == [1, 2]).await;
    assert!(waited <= SECOND * 2, "{waited:?}");
    two.stop().await;
}

/// T115: somebody outside of the roster has the role.
#[tokio::test]
async fn a_role_that_somebody_else_has_reserved_runs_within_one_poll_after_it_is_free() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let (tenure, _) = fleet.handle(9).await;
    let held = tenure.reservations().reserve("nightly/a", PERIOD).await.unwrap().unwrap();
    let one = instance(&fleet, 1, &diary, |roster| short(roster, "a")).await;
    let id = one.tick("tonight").await[0].id();
    fleet.pass(SECOND * 600).await;
    assert!(diary.roles().is_empty());
    drop(held);
    let waited = fleet.until("it runs", async || diary.roles() == ["a"]).await;
    assert!(waited <= SECOND * 6, "{waited:?}");
    fleet.until("it is done", async || state(&fleet, id).await == StateName::Succeeded).await;
    assert_eq!(tenure.jobs().get(id).await.unwrap().attempt, 1, "waiting spends no attempt");
    one.stop().await;
}

/// T116, W-3: stopping tells the role, waits for it, and gives it back only when it has ended.
#[tokio::test]
async fn stopping_tells_the_role_waits_and_then_gives_it_back() {
    fn slow_to_stop(roster: Roster<App>) -> Roster<App> {
        roster.stop_within(SECOND * 10).role("a", async |run: Run<App>, occurrence| {
            let _running = Running::start(&run, "a", occurrence);
            run.stopped().await;
            run.tenure().store().clock().sleep(SECOND * 3).await;
            Err(Failed::retry("stopped"))
        })
    }
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, slow_to_stop).await;
    let id = one.tick("always").await[0].id();
    fleet.until("it runs", async || diary.instances() == [1]).await;
    let two = instance(&fleet, 2, &diary, slow_to_stop).await;
    let took = one.stop().await;
    assert!((SECOND * 3..SECOND * 4).contains(&took), "{took:?}");
    fleet.until("the other has it", async || diary.instances() == [1, 2]).await;
    assert_eq!(*diary.overlaps.lock().unwrap(), 0);
    let (tenure, _) = fleet.handle(9).await;
    assert_eq!(tenure.jobs().get(id).await.unwrap().attempt, 1, "stopping spends no attempt");
    two.stop().await;
}

/// T116: a role that does not react is dropped when its time is over.
#[tokio::test]
async fn a_deaf_role_is_dropped_when_its_time_is_over() {
    fn deaf(roster: Roster<App>) -> Roster<App> {
        roster.stop_within(SECOND * 5).role("a", async |run: Run<App>, occurrence| {
            let _running = Running::start(&run, "a", occurrence);
            std::future::pending().await
        })
    }
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, deaf).await;
    one.tick("always").await;
    fleet.until("it runs", async || diary.instances() == [1]).await;
    let two = instance(&fleet, 2, &diary, deaf).await;
    let took = one.stop().await;
    assert!((SECOND * 5..SECOND * 7).contains(&took), "{took:?}");
    fleet.until("the other has it", async || diary.instances() == [1, 2]).await;
    assert_eq!(*diary.overlaps.lock().unwrap(), 0);
    two.stop().await;
}

/// T117: an idle instance stops at once.
#[tokio::test]
async fn an_idle_instance_stops_within_a_second() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, five).await;
    fleet.pass(SECOND * 7).await;
    let took = one.stop().await;
    assert!(took < SECOND, "{took:?}");
}

/// When an instance dies, another takes its role after the period.
#[tokio::test]
async fn the_role_of_a_dead_instance_goes_to_another_after_its_period() {
    fn roles(roster: Roster<App>) -> Roster<App> {
        endless(roster.period(SECOND * 15), "a")
    }
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let one = instance(&fleet, 1, &diary, roles).await;
    one.tick("always").await;
    fleet.until("it runs", async || diary.instances() == [1]).await;
    let two = instance(&fleet, 2, &diary, roles).await;
    fleet.pass(SECOND * 60).await;
    one.kill();
    let waited = fleet.until("the other has it", async || diary.instances() == [1, 2]).await;
    assert!(waited <= SECOND * 21, "{waited:?}");
    two.stop().await;
}

/// T120, W-7: two rosters in one program share nothing.
#[tokio::test]
async fn two_rosters_in_one_program_do_not_affect_each_other() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let (tenure, _) = fleet.handle(1).await;
    let roster = |name: &str, number| short(Roster::new(&tenure, name, (Arc::clone(&diary), number)), "a");
    let (one, two) = (roster("one", 1).keeper_on_runtime(), roster("two", 2).keeper_on_runtime());
    one.tick("tonight").await.unwrap();
    two.tick("tonight").await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let first = tokio::spawn(async move { one.run(async move { drop(stopped.await) }).await });
    let second = tokio::spawn(async move { two.run(std::future::pending::<()>()).await });
    fleet.until("both have run", async || diary.roles() == ["a", "a"]).await;
    let mut instances = diary.instances();
    instances.sort_unstable();
    assert_eq!(instances, [1, 2]);
    drop(stop);
    fleet.until("one has stopped", async || first.is_finished()).await;
    first.await.unwrap().unwrap();
    assert!(!second.is_finished());
    second.abort();
}

/// T121, W-11: stopped before it began, started twice, dropped in the middle: no panic, and nothing stays
/// reserved.
#[tokio::test]
async fn odd_orders_of_starting_and_stopping_do_no_harm() {
    let (fleet, diary) = (fleet(), Arc::new(Diary::default()));
    let (tenure, _) = fleet.handle(1).await;
    let app = (Arc::clone(&diary), 1);
    let roster = Arc::new(endless(Roster::new(&tenure, "nightly", app).keeper_on_runtime(), "a"));

    let stopped = roster.run(std::future::ready(())).await.unwrap();
    assert_eq!(stopped.settled, 0, "stopped before it began");

    roster.tick("always").await.unwrap();
    let start = || {
        let roster = Arc::clone(&roster);
        tokio::spawn(async move { roster.run(std::future::pending::<()>()).await })
    };
    let (first, second) = (start(), start());
    fleet.until("one of them runs it", async || diary.roles() == ["a"]).await;
    fleet.pass(SECOND * 90).await;
    assert_eq!(diary.roles(), ["a"], "started twice, it runs once");

    first.abort();
    second.abort();
    let nothing_runs = async || diary.running.lock().unwrap()["a"] == 0;
    fleet.until("what was dropped has gone", nothing_runs).await;
    let free = async || tenure.reservations().holder("nightly/a").await.unwrap().is_none();
    let waited = fleet.until("nothing stays reserved", free).await;
    assert!(waited <= SECOND, "{waited:?}");
}

#[tokio::test]
async fn mistakes_are_told_when_it_ticks_and_when_it_runs() {
    /// Short enough for the name of a job, too long for what is made of it.
    const LONG: &str = concat!(
        "a-name-that-is-as-long-as-nobody-would-ever-choose-it-",
        "for-anything-at-all-but-that-somebody-may-have-made-by-putting-ten-others-together"
    );
    let diary = Arc::new(Diary::default());
    let nameless = Roster::new(&memory().tenure, "nightly", (Arc::clone(&diary), 1));
    let nameless = short(nameless, "a");
    assert!(matches!(nameless.tick("tonight").await, Err(Error::NoApp { .. })));
    let error = nameless.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(&error, Error::NoApp { what, .. } if what == "roster nightly"), "{error}");

    let fleet = fleet();
    let (tenure, _) = fleet.handle(1).await;
    let named = |tenure: &Tenure, name: &str| Roster::new(tenure, name, (Arc::clone(&diary), 1));
    assert!(short(named(&tenure, "nightly"), "a").tick("").await.is_err());
    assert!(short(named(&tenure, "nightly"), "a").tick(&"x".repeat(257)).await.is_err());
    let nightly = || short(named(&tenure, "nightly"), "a");
    let no_attempt = RetryPolicy { max_attempts: 0, ..RetryPolicy::default() };
    let wrong = [
        (short(named(&tenure, "a/b"), "a"), "roster", "'/'"),
        (short(named(&tenure, ""), "a"), "roster", "empty"),
        (short(named(&tenure, LONG), "a"), "roster", "1 to 115 bytes"),
        (short(named(&tenure, "nightly"), "a b"), "role", "' '"),
        (short(named(&tenure, "nightly"), ""), "role", "empty"),
        (short(named(&tenure, "nightly"), LONG), "role", "1 to 123 bytes"),
        (short(nightly(), "a"), "role", "a, twice"),
        (named(&tenure, "nightly"), "roles", "Roster::role"),
        (nightly().period(SECOND / 2), "period", "1 to 86400 seconds"),
        (nightly().at_once(0), "at_once", "1 to"),
        (nightly().stop_within(Duration::MAX), "stop_within", "at most"),
        (nightly().keep(Duration::MAX), "keep", "at most"),
        (nightly().retry(no_attempt), "attempts", "1 to"),
    ];
    for (roster, field, part) in wrong {
        let ticked = roster.tick("x").await.map(drop);
        let ran = roster.run(std::future::pending::<()>()).await.map(drop);
        for error in [ticked.unwrap_err(), ran.unwrap_err()] {
            let Error::Invalid(told) = &error else { panic!("{field}: {error}") };
            assert!(told.field.contains(field) && error.to_string().contains(part), "{field}: {error}");
        }
    }
}
