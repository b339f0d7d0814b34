//! Kinds of jobs whose attempts take a lease.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::testing::Lab;
use tenure::{
    AttemptEnd, Cause, Clock, Draft, Error, Failed, Fence, Job, JobId, Run, Singleton, SingletonOptions,
    StateName, Stopping, Tenure, Worker,
};

use crate::common::fleet::{Fleet, fleet};
use crate::common::memory;

const SECOND: Duration = Duration::from_secs(1);
/// A function's lease.
const LEASE: Duration = Duration::from_secs(15);
const SEVEN: &str = "singleton/fleet/function/charge/customer-7";
const HUNDRED: &str = "singleton/fleet/function/charge/customer-100";

#[derive(Debug, Serialize, Deserialize)]
struct Charge {
    customer: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = u64;

    fn singleton() -> Option<Singleton> {
        Some(Singleton::function().scope("customer-{customer}"))
    }
}

#[derive(Default)]
struct Seen {
    /// How many run of each customer now, and how many ran at most.
    running: Mutex<BTreeMap<u64, (usize, usize)>>,
    begun: AtomicUsize,
    fences: Mutex<Vec<Fence>>,
    told: Mutex<Vec<Stopping>>,
}

type App = Arc<Seen>;

/// Takes a second for most customers, if it may.
async fn charge(run: Run<App>, job: Charge) -> Result<u64, Failed> {
    let seen = run.app();
    seen.begun.fetch_add(1, Ordering::SeqCst);
    {
        let mut running = seen.running.lock().unwrap();
        let (now, most) = running.entry(job.customer).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }
    seen.fences.lock().unwrap().push(run.singleton().unwrap().fence());
    let slept = run.sleep(if job.customer == 100 { SECOND * 20 } else { SECOND }).await;
    seen.running.lock().unwrap().get_mut(&job.customer).unwrap().0 -= 1;
    if let Err(cut) = slept {
        seen.told.lock().unwrap().push(cut.0.clone());
        return Err(cut.into());
    }
    Ok(job.customer)
}

fn charging(worker: Worker<App>) -> Worker<App> {
    worker.queue("default", 4).job(charge)
}

/// A job of a producer that does not know that the kind is a singleton: nothing but the lease keeps it back.
fn plain(customer: u64) -> Draft {
    Draft::raw("charge", &json!({ "customer": customer }))
}

async fn state(tenure: &Tenure, id: JobId, fleet: &Fleet) -> StateName {
    tenure.jobs().get(id).await.unwrap().state.name(fleet.clock.now())
}

/// T030: of one scope one attempt runs at a time over all instances; other scopes are not kept waiting.
#[tokio::test]
async fn of_one_scope_one_attempt_runs_at_a_time() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let mut ids = Vec::new();
    for n in 0..12 {
        let customer = n % 2;
        let accepted = if n < 6 {
            tenure.enqueue(Charge { customer }).await
        } else {
            tenure.enqueue_draft(plain(customer)).await
        };
        ids.push(accepted.unwrap().id());
    }
    let first = fleet.start(1, Arc::clone(&seen), charging).await;
    let second = fleet.start(2, Arc::clone(&seen), charging).await;
    fleet
        .until("all are done", async || {
            let mut done = 0;
            for id in &ids {
                done += usize::from(state(&tenure, *id, &fleet).await == StateName::Succeeded);
            }
            done == ids.len()
        })
        .await;
    assert!(seen.running.lock().unwrap().values().all(|(now, most)| (*now, *most) == (0, 1)));
    for id in ids {
        assert_eq!(tenure.jobs().get(id).await.unwrap().attempt, 1, "waiting spends no attempt");
    }
    first.stop().await.1.unwrap();
    second.stop().await.1.unwrap();
}

