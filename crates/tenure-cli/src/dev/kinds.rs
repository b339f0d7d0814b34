//! The kinds of jobs that `tenure dev` can do.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::when::cron;
use tenure::{Backoff, Chance, Failed, Job, RetryPolicy, Run, Tenure, Terms, Worker, seconds};

/// Queues of the demo and how many of their jobs run at once.
pub(crate) const QUEUES: [(&str, usize); 2] = [("default", 8), ("stars", 2)];
/// Kinds of the demo.
pub(crate) const KINDS: [&str; 5] = [Echo::KIND, Sleep::KIND, Fail::KIND, Flaky::KIND, BuildStar::KIND];
/// A timer of the demo, and when its jobs come.
pub(crate) const TIMER: (&str, &str) = ("pulse", "*/10 * * * * *");
/// Less than the default, so that what a killed run leaves behind goes on soon after a restart.
const LEASE: Duration = Duration::from_secs(10);
/// Together with a second that the worker adds, and its bound, a stop takes less than five seconds.
const FINISH_WITHIN: Duration = Duration::from_millis(2_500);
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Says what it was told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Echo {
    pub(crate) text: String,
}

/// Takes its time.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sleep {
    pub(crate) seconds: f64,
}

/// Cannot be done.
#[derive(Serialize, Deserialize)]
pub(crate) struct Fail {
    pub(crate) reason: String,
}

/// Fails at first.
#[derive(Serialize, Deserialize)]
pub(crate) struct Flaky {
    pub(crate) failures: u32,
}

/// Builds a star, which takes a while and leaves something behind.
#[derive(Serialize, Deserialize)]
pub(crate) struct BuildStar {
    pub(crate) name: String,
}

/// A star.
#[derive(Serialize, Deserialize)]
pub(crate) struct Star {
    number: u64,
    name: String,
    class: String,
    suns: f64,
}

impl Job for Echo {
    const KIND: &'static str = "echo";
    type Output = String;
}

impl Job for Sleep {
    const KIND: &'static str = "sleep";
    type Output = ();
}

impl Job for Fail {
    const KIND: &'static str = "fail";
    type Output = ();
}

impl Job for Flaky {
    const KIND: &'static str = "flaky";
    type Output = String;

    fn terms() -> Terms {
        let waits = [1, 2, 5].map(Duration::from_secs).to_vec();
        let retry = RetryPolicy { backoff: Backoff::Steps(waits), max_attempts: 5, ..RetryPolicy::default() };
        Terms { retry: Some(retry), ..Terms::default() }
    }
}

impl Job for BuildStar {
    const KIND: &'static str = "build_star";
    const QUEUE: &'static str = "stars";
    type Output = Star;
}

/// A worker for all kinds of the demo.
pub(crate) fn worker(tenure: &Tenure) -> Worker<()> {
    QUEUES
        .into_iter()
        .fold(Worker::new(tenure, ()), |worker, (queue, slots)| worker.queue(queue, slots))
        .job(echo)
        .job(sleep)
        .job(fail)
        .job(flaky)
        .job(build_star)
        .timer(TIMER.0, cron(TIMER.1), || Echo { text: "a beat".to_owned() })
        .lease(LEASE)
        .finish_within(FINISH_WITHIN)
        .stop_grace(STOP_GRACE)
        .name(&format!("tenure dev (pid {})", std::process::id()))
}

async fn echo(_run: Run<()>, job: Echo) -> Result<String, Failed> {
    Ok(job.text)
}

async fn sleep(run: Run<()>, job: Sleep) -> Result<(), Failed> {
    const STEPS: u32 = 4;
    // What is wrong with the args stays wrong: no attempt will help.
    let whole = seconds("seconds", job.seconds).map_err(Failed::for_good)?;
    for step in 1..=STEPS {
        run.sleep(whole / STEPS).await?;
        run.progress(f64::from(step) / f64::from(STEPS), "sleeping")?;
        run.log(&format!("slept for {:.1} s", (whole / STEPS * step).as_secs_f64()));
    }
    Ok(())
}

async fn fail(_run: Run<()>, job: Fail) -> Result<(), Failed> {
    Err(Failed::for_good(job.reason))
}

async fn flaky(run: Run<()>, job: Flaky) -> Result<String, Failed> {
    let attempt = run.attempt();
    if attempt <= job.failures {
        return Err(Failed::retry(format_args!("no answer from upstream ({attempt} of {})", job.failures)));
    }
    Ok(format!("an answer, at attempt {attempt}"))
}

async fn build_star(run: Run<()>, job: BuildStar) -> Result<Star, Failed> {
    const STEPS: [&str; 5] =
        ["gathering gas", "letting it fall", "heating the core", "igniting hydrogen", "settling down"];
    // The place in line is unique in its store, and an attempt that is repeated builds the same star.
    let number = run.job().seq;
    let chance = Chance::seeded(number);
    for (done, step) in (1_u32..).zip(STEPS) {
        run.log(step);
        run.sleep(Duration::from_millis(150 + chance.below(300))).await?;
        run.progress(f64::from(done) / 5.0, step)?;
    }
    run.place(&format!("/stars/{number}"))?;
    Ok(star(number, job.name, &chance))
}

fn star(number: u64, name: String, chance: &Chance) -> Star {
    const CLASSES: [(&str, f64); 5] = [("M", 0.3), ("K", 0.7), ("G", 1.0), ("F", 1.3), ("A", 2.0)];
    let at = usize::try_from(chance.below(5)).unwrap_or(0);
    let (class, suns) = CLASSES[at];
    Star { number, name, class: class.to_owned(), suns }
}
