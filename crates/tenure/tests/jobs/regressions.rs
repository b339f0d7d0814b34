//! Faults that other job systems had, each as a test that says which.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{LEASE, Plain, Strange, host, rigs, rigs_with_one_writer, settle_down};
use tenure::{Cause, Chance, Draft, Failed, Failure, Only, Reason, Run, StateName, Tenure, Worker};
use tenure_core::{Args, Verdict};
use tenure_store::{Clock, Held, Renew, Renewal, Settled};

fn retry() -> Verdict {
    Verdict::Retry { failure: Failure::new(Cause::Error, "late"), due: None }
}

/// River #1302: the rescuer read stuck rows, then updated them by id alone and overwrote jobs that
/// had completed in between.
#[tokio::test]
async fn taking_lapsed_jobs_never_touches_one_that_was_completed() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        let reserved = rig.reserve_one(host(1)).await;
        rig.clock.advance(LEASE);
        assert_eq!(rig.settle(reserved, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));
        rig.store.tend().await.unwrap();
        assert!(rig.reserve_all(host(2)).await.is_empty(), "{}", rig.name);
        assert_eq!(rig.state(id).await, StateName::Succeeded, "{}", rig.name);
    }
}

/// Oban #1496: a stale settlement overwrote a terminal state.
#[tokio::test]
async fn a_late_settlement_never_overwrites_an_end() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        let slow = rig.reserve_one(host(1)).await;
        rig.clock.advance(LEASE);
        let quick = rig.reserve_one(host(2)).await;
        assert!(quick.fence() > slow.fence());
        assert_eq!(rig.settle(quick, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));
        assert_eq!(rig.settle(slow, retry()).await, Settled::Fenced, "{}", rig.name);
        assert_eq!(rig.state(id).await, StateName::Succeeded, "{}", rig.name);
    }
}

/// Hangfire's invisibility timeout, graphile-worker's four hours, River #682: a live job is run again
/// because it is old. Here only silence counts, not age.
#[tokio::test]
async fn a_live_job_is_never_run_twice_however_long_it_takes() {
    for rig in rigs() {
        rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
        let reserved = rig.reserve_one(host(1)).await;
        let held = Held { id: reserved.job().id, seq: reserved.job().seq, fence: reserved.fence() };
        for _ in 0..500 {
            rig.clock.advance(LEASE / 3);
            let renewals = rig.store.renew(Renew { ttl: LEASE, held: vec![held] }).await.unwrap();
            assert!(matches!(renewals[0], Renewal::Held(_)));
            assert!(rig.reserve_all(host(2)).await.is_empty(), "{}", rig.name);
        }
        assert_eq!(rig.settle(reserved, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));
    }
}

/// The same through a worker: its keeper renews as long as the handler works.
#[tokio::test]
async fn a_worker_goes_on_holding_what_it_runs() {
    for rig in rigs_with_one_writer() {
        let starts = Arc::new(AtomicU32::new(0));
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        let worker = |tenure: &Tenure| {
            Worker::new(tenure, Arc::clone(&starts)).queue("default", 4).lease(LEASE).keeper_on_runtime().job(
                |run: Run<Arc<AtomicU32>>, job: Plain| async move {
                    run.app().fetch_add(1, Ordering::SeqCst);
                    run.sleep(Duration::from_secs(2 * 3600)).await?;
                    Ok(job.number)
                },
            )
        };
        let other = Tenure::on(Arc::clone(&rig.store), Chance::seeded(2));
        let runs = [
            tokio::spawn(worker(&rig.tenure).run(std::future::pending::<()>())),
            tokio::spawn(worker(&other).run(std::future::pending::<()>())),
        ];
        for _ in 0..(2 * 3600 / 5 + 20) {
            // A write of our own is answered after those of the workers, which were sent before it:
            // they have their answers before time goes on.
            for _ in 0..4 {
                settle_down().await;
                rig.store.tend().await.unwrap();
            }
            settle_down().await;
            rig.clock.advance(Duration::from_secs(5));
        }
        let ended = rig.tenure.wait(id);
        tokio::select! {
            ended = ended => assert_eq!(ended.unwrap().end, tenure::End::Succeeded, "{}", rig.name),
            () = async { loop { settle_down().await; rig.clock.advance(Duration::from_secs(1)); } } => {}
        }
        let attempts = rig.tenure.jobs().attempts(id).await.unwrap();
        assert_eq!(starts.load(Ordering::SeqCst), 1, "{}: {attempts:#?}", rig.name);
        runs.into_iter().for_each(|run| run.abort());
    }
}

