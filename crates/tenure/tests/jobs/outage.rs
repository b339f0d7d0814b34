//! A worker and a store that is away, slow, or silent about what it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Plain, settle_down};
use tenure::{
    Chance, Clock, Failed, Faults, FaultyStore, JobId, ManualClock, Run, StateName, Stopped, Stopping,
    Tenure, Worker,
};

const LEASE: Duration = Duration::from_secs(30);

/// What happened to the handlers of a yard.
#[derive(Default)]
struct Seen {
    started: AtomicU32,
    told: std::sync::Mutex<Vec<Stopping>>,
    still_held: std::sync::Mutex<Vec<bool>>,
}

/// A worker on a store that can be told to misbehave.
struct Yard {
    store: Arc<FaultyStore>,
    /// The same store without its faults.
    tenure: Tenure,
    clock: ManualClock,
    seen: Arc<Seen>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    run: tokio::task::JoinHandle<Result<Stopped, tenure::Error>>,
}

/// Runs for an hour unless it is told to stop, and then says whether it still believed in its lease.
async fn long(run: Run<Arc<Seen>>, job: Plain) -> Result<u64, Failed> {
    run.app().started.fetch_add(1, Ordering::SeqCst);
    if job.number == 0 {
        return Ok(0);
    }
    let rested = run.sleep(Duration::from_secs(3600)).await;
    if let Err(stopped) = rested {
        run.app().told.lock().unwrap().push(stopped.0);
        run.app().still_held.lock().unwrap().push(run.is_held());
        return Err(Failed::retry("stopped"));
    }
    Ok(job.number)
}

fn yard(faults: Faults) -> Yard {
    let rig = crate::common::memory();
    let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), faults));
    let seen = Arc::new(Seen::default());
    let faulty = Tenure::on(store.clone(), Chance::seeded(5));
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let worker = Worker::new(&faulty, Arc::clone(&seen))
        .queue("default", 4)
        .lease(LEASE)
        .keeper_on_runtime()
        .job(long);
    let run = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    Yard { store, tenure: rig.tenure.clone(), clock: rig.clock.clone(), seen, stop: Some(stop), run }
}

impl Yard {
    async fn pass(&self, span: Duration) {
        let steps = span.as_millis() / 100;
        for _ in 0..steps {
            settle_down().await;
            self.clock.advance(Duration::from_millis(100));
        }
        settle_down().await;
    }

    async fn until_started(&self, count: u32) {
        for _ in 0..1_000 {
            if self.seen.started.load(Ordering::SeqCst) >= count {
                return;
            }
            self.pass(Duration::from_millis(100)).await;
        }
        panic!("{count} handlers never started");
    }

    async fn state(&self, id: JobId) -> StateName {
        self.tenure.jobs().get(id).await.unwrap().state.name(self.clock.now())
    }

