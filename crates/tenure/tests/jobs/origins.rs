//! Test ideas from the ancestors that no other file holds, by their number. Where the design makes
//! the ancestor's fault impossible, the test shows what stands in its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{LEASE, Plain, host, rigs, settle_down};
use tenure::testing::Lab;
use tenure::{
    Cause, Chance, Clock, Failed, Failure, Faults, FaultyStore, JobId, ManualClock, Run, StateName, Tenure,
    Worker,
};
use tenure_core::Verdict;
use tenure_store::Settled;

const POLL: Duration = Duration::from_secs(1);

fn failed() -> Verdict {
    Verdict::Retry { failure: Failure::new(Cause::Error, "card reader busy"), due: None }
}

/// What the handlers of a test count.
#[derive(Default)]
struct Count {
    running: AtomicUsize,
    most: AtomicUsize,
    runs: AtomicUsize,
}

async fn quarter_of_an_hour(run: Run<Arc<Count>>, job: Plain) -> Result<u64, Failed> {
    let running = run.app().running.fetch_add(1, Ordering::SeqCst) + 1;
    run.app().most.fetch_max(running, Ordering::SeqCst);
    run.app().runs.fetch_add(1, Ordering::SeqCst);
    let rested = run.sleep(Duration::from_secs(900)).await;
    run.app().running.fetch_sub(1, Ordering::SeqCst);
    rested?;
    Ok(job.number)
}

struct Site {
    tenure: Tenure,
    store: Arc<FaultyStore>,
    clock: ManualClock,
    count: Arc<Count>,
    run: tokio::task::JoinHandle<Result<tenure::Stopped, tenure::Error>>,
}

impl Site {
    fn open(build: impl FnOnce(Worker<Arc<Count>>) -> Worker<Arc<Count>>) -> Self {
        let rig = crate::common::memory();
        let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
        let count = Arc::new(Count::default());
        let worker = Worker::new(&Tenure::on(store.clone(), Chance::seeded(1)), Arc::clone(&count));
        let worker = build(worker.poll(POLL).lease(LEASE).keeper_on_runtime()).job(quarter_of_an_hour);
        let run = tokio::spawn(worker.run(std::future::pending::<()>()));
        Self { tenure: rig.tenure.clone(), store, clock: rig.clock.clone(), count, run }
    }

    async fn pass(&self, span: Duration) {
        for _ in 0..span.as_millis() / 100 {
            settle_down().await;
            self.clock.advance(Duration::from_millis(100));
        }
        settle_down().await;
    }

    async fn jobs(&self, state: StateName) -> u64 {
        let counts = self.tenure.counts().await.unwrap();
        counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.run.abort();
    }
}

/// T091: in flight is never above slots and prefetch, and what frees is filled at once.
#[tokio::test]
async fn what_is_held_never_exceeds_the_slots_and_what_is_reserved_ahead() {
    let site = Site::open(|worker| worker.queue("default", 3).prefetch(2));
    for number in 0..12 {
        site.tenure.enqueue(Plain { number }).await.unwrap();
    }
    let mut seen = 0;
    while site.jobs(StateName::Succeeded).await < 12 {
        let held = site.jobs(StateName::Running).await;
        assert!(held <= 5, "{held}");
        seen = seen.max(held);
        site.pass(Duration::from_secs(30)).await;
    }
    assert_eq!((seen, site.count.most.load(Ordering::SeqCst)), (5, 3));
}

/// T093: there is no poison queue to be moved to. A job that failed is the same job in another state:
/// it keeps its id, times, attempts and last error, in the one write that ended it.
#[tokio::test]
async fn a_failed_job_keeps_its_id_times_attempts_and_last_error() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 1 }).attempts(1).await.unwrap().id();
        let created = rig.tenure.jobs().get(id).await.unwrap().created;
        rig.clock.advance(POLL);
        let reserved = rig.reserve_one(host(1)).await;
        assert_eq!(rig.settle(reserved, failed()).await, Settled::Done(StateName::Failed));
        let job = rig.tenure.jobs().get(id).await.unwrap();
        assert_eq!((job.id, job.created, job.attempt), (id, created, 1), "{}", rig.name);
        assert_eq!(job.failure.unwrap().message, "card reader busy");
        let attempts = rig.tenure.jobs().attempts(id).await.unwrap();
        assert_eq!(attempts[0].failure.as_ref().unwrap().message, "card reader busy");
    }
}