/// River #1105: a worker discarded jobs of kinds that another program handles.
#[tokio::test]
async fn a_kind_that_a_worker_does_not_know_is_left_for_one_that_does() {
    for rig in rigs() {
        let strange = rig.tenure.enqueue(Strange {}).await.unwrap().id();
        let plain = rig.tenure.enqueue(Plain { number: 7 }).await.unwrap().id();
        let waiting = rig.tenure.clone();
        let worker = Worker::new(&rig.tenure, ())
            .queue("default", 4)
            .job(|_: Run<()>, job: Plain| async move { Ok(job.number) });
        let reason = Arc::new(std::sync::Mutex::new(None));
        let told = Arc::clone(&reason);
        worker
            .run(async move {
                assert_eq!(waiting.wait_for::<Plain>(plain).await.unwrap(), 7);
                *told.lock().unwrap() = Some(waiting.explain(strange).await.unwrap());
            })
            .await
            .unwrap();
        assert_eq!(rig.state(strange).await, StateName::Queued, "{}", rig.name);
        let reason = reason.lock().unwrap().take().unwrap();
        assert!(
            matches!(&reason, Reason::KindNotServed { kind, .. } if kind.as_str() == "strange"),
            "{}: {reason}",
            rig.name
        );
    }
}

/// Bull #308 and a decade of "stalled" jobs: a handler that blocks the event loop lost its job, which
/// then ran twice. The keeper has a thread of its own.
#[test]
fn a_handler_that_blocks_the_runtime_keeps_its_job() {
    let tenure = crate::common::in_real_time();
    let observer = tenure.clone();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let id = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
            let ended = tenure.clone();
            let worker = Worker::new(&tenure, released)
                .queue("default", 1)
                .lease(Duration::from_secs(1))
                .job(|run: Run<std::sync::Mutex<std::sync::mpsc::Receiver<()>>>, job: Plain| async move {
                    // Not a single await: nothing else on this runtime can make progress.
                    run.app().lock().unwrap().recv().unwrap();
                    Ok(job.number)
                });
            let stopped = worker.run(async move { drop(ended.wait(id).await) }).await.unwrap();
            (id, stopped)
        })
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = observer.store().clock();
        let first_lease_over = loop {
            let running = observer
                .jobs()
                .page(tenure::PageAsk { at_most: 1, ..Default::default() })
                .await
                .unwrap()
                .jobs;
            if let Some(tenure::State::Running { until, .. }) = running.first().map(|job| job.state) {
                break until.after(Duration::from_millis(1200));
            }
            clock.sleep(Duration::from_millis(5)).await;
        };
        // Real time is the subject here: a keeper on a real thread against a real lease of one second.
        clock.sleep(first_lease_over.since(clock.now())).await;
        let taken = crate::common::try_reserve(&observer).await;
        assert!(taken.is_empty(), "the blocked handler lost its job");
    });
    release.send(()).unwrap();
    let (id, stopped) = blocked.join().unwrap();
    assert_eq!(stopped.fenced, 0);
    let job = runtime.block_on(observer.jobs().get(id)).unwrap();
    assert_eq!((job.attempt, job.state.is_finished()), (1, true));
}

