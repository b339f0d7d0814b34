//! What a worker does: it runs in real tasks, on a clock that is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Plain, settle_down};
use tenure::Clock;
use tenure::{
    AttemptEnd, Cause, ChangeOutcome, Failed, Job, Kind, QueueOrder, Run, StateName, Stopping, Tenure, Worker,
};

/// A worker in real tasks on a clock that is moved.
pub(crate) struct Shop {
    pub(crate) tenure: Tenure,
    pub(crate) clock: tenure::ManualClock,
    stop: tokio::sync::oneshot::Sender<()>,
    pub(crate) run: tokio::task::JoinHandle<Result<tenure::Stopped, tenure::Error>>,
}

pub(crate) fn open_shop(build: impl FnOnce(Worker<Gate>) -> Worker<Gate>, gate: Gate) -> Shop {
    let rig = crate::common::memory();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let worker = build(Worker::new(&rig.tenure, gate).keeper_on_runtime());
    let run = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    Shop { tenure: rig.tenure.clone(), clock: rig.clock.clone(), stop, run }
}

impl Shop {
    /// Moves the clock in small steps until something is true.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut(&Tenure) -> bool) {
        for _ in 0..2_000 {
            settle_down().await;
            if is_so(&self.tenure).await {
                return;
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("never came true: {what}");
    }

    pub(crate) async fn state(&self, id: tenure::JobId) -> StateName {
        self.tenure.jobs().get(id).await.unwrap().state.name(self.clock.now())
    }

    pub(crate) async fn closed(self) -> tenure::Stopped {
        let _ = self.stop.send(());
        let (clock, run) = (self.clock, self.run);
        for _ in 0..2_000 {
            settle_down().await;
            if run.is_finished() {
                return run.await.unwrap().unwrap();
            }
            clock.advance(Duration::from_millis(100));
        }
        panic!("the worker did not stop");
    }
}

/// What the handlers of a shop wait for and count.
#[derive(Default)]
pub(crate) struct GateInner {
    pub(crate) running: AtomicUsize,
    most: AtomicUsize,
    pub(crate) open: tokio::sync::Notify,
    order: std::sync::Mutex<Vec<u64>>,
}

pub(crate) type Gate = Arc<GateInner>;

/// Waits at the gate, and stops when told.
pub(crate) async fn polite(run: Run<Gate>, job: Plain) -> Result<u64, Failed> {
    let gate = run.app();
    let running = gate.running.fetch_add(1, Ordering::SeqCst) + 1;
    gate.most.fetch_max(running, Ordering::SeqCst);
    gate.order.lock().unwrap().push(job.number);
    let result = tokio::select! {
        biased;
        why = run.stopped() => Err(Failed::retry(format!("stopped: {why:?}"))),
        () = gate.open.notified() => Ok(job.number),
    };
    gate.running.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Never looks up.
async fn deaf(run: Run<Gate>, _job: Plain) -> Result<u64, Failed> {
    run.app().running.fetch_add(1, Ordering::SeqCst);
    std::future::pending().await
}

#[tokio::test]
async fn kinds_that_are_left_to_others_wait_until_they_are_not_and_spend_nothing() {
    let (gate, plain) = (Gate::default(), Kind::new(Plain::KIND).unwrap());
    let (say, left) = tokio::sync::watch::channel([plain].into());
    let build = |worker: Worker<Gate>| {
        worker.queue("default", 2).job(polite).leaving(left).raw_job("other", async |_| Ok(true.into()))
    };
    let shop = open_shop(build, Arc::clone(&gate));
    let waiting = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let other = shop.tenure.enqueue_draft(tenure::Draft::raw("other", &true.into())).await.unwrap().id();
    shop.until("the other one is done", async |_| shop.state(other).await == StateName::Succeeded).await;
    let began = shop.clock.now();
    shop.until("a while has passed", async |_| shop.clock.now().since(began).as_secs() > 30).await;
    let job = shop.tenure.jobs().get(waiting).await.unwrap();
    assert_eq!((shop.state(waiting).await, job.delivery), (StateName::Queued, 0));
    say.send(std::collections::BTreeSet::new()).unwrap();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    gate.open.notify_one();
    shop.until("it is done", async |_| shop.state(waiting).await == StateName::Succeeded).await;
    shop.closed().await;
}

/// T147: queued is at once, running is told and bounded, done is a conflict.
#[tokio::test]
async fn cancelling_ends_a_waiting_job_at_once_tells_a_running_one_and_refuses_a_finished_one() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 1).job(polite), Arc::clone(&gate));
    let running = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let waiting = shop.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    shop.until("the first runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;

    let grace = Duration::from_secs(10);
    assert_eq!(
        shop.tenure.jobs().cancel(waiting, grace, "changed my mind").await.unwrap(),
        ChangeOutcome::Done
    );
    assert_eq!(shop.state(waiting).await, StateName::Cancelled);
    let asked_at = shop.clock.now();
    assert_eq!(shop.tenure.jobs().cancel(running, grace, "page closed").await.unwrap(), ChangeOutcome::Asked);
    assert_eq!(shop.tenure.jobs().cancel(running, grace, "again").await.unwrap(), ChangeOutcome::Already);
    shop.until("the handler has stopped", async |tenure| {
        tenure.jobs().get(running).await.unwrap().state.is_finished()
    })
    .await;
    assert!(
        shop.clock.now().since(asked_at) < Duration::from_secs(1),
        "it was told by hint, not by the next renewal"
    );
    let job = shop.tenure.jobs().get(running).await.unwrap();
    assert_eq!(
        (job.state.name(shop.clock.now()), job.failure.unwrap().to_string()),
        (StateName::Cancelled, "cancelled: page closed".into())
    );
    assert_eq!(shop.tenure.jobs().cancel(running, grace, "x").await.unwrap(), ChangeOutcome::Already);
    shop.closed().await;
}