/// T096: there, a job that changed its own message lost the receipt that would have deleted it. Here a
/// handler cannot change its args, and nothing that it writes meanwhile touches its ownership.
#[tokio::test]
async fn what_a_handler_writes_while_it_runs_does_not_stop_it_from_ending() {
    let mut lab = Lab::new(|tenure| {
        Worker::new(tenure, ()).queue("default", 1).job(|run: Run<()>, job: Plain| async move {
            run.progress(0.5, "half")?;
            run.log("a line");
            run.tenure().enqueue(Plain { number: 9 }).queue("elsewhere").await?;
            Ok(job.number)
        })
    });
    let id = lab.tenure().enqueue(Plain { number: 1 }).await.unwrap().id();
    assert_eq!(lab.drain().await.unwrap().len(), 1);
    assert_eq!(lab.tenure().jobs().get(id).await.unwrap().state.name(lab.now()), StateName::Succeeded);
}

/// T100: a due job is not moved from a table to a queue, so there is no point between the two at which
/// a crash could lose or double it. The file is opened anew at every point of its life.
#[tokio::test]
async fn a_crash_at_any_point_delivers_a_due_job_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let open = || {
        let path = folder.path().join("jobs.db");
        let store = tenure_sqlite::SqliteStore::open(
            path,
            tenure_sqlite::Options::default(),
            Arc::new(clock.clone()),
        );
        Tenure::on(store.unwrap(), Chance::seeded(1))
    };
    let id = open().enqueue(Plain { number: 1 }).after(LEASE).await.unwrap().id();
    assert!(crate::common::try_reserve(&open()).await.is_empty());
    clock.advance(LEASE);
    open().store().tend().await.unwrap();
    let reserved = crate::common::try_reserve(&open()).await;
    assert_eq!(reserved.iter().map(|reserved| reserved.job().id).collect::<Vec<_>>(), [id]);
    assert!(crate::common::try_reserve(&open()).await.is_empty(), "it is delivered once");
    let settlement = reserved.into_iter().next().unwrap().settle(
        Verdict::Succeeded(None),
        &tenure::RetryPolicy::default(),
        0.5,
    );
    for expected in [Settled::Done(StateName::Succeeded), Settled::Repeated] {
        let turn = open().store().settle(vec![settlement.clone()], None).await.unwrap();
        assert_eq!(turn.settled, [expected]);
    }
}