/// T042: waiting for a singleton spends no attempt, and no slot for long.
#[tokio::test]
async fn waiting_for_a_lease_spends_no_attempt_and_gives_the_slot_to_others() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let held = fleet.occupy(SEVEN, "another").await;
    let waits = tenure.enqueue_draft(plain(7)).await.unwrap().id();
    let others: Vec<_> = {
        let mut others = Vec::new();
        for customer in 1..=3 {
            others.push(tenure.enqueue_draft(plain(customer)).await.unwrap().id());
        }
        others
    };
    let one_slot = |worker: Worker<App>| worker.queue("default", 1).job(charge);
    let instance = fleet.start(1, Arc::clone(&seen), one_slot).await;
    fleet
        .until("the others are done", async || {
            let mut all = true;
            for id in &others {
                all &= state(&tenure, *id, &fleet).await == StateName::Succeeded;
            }
            all
        })
        .await;
    fleet.pass(SECOND * 100).await;
    let job = tenure.jobs().get(waits).await.unwrap();
    assert!(!job.state.is_finished());
    assert!(job.delivery < 12, "it rests longer and longer: {}", job.delivery);
    let lines = tenure.jobs().logs(waits, (0, 0), 100).await.unwrap();
    assert!(lines[0].text.contains(SEVEN) && lines[0].text.contains("held by"), "{lines:?}");

    held.release().await;
    fleet.until("it is done", async || state(&tenure, waits, &fleet).await == StateName::Succeeded).await;
    let job = tenure.jobs().get(waits).await.unwrap();
    assert_eq!((job.attempt, job.failure), (1, None));
    instance.stop().await.1.unwrap();
}

/// T042: who waits in its slot when the lease becomes free has it at once.
#[tokio::test]
async fn a_job_that_waits_in_its_slot_goes_on_as_soon_as_the_lease_is_free() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let held = fleet.occupy(SEVEN, "another").await;
    tenure.enqueue_draft(plain(7)).await.unwrap();
    let instance = fleet.start(1, Arc::clone(&seen), charging).await;
    fleet.pass(SECOND * 2).await;
    held.release().await;
    let waited = fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    assert!(waited <= SECOND / 2, "{waited:?}");
    instance.stop().await.1.unwrap();
}

/// T038: a cancelled attempt frees its lease when it has stopped, not when the lease is over.
#[tokio::test]
async fn a_cancelled_attempt_frees_its_lease_at_once() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let id = tenure.enqueue(Charge { customer: 7 }).await.unwrap().id();
    let instance = fleet.start(1, Arc::clone(&seen), charging).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    tenure.jobs().cancel(id, SECOND * 10, "changed my mind").await.unwrap();
    fleet.until("it ended", async || state(&tenure, id, &fleet).await == StateName::Cancelled).await;
    let free = async || !tenure.leases().info(SEVEN).await.unwrap().unwrap().state.is_locked();
    let waited = fleet.until("the lease is free", free).await;
    assert!(waited <= SECOND, "{waited:?}");
    instance.stop().await.1.unwrap();
}

/// T037: an attempt that waits for its lease stops waiting when its job is cancelled or its host stops.
#[tokio::test]
async fn waiting_for_a_lease_ends_when_the_job_is_cancelled_or_the_host_stops() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let patient = |worker: Worker<App>| {
        let lock_acquisition_timeout = Some(SECOND * 3600);
        charging(worker)
            .finish_within(SECOND)
            .singleton_options(SingletonOptions { lock_acquisition_timeout, ..SingletonOptions::default() })
    };
    let _held = fleet.occupy(SEVEN, "another").await;
    let cancelled = tenure.enqueue_draft(plain(7)).await.unwrap().id();
    let left = tenure.enqueue_draft(plain(7)).await.unwrap().id();
    let instance = fleet.start(1, Arc::clone(&seen), patient).await;
    let runs = async || state(&tenure, left, &fleet).await == StateName::Running;
    fleet.until("both wait in their slots", runs).await;
    tenure.jobs().cancel(cancelled, SECOND * 10, "changed my mind").await.unwrap();
    let ended = async || state(&tenure, cancelled, &fleet).await == StateName::Cancelled;
    assert!(fleet.until("it ended", ended).await <= SECOND);
    let (took, stopped) = instance.stop().await;
    stopped.unwrap();
    assert!(took <= SECOND * 2, "{took:?}");
    assert_eq!(state(&tenure, left, &fleet).await, StateName::Queued);
    assert_eq!(tenure.jobs().get(left).await.unwrap().attempt, 0);
    assert_eq!(seen.begun.load(Ordering::SeqCst), 0);
}