#[tokio::test]
async fn a_deaf_handler_is_dropped_after_the_grace_and_reported_as_such() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 1).job(deaf), Arc::clone(&gate));
    let id = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let next = shop.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    let asked_at = shop.clock.now();
    shop.tenure.jobs().cancel(id, Duration::from_secs(5), "too slow").await.unwrap();
    shop.until("it has ended", async |tenure| tenure.jobs().get(id).await.unwrap().state.is_finished()).await;
    let took = shop.clock.now().since(asked_at);
    assert!((Duration::from_secs(4)..Duration::from_secs(7)).contains(&took), "{took:?}");
    assert_eq!(shop.tenure.jobs().get(id).await.unwrap().failure.unwrap().cause, Cause::Deaf);
    // T142: its slot is free again.
    shop.until("the next one runs", async |_| shop.state(next).await == StateName::Running).await;
    shop.closed().await;
}

/// T095: ownership lost: the handler is told, its settlement refused, one completion recorded.
#[tokio::test]
async fn a_worker_that_was_silent_past_its_lease_is_told_and_its_settlement_is_refused() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 1).job(polite), Arc::clone(&gate));
    let id = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    // All tasks of this host stand still while time passes and another host takes over.
    shop.clock.advance(crate::common::LEASE);
    let taken = crate::common::try_reserve(&shop.tenure).await;
    assert_eq!(taken.len(), 1);
    shop.until("the first attempt has stopped", async |_| gate.running.load(Ordering::SeqCst) == 0).await;
    let theirs = taken.into_iter().next().unwrap().settle(
        tenure_core::Verdict::Succeeded(None),
        &tenure::RetryPolicy::default(),
        0.5,
    );
    shop.tenure.store().settle(vec![theirs], None).await.unwrap();
    let stopped = shop_closed_with_state(shop, id, StateName::Succeeded).await;
    assert_eq!(stopped.fenced, 1);
}