/// T105 for a job that calls itself again: it names the next instant, so that lateness does not add up,
/// and an error in between neither ends nor shifts it.
#[tokio::test]
async fn a_job_that_snoozes_to_named_instants_does_not_drift() {
    const EVERY: i64 = 60_000_000;
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let app = Arc::clone(&seen);
    let mut lab = Lab::new(move |tenure| {
        type Seen = Arc<std::sync::Mutex<Vec<i64>>>;
        Worker::new(tenure, app).queue("default", 1).job(|run: Run<Seen>, _: Plain| async move {
            let now = run.tenure().now().as_micros();
            run.app().lock().unwrap().push(now / EVERY);
            if run.app().lock().unwrap().len() == 3 {
                return Err(Failed::retry_after("a bad day", Duration::from_secs(1)));
            }
            Err::<u64, _>(Failed::snooze_until(tenure::Timestamp::from_micros((now / EVERY + 1) * EVERY)?))
        })
    });
    lab.tenure().enqueue(Plain { number: 1 }).await.unwrap();
    let start = lab.now().as_micros() / EVERY;
    // Looked at every 7 seconds, so each run is up to 7 seconds late.
    for _ in 0..100 {
        lab.turn().await.unwrap();
        lab.advance(Duration::from_secs(7));
    }
    let slots: Vec<i64> = seen.lock().unwrap().iter().map(|slot| slot - start).collect();
    assert_eq!(slots, [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

/// T106: a host that lost its lease does not begin what it had reserved ahead.
#[tokio::test]
async fn what_was_reserved_ahead_is_not_begun_after_the_lease_is_lost() {
    let site = Site::open(|worker| worker.queue("default", 1).prefetch(5).stop_grace(Duration::from_secs(1)));
    for number in 0..6 {
        site.tenure.enqueue(Plain { number }).await.unwrap();
    }
    site.pass(Duration::from_secs(2)).await;
    assert_eq!(site.jobs(StateName::Running).await, 6);
    site.store.down(true);
    site.pass(LEASE + POLL).await;
    assert_eq!(site.count.runs.load(Ordering::SeqCst), 1, "only the first had begun");
    assert_eq!(site.count.running.load(Ordering::SeqCst), 0, "and it was stopped");
    // Another host takes all six; each has one live owner.
    assert_eq!(crate::common::try_reserve(&site.tenure).await.len(), 6);
}

/// T107: the error of the body is what is reported, even if giving the job back fails as well.
#[tokio::test]
async fn the_error_of_a_handler_is_recorded_even_if_settling_fails_at_first() {
    let rig = crate::common::memory();
    let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
    let tenure = Tenure::on(store.clone(), Chance::seeded(1));
    let id = rig.tenure.enqueue(Plain { number: 1 }).attempts(1).await.unwrap().id();
    let breaks = Arc::clone(&store);
    let worker =
        Worker::new(&tenure, ()).queue("default", 1).keeper_on_runtime().job(move |_: Run<()>, _: Plain| {
            let breaks = Arc::clone(&breaks);
            async move {
                breaks.down(true);
                Err::<u64, _>(Failed::retry("the disk is on fire"))
            }
        });
    let run = tokio::spawn(worker.run(std::future::pending::<()>()));
    while !rig.tenure.jobs().get(id).await.unwrap().state.is_finished() {
        settle_down().await;
        rig.clock.advance(Duration::from_millis(100));
        if store.tally().turned_away > 3 {
            store.down(false);
        }
    }
    let job = rig.tenure.jobs().get(id).await.unwrap();
    assert_eq!(job.failure.unwrap().message, "the disk is on fire");
    run.abort();
}

/// T115: with nothing to reserve a worker idles cheaply, and takes a job within one poll after a dead
/// holder's lease has lapsed, though nobody tells it.
#[tokio::test]
async fn an_idle_worker_asks_seldom_and_takes_a_freed_job_within_one_poll() {
    let site = Site::open(|worker| worker.queue("default", 1));
    let id = site.tenure.enqueue(Plain { number: 1 }).queue("default").await.unwrap().id();
    site.run.abort();
    settle_down().await;
    let dead = crate::common::try_reserve(&site.tenure).await;
    assert_eq!(dead.len(), 1);
    let count = Arc::new(Count::default());
    let worker = Worker::new(&Tenure::on(site.store.clone(), Chance::seeded(2)), Arc::clone(&count));
    let run = tokio::spawn(
        worker
            .queue("default", 1)
            .poll(POLL)
            .keeper_on_runtime()
            .job(quarter_of_an_hour)
            .run(std::future::pending::<()>()),
    );
    let before = site.store.tally().calls;
    let freed = site.clock.now().after(LEASE);
    site.pass(LEASE - POLL).await;
    let calls = site.store.tally().calls - before;
    assert!(calls <= 45, "{calls} calls in {} s", (LEASE - POLL).as_secs());
    while count.runs.load(Ordering::SeqCst) == 0 {
        site.pass(Duration::from_millis(100)).await;
    }
    let late = site.clock.now().since(freed);
    assert!(late <= POLL.mul_f64(1.2), "{late:?}");
    assert_eq!(site.tenure.jobs().get(id).await.unwrap().attempt, 2);
    run.abort();
}

/// T139: a crash between the effect and the completion. The job's id is the same in every attempt, so
/// an effect that is keyed by it happens once.
#[tokio::test]
async fn an_effect_keyed_by_the_job_happens_once_though_the_attempt_is_repeated() {
    for rig in rigs() {
        let mut stars: BTreeMap<JobId, &str> = BTreeMap::new();
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        let first = rig.reserve_one(host(1)).await;
        stars.entry(first.job().id).or_insert("Betelgeuse");
        drop(first); // The host dies here, before it could settle.
        rig.clock.advance(LEASE);
        let second = rig.reserve_one(host(2)).await;
        stars.entry(second.job().id).or_insert("Antares");
        rig.settle(second, Verdict::Succeeded(None)).await;
        assert_eq!(stars, BTreeMap::from([(id, "Betelgeuse")]), "{}", rig.name);
    }
}