    /// How long the worker took to stop, by the clock.
    async fn stop(&mut self) -> (Duration, Stopped) {
        let before = self.clock.now();
        drop(self.stop.take());
        for _ in 0..2_000 {
            settle_down().await;
            if self.run.is_finished() {
                let stopped = (&mut self.run).await.unwrap().unwrap();
                return (self.clock.now().since(before), stopped);
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("the worker never stopped");
    }
}

/// L1: an outage shorter than what the lease leaves costs nothing.
#[tokio::test]
async fn an_outage_shorter_than_the_trust_loses_no_job() {
    let mut yard = yard(Faults::none(1));
    let id = yard.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    yard.until_started(1).await;
    for _ in 0..5 {
        yard.store.down(true);
        yard.pass(Duration::from_secs(12)).await;
        yard.store.down(false);
        yard.pass(Duration::from_secs(20)).await;
    }
    assert!(yard.seen.told.lock().unwrap().is_empty());
    yard.pass(Duration::from_secs(3600)).await;
    assert_eq!(yard.state(id).await, StateName::Succeeded);
    assert_eq!(yard.stop().await.1.fenced, 0);
}

/// T014, B.3: at the deadline the handler is told, though no answer ever came; the process lives and
/// works on when the store is back (T094, T141).
#[tokio::test]
async fn an_outage_past_the_deadline_is_a_loss_that_the_handler_is_told_of() {
    let mut yard = yard(Faults::none(1));
    let id = yard.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    yard.until_started(1).await;
    yard.store.down(true);
    yard.pass(Duration::from_secs(40)).await;
    assert_eq!(*yard.seen.told.lock().unwrap(), [Stopping::Lost]);
    assert_eq!(*yard.seen.still_held.lock().unwrap(), [false]);
    let quick = yard.tenure.enqueue(Plain { number: 0 }).await.unwrap().id();
    yard.store.down(false);
    yard.pass(Duration::from_secs(20)).await;
    assert_eq!(yard.state(quick).await, StateName::Succeeded, "the worker works on");
    assert_eq!(
        yard.tenure.jobs().get(id).await.unwrap().attempt,
        2,
        "the lost attempt counted and another began"
    );
    yard.stop().await;
}

/// B.2, B.3: at the deadline, not when a request that hangs is given up: by then another host may have the job.
#[tokio::test]
async fn a_store_that_hangs_does_not_put_off_the_news_of_a_loss() {
    let mut yard = yard(Faults::none(1));
    yard.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    yard.until_started(1).await;
    yard.store.down(true);
    let trust = LEASE.mul_f64(0.85);
    yard.pass(trust - Duration::from_secs(3)).await;
    yard.store.set(Faults { delay: 1.0, longest_delay: LEASE * 1_000, ..Faults::none(1) });
    yard.store.down(false);
    yard.pass(Duration::from_millis(3_200)).await;
    assert_eq!(*yard.seen.told.lock().unwrap(), [Stopping::Lost]);
    yard.store.heal();
    yard.stop().await;
}

/// L6: whatever the store does, stopping is bounded by the time to finish, the grace and two seconds.
#[tokio::test]
async fn stopping_is_bounded_even_if_the_store_is_down() {
    let mut yard = yard(Faults::none(1));
    yard.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    yard.until_started(1).await;
    yard.store.down(true);
    let (took, stopped) = yard.stop().await;
    assert!(took <= Duration::from_secs(20 + 5 + 2), "{took:?}");
    assert_eq!(stopped.unsettled, 1);
}

/// L6: the same if the store takes a call and never answers.
#[tokio::test]
async fn stopping_is_bounded_even_if_the_store_hangs() {
    let mut yard = yard(Faults::none(1));
    yard.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    yard.until_started(1).await;
    yard.store.set(Faults { delay: 1.0, longest_delay: LEASE * 1_000, ..Faults::none(1) });
    yard.pass(Duration::from_secs(2)).await;
    let (took, _) = yard.stop().await;
    assert!(took <= Duration::from_secs(20 + 5 + 2), "{took:?}");
}

/// L6: also before the store has answered for the first time, however long the lease lets it wait.
#[tokio::test]
async fn stopping_is_bounded_even_if_the_store_never_answered() {
    let rig = crate::common::memory();
    let silent = Faults { delay: 1.0, longest_delay: Duration::from_secs(36_000), ..Faults::none(1) };
    let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), silent));
    let worker = Worker::new(&Tenure::on(store, Chance::seeded(5)), Arc::<Seen>::default())
        .queue("default", 4)
        .lease(Duration::from_secs(3600))
        .keeper_on_runtime()
        .job(long);
    let before = rig.clock.now();
    let run = tokio::spawn(worker.run(async {}));
    while !run.is_finished() {
        settle_down().await;
        rig.clock.advance(Duration::from_millis(100));
    }
    let took = rig.clock.now().since(before);
    assert!(took <= Duration::from_secs(20 + 5 + 2 + 2), "{took:?}");
}

/// A settlement whose reply was lost is sent again and answered "already": one end, no second run.
#[tokio::test]
async fn lost_replies_end_each_job_once() {
    let mut yard = yard(Faults { drop_reply: 0.3, drop_request: 0.2, fail: 0.1, ..Faults::none(3) });
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(yard.tenure.enqueue(Plain { number: 0 }).await.unwrap().id());
    }
    yard.pass(Duration::from_secs(120)).await;
    yard.store.heal();
    yard.pass(Duration::from_secs(120)).await;
    for id in ids {
        let job = yard.tenure.jobs().get(id).await.unwrap();
        assert_eq!(job.state.name(yard.clock.now()), StateName::Succeeded, "{job:?}");
        let ends = yard.tenure.jobs().attempts(id).await.unwrap();
        let succeeded = ends
            .iter()
            .filter(|attempt| attempt.ended.is_some_and(|(_, end)| end == tenure::AttemptEnd::Succeeded));
        assert_eq!(succeeded.count(), 1);
    }
    yard.stop().await;
}

/// L7: after an outage nobody has to do anything, and nobody hammers.
#[tokio::test]
async fn after_an_outage_work_goes_on_within_seconds_without_a_herd() {
    let mut yard = yard(Faults::none(1));
    yard.store.down(true);
    yard.pass(Duration::from_secs(600)).await;
    let turned_away = yard.store.tally().turned_away;
    assert!(turned_away < 800, "growing waits, not a hot loop: {turned_away} calls in ten minutes");
    let id = yard.tenure.enqueue(Plain { number: 0 }).await.unwrap().id();
    yard.store.down(false);
    yard.pass(Duration::from_secs(6)).await;
    assert_eq!(yard.state(id).await, StateName::Succeeded);
    yard.stop().await;
}