/// T037: a bounded wait is a failed attempt when its time is over: real time, calls included.
#[tokio::test]
async fn a_wait_that_is_bounded_fails_the_attempt_when_its_time_is_over() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let _held = fleet.occupy(SEVEN, "the operator").await;
    let id = tenure.enqueue_draft(plain(7).attempts(1)).await.unwrap().id();
    let bounded = |worker: Worker<App>| {
        let lock_acquisition_timeout = Some(SECOND * 20);
        charging(worker)
            .singleton_options(SingletonOptions { lock_acquisition_timeout, ..SingletonOptions::default() })
    };
    let instance = fleet.start(1, Arc::clone(&seen), bounded).await;
    let failed = async || state(&tenure, id, &fleet).await == StateName::Failed;
    let waited = fleet.until("it failed", failed).await;
    assert!((SECOND * 20..SECOND * 22).contains(&waited), "{waited:?}");
    let failure = tenure.jobs().get(id).await.unwrap().failure.unwrap();
    assert_eq!(failure.cause, Cause::TimedOut);
    assert!(failure.message.contains(SEVEN) && failure.message.contains("the operator"), "{failure}");
    instance.stop().await.1.unwrap();
}

/// S-5: an attempt whose lease is lost is told, marked lost and tried again; whatever it answers counts as
/// nothing, and the process lives.
#[tokio::test]
async fn an_attempt_that_loses_its_lease_is_told_and_tried_again() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let id = tenure.enqueue(Charge { customer: 100 }).await.unwrap().id();
    let instance = fleet.start(1, Arc::clone(&seen), charging).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    tenure.leases().break_it(HUNDRED, Some(Duration::ZERO), "a test").await.unwrap();
    fleet
        .until("it is done at last", async || state(&tenure, id, &fleet).await == StateName::Succeeded)
        .await;
    assert_eq!(*seen.told.lock().unwrap(), [Stopping::SingletonLost]);
    let attempts = tenure.jobs().attempts(id).await.unwrap();
    let ends: Vec<_> = attempts.iter().map(|attempt| attempt.ended.unwrap().1).collect();
    assert_eq!(ends, [AttemptEnd::Retried, AttemptEnd::Succeeded]);
    assert_eq!(attempts[0].failure.as_ref().unwrap().cause, Cause::Lost);
    let fences = seen.fences.lock().unwrap().clone();
    assert!(fences[0] < fences[1], "{fences:?}");
    instance.stop().await.1.unwrap();
}

/// S-10: when the host of an attempt dies, its lease keeps the next one back no longer than its job does.
#[tokio::test]
async fn an_attempt_of_a_dead_host_runs_elsewhere_after_its_lease() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let id = tenure.enqueue(Charge { customer: 7 }).await.unwrap().id();
    let first = fleet.start(1, Arc::clone(&seen), |worker| charging(worker).lease(LEASE)).await;
    fleet.until("it runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    first.kill();
    let second = fleet.start(2, Arc::clone(&seen), charging).await;
    let done = async || state(&tenure, id, &fleet).await == StateName::Succeeded;
    let waited = fleet.until("it is done", done).await;
    assert!(waited <= LEASE + SECOND * 4, "{waited:?}");
    second.stop().await.1.unwrap();
}