async fn shop_closed_with_state(shop: Shop, id: tenure::JobId, state: StateName) -> tenure::Stopped {
    let tenure = shop.tenure.clone();
    let stopped = shop.closed().await;
    let job = tenure.jobs().get(id).await.unwrap();
    assert_eq!(job.state.name(tenure.store().clock().now()), state);
    stopped
}

/// T116, T145: what runs may finish; what does not is told, then given back without an attempt.
#[tokio::test]
async fn a_graceful_stop_lets_jobs_finish_and_gives_the_rest_back() {
    let gate = Gate::default();
    let shop = open_shop(
        |worker| worker.queue("default", 1).prefetch(2).job(polite).finish_within(Duration::from_secs(10)),
        Arc::clone(&gate),
    );
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(shop.tenure.enqueue(Plain { number }).await.unwrap().id());
    }
    shop.until("one runs and two are reserved ahead", async |tenure| {
        let counts = tenure.counts().await.unwrap();
        counts.iter().any(|count| count.state == StateName::Running && count.jobs == 3)
    })
    .await;
    let tenure = shop.tenure.clone();
    let now = shop.clock.clone();
    shop.closed().await;
    for id in ids {
        let job = tenure.jobs().get(id).await.unwrap();
        assert_eq!(
            (job.state.name(tenure::Clock::now(&now)), job.attempt),
            (StateName::Queued, 0),
            "{job:?}"
        );
    }
}

/// T142: the limit is exact, and no slot leaks whatever happens.
#[tokio::test]
async fn slots_are_exact_and_never_leak() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 3).slots(3).job(polite), Arc::clone(&gate));
    let mut ids = Vec::new();
    for number in 0..30 {
        ids.push(shop.tenure.enqueue(Plain { number }).await.unwrap().id());
    }
    shop.until("all have run", async |tenure| {
        gate.open.notify_waiters();
        let counts = tenure.counts().await.unwrap();
        counts.iter().any(|count| count.state == StateName::Succeeded && count.jobs == 30)
    })
    .await;
    assert_eq!(gate.most.load(Ordering::SeqCst), 3);
    shop.closed().await;
}

#[tokio::test]
async fn strict_order_serves_the_first_queue_first() {
    let gate = Gate::default();
    let rig = crate::common::memory();
    for number in 0..10 {
        rig.tenure.enqueue(Plain { number: 100 + number }).queue("low").await.unwrap();
        rig.tenure.enqueue(Plain { number }).queue("high").await.unwrap();
    }
    let seen = Arc::clone(&gate);
    let tenure = rig.tenure.clone();
    Worker::new(&rig.tenure, Arc::clone(&gate))
        .order(QueueOrder::Strict)
        .queue("high", 1)
        .queue("low", 1)
        .slots(1)
        .keeper_on_runtime()
        .job(|run: Run<Gate>, job: Plain| async move {
            run.app().order.lock().unwrap().push(job.number);
            Ok(job.number)
        })
        .run(async move {
            while seen.order.lock().unwrap().len() < 20 {
                tokio::task::yield_now().await;
            }
            drop(tenure);
        })
        .await
        .unwrap();
    let order = gate.order.lock().unwrap().clone();
    assert!(order[..10].iter().all(|number| *number < 10), "{order:?}");
}

/// T117, T121: an idle worker stops at once; dropping a running one leaks nothing.
#[tokio::test]
async fn an_idle_worker_stops_at_once_and_a_dropped_one_leaks_nothing() {
    let shop = open_shop(|worker| worker.queue("default", 1).job(polite), Gate::default());
    let before = shop.clock.now();
    let clock = shop.clock.clone();
    shop.until("it is announced", async |tenure| tenure.hosts().await.unwrap().len() == 1).await;
    let tenure = shop.tenure.clone();
    shop.closed().await;
    assert!(clock.now().since(before) < Duration::from_secs(1));
    assert!(tenure.hosts().await.unwrap().is_empty(), "it said that it has gone");

    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 1).job(polite), Arc::clone(&gate));
    shop.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    shop.run.abort();
    settle_down().await;
    assert_eq!(Arc::strong_count(&gate), 1, "the handler and all that belongs to it are gone");
}

