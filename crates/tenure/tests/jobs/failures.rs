//! Each failed attempt is one event in the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::spans::{Listener, Told};
use super::worker::{Gate, open_shop, polite};
use crate::common::{Plain, try_reserve};
use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Failed, Job, RetryPolicy, Run, StateName, Terms, Worker};
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