/// T030: a job whose args do not fill in the scope is refused where it is enqueued, and fails for good if it
/// came by another way.
#[tokio::test]
async fn a_job_that_does_not_fill_in_the_scope_never_runs() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Odd {}
    impl Job for Odd {
        const KIND: &'static str = "charge";
        type Output = ();
        fn singleton() -> Option<Singleton> {
            Charge::singleton()
        }
    }
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let refused = tenure.enqueue(Odd {}).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(wrong) if wrong.field == "singleton.scope"), "{refused}");
    // Neither a limit of its own nor a program without an app id makes them fill it in.
    let refused = tenure.enqueue(Odd {}).limited("smtp", 1).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(wrong) if wrong.field == "singleton.scope"), "{refused}");
    let refused = memory().tenure.enqueue(Odd {}).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(wrong) if wrong.field == "singleton.scope"), "{refused}");

    let id = tenure.enqueue_draft(Draft::raw("charge", &json!({}))).await.unwrap().id();
    let instance = fleet.start(1, Arc::clone(&seen), charging).await;
    fleet.until("it failed", async || state(&tenure, id, &fleet).await == StateName::Failed).await;
    let job = tenure.jobs().get(id).await.unwrap();
    assert!(job.failure.unwrap().message.contains("No value for named parameter 'customer'."));
    assert_eq!((job.attempt, seen.begun.load(Ordering::SeqCst)), (1, 0));
    instance.stop().await.1.unwrap();
}

/// Jobs of one lock share a line, so that those which have to wait are not even handed out.
#[tokio::test]
async fn jobs_of_one_lock_wait_in_one_line() {
    let fleet = fleet();
    let (tenure, _) = fleet.handle(9).await;
    let id = tenure.enqueue(Charge { customer: 7 }).await.unwrap().id();
    let limit = tenure.jobs().get(id).await.unwrap().terms.limit.clone().unwrap();
    assert_eq!((limit.key.as_str(), limit.most), (SEVEN, Some(1)));
    let plain = tenure.enqueue_draft(plain(7)).await.unwrap().id();
    assert_eq!(tenure.jobs().get(plain).await.unwrap().terms.limit, None);
}

/// H-5: while a job waits for its singleton, `explain` names the lease and who has its place.
#[tokio::test]
async fn explain_tells_for_which_singleton_a_job_waits() {
    let (fleet, seen) = (fleet(), App::default());
    let (tenure, _) = fleet.handle(9).await;
    let first = tenure.enqueue(Charge { customer: 100 }).await.unwrap().id();
    let waits = tenure.enqueue(Charge { customer: 100 }).await.unwrap().id();
    let instance = fleet.start(1, Arc::clone(&seen), charging).await;
    fleet.until("the first runs", async || seen.begun.load(Ordering::SeqCst) == 1).await;
    fleet.pass(SECOND * 5).await;
    assert_eq!(state(&tenure, waits, &fleet).await, StateName::Blocked);
    let told = tenure.explain(waits).await.unwrap().to_string();
    assert!(told.contains(HUNDRED) && told.contains(&first.to_string()), "{told}");
    assert_eq!(tenure.jobs().get(waits).await.unwrap().delivery, 0, "it was not even handed out");
    instance.stop().await.1.unwrap();
}

/// A kind that is a singleton can be tested like any other.
#[tokio::test]
async fn a_lab_runs_singletons() {
    let seen = App::default();
    let app = Arc::clone(&seen);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, app).queue("default", 1).job(charge));
    lab.tenure().enqueue(Charge { customer: 7 }).await.unwrap();
    let ran = lab.drain().await.unwrap();
    assert_eq!(ran.iter().map(|ran| ran.state).collect::<Vec<_>>(), [StateName::Succeeded], "{ran:?}");
}

/// What a worker refuses at its start, a lab refuses as well.
#[test]
#[should_panic(expected = "lock_period")]
fn a_lab_refuses_options_out_of_their_ranges() {
    let options =
        SingletonOptions { lock_period: Duration::from_millis(14_999), ..SingletonOptions::default() };
    let charging = |tenure: &Tenure| {
        Worker::new(tenure, App::default()).queue("default", 1).job(charge).singleton_options(options)
    };
    drop(Lab::new(charging));
}