#[tokio::test]
async fn a_handler_sees_why_it_shall_stop() {
    let told = Arc::new(std::sync::Mutex::new(None));
    let rig = crate::common::memory();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&rig.tenure, Arc::clone(&told))
        .queue("default", 1)
        .keeper_on_runtime()
        .finish_within(Duration::ZERO)
        .job(|run: Run<Arc<std::sync::Mutex<Option<Stopping>>>>, _job: Plain| async move {
            let why = run.stopped().await;
            *run.app().lock().unwrap() = Some(why);
            Err::<u64, _>(Failed::retry("told to stop"))
        });
    let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let run = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    while rig.state(id).await != StateName::Running {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    while !run.is_finished() {
        settle_down().await;
        rig.clock.advance(Duration::from_millis(100));
    }
    assert_eq!(*told.lock().unwrap(), Some(Stopping::HostStops));
    assert_eq!(rig.state(id).await, StateName::Queued);
}

#[tokio::test]
async fn settings_that_cannot_work_are_told_when_it_runs() {
    let rig = crate::common::memory();
    let run = |worker: Worker<()>| async move { worker.run(async {}).await.unwrap_err().to_string() };
    let plain = |worker: Worker<()>| worker.job(|_: Run<()>, job: Plain| async move { Ok(job.number) });
    let new = || Worker::new(&rig.tenure, ());
    assert!(run(new()).await.contains("no queue"));
    assert!(run(plain(new().queue("default", 0))).await.contains("slots of queue default: 0"));
    assert!(run(plain(plain(new().queue("default", 1)))).await.contains("second handler"));
    assert!(run(plain(new().queue("default", 1)).lease(Duration::from_millis(1))).await.contains("lease"));
    assert!(run(plain(new().queue("a b", 1))).await.contains("queue"));
    let mail = |worker: Worker<()>| worker.job(|_: Run<()>, _: Mail| async { Ok(()) });
    let told = run(mail(new().queue("default", 1))).await;
    assert!(told.contains("kind mail") && told.contains("queue post"), "{told}");
    for worker in [new().queue("default", 1).queues_elsewhere(), new().queue("post", 1)] {
        mail(worker).run(async {}).await.unwrap();
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Mail;

impl Job for Mail {
    const KIND: &'static str = "mail";
    const QUEUE: &'static str = "post";
    type Output = ();
}

struct Brittle;

impl Drop for Brittle {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// T114: what a handler holds may panic when the handler is dropped; the attempt still ends as what it was.
#[tokio::test]
async fn a_panic_while_a_handler_is_dropped_does_not_hide_that_it_took_too_long() {
    async fn brittle(run: Run<()>, _: Plain) -> Result<u64, Failed> {
        let _held = Brittle;
        run.tenure().store().clock().sleep(Duration::from_secs(3600)).await;
        Ok(0)
    }
    let rig = crate::common::memory();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&rig.tenure, ()).queue("default", 1).keeper_on_runtime().job(brittle);
    let running = tokio::spawn(worker.run(stopped));
    let timeout = Duration::from_secs(2);
    let id = rig.tenure.enqueue(Plain { number: 1 }).timeout(timeout).await.unwrap().id();
    for _ in 0..40 {
        settle_down().await;
        rig.clock.advance(Duration::from_millis(100));
    }
    let attempts = rig.tenure.jobs().attempts(id).await.unwrap();
    assert_eq!(attempts[0].ended.map(|(_, end)| end), Some(AttemptEnd::Retried), "{attempts:?}");
    assert_eq!(attempts[0].failure.as_ref().map(|failure| failure.cause), Some(Cause::TimedOut));
    running.abort();
    drop(stop);
}
