//! One-time and recurring items: what the third ancestor did with a table, a lease and a mover.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::when::{at, every};
use tenure::{
    CatchUp, ChangeOutcome, Clock, Failed, Faults, Job, JobId, Keep, Overlap, Retention, Run, StateName,
    TimerDraft, Worker,
};

use crate::common::fleet::fleet;
use crate::common::{LEASE, Plain, memory};
use crate::timers::seen::{HOUR, MINUTE, Report, SECOND, Seen, records, reporting, second};

/// T101: rescheduling and cancelling meet the due moment. Exactly one of both outcomes: either the wish was
/// granted, and the job does what was wished, or it was refused, because the job runs or has run.
#[tokio::test]
async fn a_wish_that_meets_the_due_moment_is_granted_or_refused_and_the_job_runs_once_or_never() {
    for early in 0..8 {
        let fleet = fleet();
        let runs = Arc::new(AtomicUsize::new(0));
        let host = fleet
            .start(1, Arc::clone(&runs), |worker: Worker<Arc<AtomicUsize>>| {
                worker.queue("default", 4).job(|run: Run<Arc<AtomicUsize>>, job: Plain| async move {
                    run.app().fetch_add(1, Ordering::SeqCst);
                    Ok(job.number)
                })
            })
            .await;
        let due = fleet.clock.now().after(SECOND * 5);
        let enqueue = async |number| host.tenure.enqueue(Plain { number }).at(due).await.unwrap().id();
        let (cancelled, moved) = (enqueue(1).await, enqueue(2).await);
        // From a little before the due moment to a little after it, in steps of a few turns of the runtime.
        fleet.pass(SECOND * 5 - Duration::from_millis(100)).await;
        fleet.clock.advance(Duration::from_millis(100));
        for _ in 0..early * 5 {
            tokio::task::yield_now().await;
        }
        let jobs = host.tenure.jobs();
        let is_cancelled = jobs.cancel(cancelled, SECOND, "not wanted").await.unwrap() == ChangeOutcome::Done;
        let is_moved = jobs.reschedule(moved, due.after(HOUR)).await.unwrap() == ChangeOutcome::Done;
        fleet.pass(SECOND * 10).await;
        let expected = usize::from(!is_cancelled) + usize::from(!is_moved);
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{early}: {is_cancelled}, {is_moved}");
        fleet.clock.advance(HOUR);
        fleet.pass(SECOND * 10).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1 + usize::from(!is_cancelled), "{early}");
        host.stop().await.1.unwrap();
    }
}

/// An answer that takes two seconds says in how long the next job is due: that counts from the question.
#[tokio::test]
async fn a_job_is_granted_at_its_instant_however_late_the_answers_of_the_store_are() {
    let fleet = fleet();
    let build = |worker: Worker<()>| {
        worker.queue("default", 4).poll(MINUTE).job(|_: Run<()>, job: Plain| async move { Ok(job.number) })
    };
    let host = fleet.start(1, (), build).await;
    let mut jobs = Vec::new();
    for number in 1..=4 {
        let due = fleet.clock.now().after(SECOND * 7 * u32::try_from(number).unwrap());
        jobs.push((due, host.tenure.enqueue(Plain { number }).at(due).await.unwrap().id()));
    }
    host.way.set(Faults { reply_takes: SECOND * 2, ..Faults::none(1) });
    fleet.pass(SECOND * 40).await;
    host.way.heal();
    for (due, id) in jobs {
        let started = fleet.store.job(id).await.unwrap().unwrap().started.unwrap();
        assert!(started.since(due) <= Duration::from_millis(500), "{:?} late", started.since(due));
    }
    host.stop().await.1.unwrap();
}

/// What is to be done once, ever: its end is the mark that it is done.
#[derive(Serialize, Deserialize)]
struct Migrate {
    release: u32,
}

impl Job for Migrate {
    const KIND: &'static str = "migrate";
    type Output = String;
}