/// awa #388, procrastinate #1543: taking back stalled jobs met a unique conflict and stopped.
#[tokio::test]
async fn taking_lapsed_jobs_is_not_stopped_by_unique_keys() {
    for rig in rigs() {
        for number in 0..3 {
            rig.tenure.enqueue(Plain { number }).unique_by(Only::one(format!("key-{number}"))).await.unwrap();
        }
        assert_eq!(rig.reserve_all(host(1)).await.len(), 3);
        rig.clock.advance(LEASE);
        // The keys are still held: the jobs have not ended.
        let again = rig.tenure.enqueue(Plain { number: 0 }).unique_key("key-0").await.unwrap();
        assert!(matches!(again, tenure::Accepted::Existing(_)), "{}", rig.name);
        assert_eq!(rig.reserve_all(host(2)).await.len(), 3, "{}", rig.name);
    }
}

/// apalis: a job that kills its process was retried for ever.
#[tokio::test]
async fn a_job_that_kills_its_host_is_bounded() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 1 }).attempts(5).await.unwrap().id();
        let mut grants = 0;
        for number in 0..20 {
            grants += rig.reserve_all(host(number)).await.len();
            rig.clock.advance(LEASE);
        }
        assert_eq!(grants, 5, "{}", rig.name);
        let job = rig.tenure.jobs().get(id).await.unwrap();
        assert_eq!(job.state.name(rig.clock.now()), StateName::Failed);
        assert_eq!(job.failure.unwrap().cause, Cause::Lost);
        assert_eq!(rig.tenure.jobs().attempts(id).await.unwrap().len(), 5, "{}", rig.name);
    }
}

/// apalis: workers are known by name, and a name used twice completes another's job. Here a name is
/// for people; what counts is the fence.
#[tokio::test]
async fn a_holder_that_comes_back_under_its_old_identity_cannot_complete_what_it_lost() {
    for rig in rigs() {
        rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
        let before = rig.reserve_one(host(1)).await;
        rig.clock.advance(LEASE);
        let after = rig.reserve_one(host(1)).await;
        assert_eq!(rig.settle(before, Verdict::Succeeded(None)).await, Settled::Fenced, "{}", rig.name);
        assert_eq!(rig.settle(after, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));
    }
}

/// serde-rs/json #82 and every queue whose parser has a depth limit: one deep job blocked the rest.
#[tokio::test]
async fn json_deeper_than_a_parser_allows_blocks_nothing() {
    for rig in rigs() {
        let deep = (0..1000).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let told = rig.tenure.enqueue_draft(Draft::raw("plain", &deep)).await.unwrap_err().to_string();
        assert!(told.contains("args") && told.contains("1000 levels deep") && told.contains("64"), "{told}");

        // Should one come in by another door, its attempt fails with a record and the next job runs.
        let smuggled = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
        let id = tenure::JobId::new(rig.clock.now(), 7);
        let job = tenure_core::NewJob {
            id,
            kind: tenure::Kind::new("plain").unwrap(),
            queue: tenure::QueueName::default(),
            args: Args::stored(smuggled.as_bytes()),
            priority: tenure::Priority::FIRST,
            due: tenure_core::Due::Now,
            terms: Arc::default(),
        };
        rig.store.enqueue(vec![job]).await.unwrap();
        let next = rig.tenure.enqueue(Plain { number: 5 }).await.unwrap().id();
        let waiting = rig.tenure.clone();
        Worker::new(&rig.tenure, ())
            .queue("default", 1)
            .job(|_: Run<()>, job: Plain| async move { Ok::<_, Failed>(job.number) })
            .run(async move { assert_eq!(waiting.wait_for::<Plain>(next).await.unwrap(), 5) })
            .await
            .unwrap();
        let job = rig.tenure.jobs().get(id).await.unwrap();
        assert_eq!(job.failure.unwrap().cause, Cause::Undecodable, "{}", rig.name);
    }
}
