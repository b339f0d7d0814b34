//! How do I run something at certain times?
//!
//! A worker declares two schedules. A third one is set at run time, as an operator or a customer would. The example
//! then lists past and future runs and asks why a schedule does not fire.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::when::{cron, every};
use tenure::{
    CalendarAsk, CatchUp, Clock, Error, Failed, Fate, Job, JobId, Keep, OpenOptions, Overlap, Retention, Run,
    SlotRecord, Slots, SystemClock, Tenure, TimerDraft, TimerOutcome, Worker,
};
use tokio::sync::oneshot;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    month: u32,
}

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = ();
}

async fn report(run: Run<()>, job: Report) -> Result<(), Failed> {
    let Some(slot) = run.slot() else { return Err(Failed::for_good("this comes from no timer")) };
    if let Some(late) = run.lateness().filter(|_| run.is_past_due()) {
        run.log(&format!("{} is {} s late", slot.at, late.as_secs()));
    }
    println!("{}: report of month {}", slot.timer, job.month);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = OpenOptions::new().revision(7).open("memory:").await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = tokio::spawn(worker(&tenure).run(stopped));
    until_it_ran(&tenure, "steadily").await?;

    let slots = tenure.timers().next("nightly", 3).await?;
    println!("nightly comes {} times, first at {}", slots.len(), slots[0].at);
    set_at_run_time(&tenure).await?;
    look_back(&tenure).await?;
    once_ever(&tenure).await?;

    drop(stop);
    worker.await.map_err(|_| Error::Settings("the worker panicked".into()))??;
    Ok(())
}

fn worker(tenure: &Tenure) -> Worker<()> {
    let steadily = TimerDraft::new("steadily", every(Duration::from_secs(1)), &Report { month: 5 })
        .overlap(Overlap::QueueOne)
        .catch_up(CatchUp::All { most: 3 })
        .max_lateness(Duration::from_secs(60))
        .job(|job| job.attempts(3).tag("accounting"));
    Worker::new(tenure, ())
        .queue("default", 8)
        .job(report)
        .job(migrate)
        .timer("nightly", cron("0 0 2 * * *").zone("Europe/Copenhagen"), Report::default)
        .timer_with(steadily)
}

/// Timers are rows of the store: any program may set one, and the workers that run fire it.
async fn set_at_run_time(tenure: &Tenure) -> Result<(), Error> {
    let timers = tenure.timers();
    let weekly = "weekly mon-fri 09:30 in Europe/Berlin";
    let set = timers.set(TimerDraft::new("reminder", weekly, &Report { month: 1 })).await?;
    println!("reminder: {set:?}");

    timers.pause("reminder", "the customer is on holiday").await?;
    for why in timers.explain("reminder").await? {
        println!("reminder: {why}");
    }
    match timers.trigger("reminder").args(&Report { month: 12 }).await? {
        TimerOutcome::Triggered(job) => drop(tenure.wait(job).await?),
        TimerOutcome::Busy(job) => println!("not now: job {job} has not ended"),
        TimerOutcome::IdTaken(job) => println!("job {job} is another one"),
        TimerOutcome::NotFound => println!("there is no such timer"),
        TimerOutcome::Done | TimerOutcome::Backfilled { .. } => {}
    }
    timers.remove("reminder").await?;
    Ok(())
}

/// What was missed before the timer was there can be brought, after a look at what that would be.
async fn look_back(tenure: &Tenure) -> Result<(), Error> {
    let timers = tenure.timers();
    let (from, to) = ("2026-01-01T00:00:00Z".parse()?, "2026-01-04T00:00:00Z".parse()?);
    let mut backfill = timers.backfill("nightly", from, to).await?;
    println!("a backfill would enqueue {} jobs", backfill.slots(100).await?.len());
    while let Some(step) = backfill.step().await? {
        println!("{} jobs so far", step.so_far);
    }

    for record in timers.last_slots("nightly", 2).await? {
        let became = match record.fate {
            Fate::Ran { .. } => "has its job".to_owned(),
            Fate::Coalesced { into } => format!("has the job of the slot {into}"),
            Fate::Skipped { why } => format!("was skipped: {why}"),
        };
        println!("slot {} {became}", record.last);
    }

    let march = CalendarAsk::between("2030-03-30T00:00:00Z".parse()?, "2030-04-02T00:00:00Z".parse()?);
    for coming in timers.calendar(march).await?.coming {
        match coming.slots {
            Slots::Each(slots) => {
                for slot in slots {
                    println!("{} at {}, clocks: {:?}", coming.timer, slot.at, slot.change);
                }
            }
            Slots::Groups(groups) => println!("{} very often: {} groups", coming.timer, groups.len()),
        }
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Migrate {
    release: u32,
}

impl Job for Migrate {
    const KIND: &'static str = "migrate";
    type Output = String;
}

async fn migrate(_run: Run<()>, job: Migrate) -> Result<String, Failed> {
    Ok(format!("migrated to release {}", job.release))
}

/// Every instance says this when it starts. One of them does it, once and for ever, and all hear what came of it.
async fn once_ever(tenure: &Tenure) -> Result<(), Error> {
    let id: JobId = "5f0c1f1e-0b62-4f0e-9d65-0d1c6a5e0007".parse()?;
    for _ in 0..2 {
        let job = tenure.enqueue(Migrate { release: 7 }).id(id).retain(Retention::always(Keep::Forever));
        println!("{}", tenure.wait_for::<Migrate>(job.await?.id()).await?);
    }
    Ok(())
}

/// Waits until a slot of the timer has its job, and that has ended.
async fn until_it_ran(tenure: &Tenure, name: &str) -> Result<(), Error> {
    for _ in 0..1_000 {
        let last = tenure.timers().last_slots(name, 1).await?;
        if let Some(job) = last.first().and_then(SlotRecord::job) {
            return tenure.wait(job).await.map(drop);
        }
        SystemClock.sleep(Duration::from_millis(10)).await;
    }
    Err(Error::Settings("no slot came".into()))
}
