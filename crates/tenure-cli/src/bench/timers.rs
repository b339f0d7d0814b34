//! What many timers cost while none is ripe, and how late slots are.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure::{Clock, Failed, Run, SystemClock, Tenure, TimerDraft, Timestamp, Worker, when, when::When};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::figure::{Figure, rounded, share};
use super::ground::Ground;
use super::meter::{Meter, bounded, rest};
use super::noop::NoOp;
use super::sizes::Sizes;
use crate::exit::Failure;

const NAME: &str = "timers";
/// Timers that are being set at the same time.
const AT_ONCE: usize = 500;
/// Timers with a slot in every second.
const EACH_SECOND: usize = 100;
const SLOTS: usize = 500;
const SECOND: Duration = Duration::from_secs(1);
/// When timers are ripe of which none is to fire.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// What handlers saw of their slots.
#[derive(Default)]
struct Seen {
    late: Mutex<Vec<Late>>,
    wanted: usize,
    all: Notify,
}

/// How late one slot was, in milliseconds.
#[derive(Clone, Copy)]
struct Late {
    /// When its job was there.
    fired: f64,
    /// When its handler began.
    began: f64,
}

/// Slots in every second; then many timers of which none is ripe; then many slots at the same instant.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let paced = bounded(NAME, every_second(ground, sizes)).await?;
    let [idle, together] = bounded(NAME, many(ground, sizes)).await?;
    Ok([paced, idle, together].into_iter().map(|figure| figure.with_all(&facts)).collect())
}

async fn every_second(ground: &Ground, sizes: &Sizes) -> Result<Figure, Failure> {
    let tenure = ground.open(None).await?;
    let seconds = usize::try_from(sizes.timer_seconds).unwrap_or(1);
    let seen = Arc::new(Seen { wanted: EACH_SECOND * seconds, ..Seen::default() });
    set(&tenure, "each-second", EACH_SECOND, |_| when::every(SECOND)).await?;
    let meter = Meter::start();
    work_until_seen(&tenure, &seen).await?;
    let spent = meter.spent();
    tenure.close().await?;
    let figure = lateness(Figure::bare("timers_each_second", seen.wanted), &seen);
    Ok(figure.with("timers", EACH_SECOND).with("cpu_percent", rounded(spent.cpu_us / spent.seconds / 1e4)))
}

async fn many(ground: &Ground, sizes: &Sizes) -> Result<[Figure; 2], Failure> {
    let tenure = ground.open(None).await?;
    set(&tenure, "far", sizes.timers, |_| when::at([SystemClock.now().after(FAR)])).await?;
    let seen = Arc::new(Seen { wanted: sizes.timers_together, ..Seen::default() });
    let watched = async {
        // What begins with a worker is not what it costs while nothing happens.
        rest(sizes.idle / 10).await;
        let meter = Meter::start();
        rest(sizes.idle).await;
        let idle = meter.spent();
        let instant = SystemClock.now().after(sizes.timers_lead);
        set(&tenure, "together", sizes.timers_together, |_| when::at([instant])).await?;
        if SystemClock.now() >= instant {
            let why = format!("{} timers were not set in {:?}", sizes.timers_together, sizes.timers_lead);
            return Err(Failure::Measurement { figure: NAME, why });
        }
        Ok(idle)
    };
    let (idle, ()) = tokio::try_join!(watched, work_until_seen(&tenure, &seen))?;
    tenure.close().await?;
    let percent = rounded(idle.cpu_us / idle.seconds / 1e4);
    let idle = Figure::bare("timers_idle", 0).with("timers", sizes.timers).with("cpu_percent", percent);
    let together = lateness(Figure::bare("timers_together", seen.wanted), &seen);
    Ok([idle, together.with("timers", sizes.timers + sizes.timers_together)])
}

/// Sets so many timers, many at a time.
async fn set(
    tenure: &Tenure,
    name: &str,
    timers: usize,
    when: impl Fn(usize) -> When,
) -> Result<(), Failure> {
    let mut calls = JoinSet::new();
    for number in 0..timers {
        if calls.len() >= AT_ONCE {
            join(&mut calls).await?;
        }
        let timer = TimerDraft::new(&format!("{name}-{number}"), when(number), &NoOp::sent(0));
        let tenure = tenure.clone();
        calls.spawn(async move { tenure.timers().set(timer).await.map(drop) });
    }
    while !calls.is_empty() {
        join(&mut calls).await?;
    }
    Ok(())
}

async fn join(calls: &mut JoinSet<Result<(), tenure::Error>>) -> Result<(), Failure> {
    match calls.join_next().await {
        Some(Ok(set)) => Ok(set?),
        Some(Err(end)) => Err(Failure::Measurement { figure: NAME, why: end.to_string() }),
        None => Ok(()),
    }
}

/// Lets a worker run until the handlers have seen all the slots that are wanted.
async fn work_until_seen(tenure: &Tenure, seen: &Arc<Seen>) -> Result<(), Failure> {
    let all = Arc::clone(seen);
    let worker = Worker::new(tenure, Arc::clone(seen)).queue("default", SLOTS).job(note);
    worker.run(async move { all.all.notified().await }).await?;
    Ok(())
}

async fn note(run: Run<Arc<Seen>>, _job: NoOp) -> Result<(), Failed> {
    let now = SystemClock.now();
    let Some(slot) = run.slot() else { return Ok(()) };
    let millis = |instant: Timestamp| instant.since(slot.at).as_secs_f64() * 1e3;
    let late = Late { fired: millis(slot.fired), began: millis(now) };
    let mut all = run.app().late.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(late);
    if all.len() == run.app().wanted {
        run.app().all.notify_one();
    }
    Ok(())
}

/// Says how late the slots were: until the job was there, and until its handler began.
fn lateness(figure: Figure, seen: &Seen) -> Figure {
    let late = std::mem::take(&mut *seen.late.lock().unwrap_or_else(PoisonError::into_inner));
    let mut fired: Vec<f64> = late.iter().map(|late| late.fired).collect();
    let mut began: Vec<f64> = late.iter().map(|late| late.began).collect();
    let of = |values: &mut Vec<f64>, part| rounded(share(values, part));
    figure
        .with("fired_p50_ms", of(&mut fired, 0.5))
        .with("fired_p99_ms", of(&mut fired, 0.99))
        .with("fired_max_ms", of(&mut fired, 1.0))
        .with("p50_ms", of(&mut began, 0.5))
        .with("p99_ms", of(&mut began, 0.99))
        .with("max_ms", of(&mut began, 1.0))
}
