//! From enqueueing to the start of the handler, at a steady pace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure::{Failed, Run, Worker};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::figure::{Figure, rounded, share};
use super::ground::Ground;
use super::meter::{Meter, bounded, now, rest};
use super::noop::NoOp;
use super::sizes::Sizes;
use crate::exit::Failure;

const NAME: &str = "latency";
const APART: Duration = Duration::from_millis(10);
const SLOTS: usize = 16;

struct Starts {
    began: Instant,
    waits_ms: Mutex<Vec<f64>>,
    wanted: usize,
    all: Notify,
}

/// How long a job waits for its handler when a hundred come in a second.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let figure = bounded(NAME, paced(ground, sizes.paced_jobs)).await?;
    Ok(vec![figure.with("paced_jobs_per_s", 100).with_all(&facts)])
}

async fn paced(ground: &Ground, jobs: u32) -> Result<Figure, Failure> {
    let tenure = ground.open(None).await?;
    let wanted = usize::try_from(jobs).unwrap_or(usize::MAX);
    let starts = Arc::new(Starts { began: now(), waits_ms: Mutex::default(), wanted, all: Notify::new() });
    let all = Arc::clone(&starts);
    let worker = Worker::new(&tenure, Arc::clone(&starts)).queue("default", SLOTS).job(note);
    let worker = worker.run(async move { all.all.notified().await });
    let meter = Meter::start();
    let sent = async {
        let mut calls = JoinSet::new();
        for number in 1..=jobs {
            rest((starts.began + APART * number).saturating_duration_since(now())).await;
            let (tenure, began) = (tenure.clone(), starts.began);
            // Each by itself: a slow commit does not hold up the next one.
            calls.spawn(async move {
                let sent_us = u64::try_from(now().duration_since(began).as_micros()).unwrap_or(u64::MAX);
                tenure.enqueue(NoOp::sent(sent_us)).await.map(drop)
            });
        }
        while let Some(call) = calls.join_next().await {
            call.map_err(|end| Failure::Measurement { figure: NAME, why: end.to_string() })??;
        }
        Ok::<(), Failure>(())
    };
    tokio::try_join!(sent, async { Ok(worker.await?) })?;
    let spent = meter.spent();
    let mut waits = std::mem::take(&mut *starts.waits_ms.lock().unwrap_or_else(PoisonError::into_inner));
    tenure.close().await?;
    let mut wait = |part| rounded(share(&mut waits, part));
    let figure = Figure::bare(NAME, wanted).with("p50_ms", wait(0.5)).with("p99_ms", wait(0.99));
    Ok(figure.with("max_ms", wait(1.0)).with("cpu_percent", rounded(spent.cpu_us / spent.seconds / 1e4)))
}

async fn note(run: Run<Arc<Starts>>, job: NoOp) -> Result<(), Failed> {
    let starts = run.app();
    let since = now().duration_since(starts.began).saturating_sub(Duration::from_micros(job.sent_us));
    let mut waits = starts.waits_ms.lock().unwrap_or_else(PoisonError::into_inner);
    waits.push(since.as_secs_f64() * 1e3);
    if waits.len() == starts.wanted {
        starts.all.notify_one();
    }
    Ok(())
}
