//! Each failed attempt is one event in the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::spans::{Listener, Told};
use super::worker::{Gate, open_shop, polite};
use crate::common::{Plain, try_reserve};
use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{
    Cause, Chance, Ending, Failed, Failure, Job, Kinds, ManualClock, MemoryStore, QueueName, Reserve,
    RetryPolicy, Run, StateName, Tenure, Terms, Verdict, Want, Worker,
};
use tracing::Level;

#[derive(Serialize, Deserialize)]
enum Act {
    Err,
    ErrForGood,
    Panic,
    TimeOut,
    Snooze,
    Succeed,
}

impl Job for Act {
    const KIND: &'static str = "act";
    type Output = ();

    fn terms() -> Terms {
        let retry = Some(RetryPolicy { max_attempts: 2, ..RetryPolicy::default() });
        Terms { retry, timeout: Some(Duration::from_secs(10)), ..Terms::default() }
    }
}

async fn act(run: Run<()>, job: Act) -> Result<(), Failed> {
    match job {
        Act::Err => Err(Failed::retry("card reader busy")),
        Act::ErrForGood => Err(Failed::for_good("no such user")),
        Act::Panic => panic!("oh no"),
        Act::TimeOut => Ok(run.sleep(Duration::from_secs(60)).await?),
        Act::Snooze if run.job().delivery == 1 => Err(Failed::snooze(Duration::from_secs(1))),
        Act::Snooze | Act::Succeed => Ok(()),
    }
}

fn of_attempts(listener: &Listener) -> Vec<Told> {
    let events = listener.events().into_iter();
    events.filter(|told| matches!(told.level, Level::WARN | Level::ERROR)).collect()
}

#[tokio::test]
async fn a_retried_attempt_is_a_warning_and_the_last_one_an_error() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(act));
    let mut ids = Vec::new();
    for job in [Act::Err, Act::ErrForGood, Act::Panic, Act::TimeOut, Act::Snooze, Act::Succeed] {
        ids.push(lab.tenure().enqueue(job).await.unwrap().id().to_string());
    }
    for _ in 0..4 {
        lab.turn().await.unwrap();
        lab.advance(Duration::from_secs(3_600));
    }
    let told = of_attempts(&listener);
    let rows: Vec<_> = told
        .iter()
        .map(|event| {
            let job = ids.iter().position(|id| id == event.field("job.id")).unwrap();
            let next = !event.field("next_run").is_empty();
            (job, event.level, event.field("attempt"), event.field("cause"), event.field("error"), next)
        })
        .collect();
    let timed_out = "timed out after 10 s";
    let expected = [
        (0, Level::WARN, "1", "error", "card reader busy", true),
        (1, Level::ERROR, "1", "error", "no such user", false),
        (2, Level::WARN, "1", "panic", "oh no", true),
        (3, Level::WARN, "1", "timed_out", timed_out, true),
        (0, Level::ERROR, "2", "error", "card reader busy", false),
        (2, Level::ERROR, "2", "panic", "oh no", false),
        (3, Level::ERROR, "2", "timed_out", timed_out, false),
    ];
    assert_eq!(rows, expected);
    assert!(told.iter().all(|event| event.field("kind") == "act" && event.field("max_attempts") == "2"));
}

#[tokio::test]
async fn a_lost_job_is_one_warning_and_a_cancelled_one_none() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 2).job(polite), Arc::clone(&gate));
    let cancelled = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    shop.tenure.jobs().cancel(cancelled, Duration::from_secs(10), "page closed").await.unwrap();
    shop.until("it has stopped", async |_| shop.state(cancelled).await == StateName::Cancelled).await;

    let lost = shop.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    shop.clock.advance(Duration::from_secs(31));
    assert_eq!(try_reserve(&shop.tenure).await.len(), 1);
    assert_eq!(shop.closed().await.fenced, 1);
    let told = of_attempts(&listener);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].level, told[0].field("cause")), (Level::WARN, "lost"));
    assert_eq!((told[0].field("job.id"), told[0].field("attempt")), (lost.to_string().as_str(), "1"));
}

/// Claims the only job as a worker elsewhere does, and ends it.
async fn end_remotely(tenure: &Tenure, verdict: Verdict) -> Ending {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most: 1 };
    let holder = tenure.remote().draw_worker();
    let ask = Reserve { holder, ttl: Duration::from_secs(30), wants: vec![want], at_most: 1 };
    let (_, claimed) = tenure.remote().settle(vec![], Some(ask)).await.unwrap();
    let job = Arc::clone(&claimed.jobs[0]);
    let ending = |verdict| Ending { job: Arc::clone(&job), verdict };
    tenure.remote().settle(vec![ending(verdict.clone())], None).await.unwrap();
    ending(verdict)
}

/// The worker is a client of this program, which has the log that an operator reads.
#[tokio::test]
async fn a_worker_elsewhere_has_its_failed_attempts_logged_here_once() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let clock = ManualClock::new();
    let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(clock.clone()))), Chance::seeded(1));
    let failed = |text: &str| Failure { cause: Cause::Error, message: text.to_owned() };
    let id = tenure.enqueue(Act::Err).await.unwrap().id().to_string();
    end_remotely(&tenure, Verdict::Released).await;
    end_remotely(&tenure, Verdict::Retry { failure: failed("busy"), due: None }).await;
    clock.advance(Duration::from_secs(3_600));
    let last = end_remotely(&tenure, Verdict::Failed(failed("no such user"))).await;
    // Its answer was lost, and it says so again.
    tenure.remote().settle(vec![last], None).await.unwrap();
    let rows: Vec<_> = of_attempts(&listener)
        .iter()
        .map(|event| {
            assert_eq!((event.field("job.id"), event.field("kind")), (id.as_str(), "act"));
            (event.level, event.field("attempt").to_owned(), event.field("error").to_owned())
        })
        .collect();
    let row = |level, attempt: &str, error: &str| (level, attempt.to_owned(), error.to_owned());
    assert_eq!(rows, [row(Level::WARN, "1", "busy"), row(Level::ERROR, "2", "no such user")]);
}