/// What the bodies of the test saw.
#[derive(Default)]
struct Bodies {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

async fn migrate(run: Run<Arc<Bodies>>, job: Migrate) -> Result<String, Failed> {
    run.app().begun.fetch_add(1, Ordering::SeqCst);
    run.sleep(SECOND * 10).await?;
    run.app().ended.fetch_add(1, Ordering::SeqCst);
    Ok(format!("release {}", job.release))
}

/// The id of the job says what is done once: whoever names it means the same job, now and for ever.
async fn do_once(tenure: &tenure::Tenure, release: u32) -> Result<String, tenure::Error> {
    let id = JobId::from_bytes(*format!("migration {release:06}").as_bytes().first_chunk().unwrap());
    let job = tenure.enqueue(Migrate { release }).id(id).retain(Retention::always(Keep::Forever));
    tenure.wait_for::<Migrate>(job.await?.id()).await
}

/// T104: eight instances start and want it done. The body runs once; it dies with its host, and another one runs it;
/// whoever comes later finds it done. Its end and its result are written by one statement.
#[tokio::test]
async fn of_eight_who_want_it_done_once_one_does_it_and_all_hear_of_it() {
    let (fleet, bodies) = (fleet(), Arc::new(Bodies::default()));
    let (mut hosts, mut waiting) = (Vec::new(), Vec::new());
    for seed in 1..=8 {
        let host =
            fleet.start(seed, Arc::clone(&bodies), |worker| worker.queue("default", 2).job(migrate)).await;
        let tenure = host.tenure.clone();
        waiting.push(tokio::spawn(async move { do_once(&tenure, 7).await }));
        hosts.push(host);
    }
    fleet.pass(SECOND * 5).await;
    assert_eq!(bodies.begun.load(Ordering::SeqCst), 1);
    // The one who does it dies in the middle.
    let jobs = fleet.handle(9).await.0;
    let page = jobs.jobs().page(tenure::PageAsk::default()).await.unwrap();
    let tenure::State::Running { holder, .. } = page.jobs[0].state else { panic!("{:?}", page.jobs) };
    let living = jobs.hosts().await.unwrap();
    let name = &living.iter().find(|host| host.id == holder).unwrap().name;
    let number: usize = name.rsplit(' ').next().unwrap().parse().unwrap();
    hosts[number - 1].kill();
    waiting.remove(number - 1).abort();
    fleet.pass(LEASE + SECOND * 15).await;
    assert_eq!((bodies.begun.load(Ordering::SeqCst), bodies.ended.load(Ordering::SeqCst)), (2, 1));
    for each in waiting {
        assert_eq!(each.await.unwrap().unwrap(), "release 7");
    }
    // A year later.
    fleet.clock.advance(Duration::from_secs(365 * 86_400));
    jobs.store().tend().await.unwrap();
    assert_eq!(do_once(&jobs, 7).await.unwrap(), "release 7");
    assert_eq!(bodies.begun.load(Ordering::SeqCst), 2);
    hosts.iter().for_each(crate::common::fleet::Instance::kill);
}

/// T105: something every minute, from no state at all. It does not drift though it is looked at late and its runs take
/// long, and a body that fails neither ends nor shifts it.
#[tokio::test]
async fn something_that_is_done_every_minute_does_not_drift_and_survives_its_errors() {
    let fleet = fleet();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    type Slots = Arc<std::sync::Mutex<Vec<(u64, u32)>>>;
    let host = fleet
        .start(1, Arc::clone(&seen), |worker: Worker<Slots>| {
            worker
                .queue("default", 1)
                .job(|run: Run<Slots>, _: Report| async move {
                    let slot = crate::timers::seen::seconds_of(run.slot().unwrap().at);
                    run.app().lock().unwrap().push((slot, run.attempt()));
                    run.sleep(SECOND * 7).await?;
                    if slot == 120 { Err(Failed::for_good("a bad day")) } else { Ok(()) }
                })
                .timer("every-minute", every(MINUTE), Report::default)
        })
        .await;
    for _ in 0..60 {
        fleet.clock.advance(SECOND * 7);
        fleet.pass(Duration::from_millis(100)).await;
    }
    let slots = seen.lock().unwrap().clone();
    assert_eq!(slots, [60, 120, 180, 240, 300, 360, 420].map(|slot| (slot, 1)));
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_one_time_timer_brings_its_jobs_and_is_over() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = fleet.start(1, seen.clone(), reporting).await;
    let twice = TimerDraft::new("twice", at([second(90), second(30)]), &Report::default());
    host.tenure.timers().set(twice).await.unwrap();
    fleet.pass(MINUTE * 2).await;
    assert_eq!(seen.slots(), [30, 90]);
    assert_eq!(host.tenure.timers().get("twice").await.unwrap().next, None);
    let why = host.tenure.timers().explain("twice").await.unwrap();
    assert_eq!(why[0].to_string(), "it has no more runs");
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_timer_that_would_never_fire_is_refused_and_one_that_is_over_may_be_set_again() {
    let rig = memory();
    let timers = rig.tenure.timers();
    rig.clock.advance(MINUTE * 5);
    let soon = || TimerDraft::new("soon", at([second(330)]), &Report::default());
    timers.set(soon()).await.unwrap();
    rig.clock.advance(MINUTE * 5);
    rig.store.fire(10).await.unwrap();
    assert_eq!(timers.set(soon()).await.unwrap(), tenure::TimerSet::Same);
    for past in [
        TimerDraft::new("past", at([second(330)]), &Report::default()),
        TimerDraft::new("soon", every(MINUTE).until(second(330)), &Report::default()),
    ] {
        let refused = timers.set(past).await.unwrap_err();
        assert!(refused.to_string().starts_with("schedule: "), "{refused}");
    }
}

/// T103 for timers: one whose jobs always fail, and one whose queue nobody serves, hold up no other.
#[tokio::test]
async fn a_timer_that_fails_holds_up_no_other() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = fleet.start(1, seen.clone(), reporting).await;
    let timers = host.tenure.timers();
    timers
        .set(TimerDraft::raw("a-bad", "every 10s", "report", &serde_json::json!("not a report")))
        .await
        .unwrap();
    timers.set(TimerDraft::new("b-far", "every 10s", &Report::default()).queue("far")).await.unwrap();
    timers.set(TimerDraft::new("c-good", "every 10s", &Report::default())).await.unwrap();
    fleet.pass(SECOND * 35).await;
    assert_eq!(seen.slots(), [10, 20, 30]);
    let all = records(&host.tenure).await;
    assert_eq!(all.iter().filter(|record| record.2 == "ran").count(), 7, "{all:?}");
    assert_eq!(all.iter().filter(|record| record.2 == "busy").count(), 2, "{all:?}");
    host.stop().await.1.unwrap();
}

/// A recurring item that was set by a program which is gone.
#[tokio::test]
async fn a_recurring_item_outlives_the_program_that_set_it() {
    let rig = memory();
    let timer = TimerDraft::new("remind-7", every(HOUR).times(3), &Report { number: 7 });
    let timer = timer.overlap(Overlap::QueueAll).catch_up(CatchUp::All { most: 10 });
    rig.tenure.timers().set(timer).await.unwrap();
    rig.clock.advance(HOUR * 5);
    rig.store.fire(10).await.unwrap();
    let counts = rig.tenure.counts().await.unwrap();
    let jobs: u64 = counts
        .iter()
        .filter(|count| matches!(count.state, StateName::Queued | StateName::Blocked))
        .map(|count| count.jobs)
        .sum();
    assert_eq!(jobs, 3);
}
