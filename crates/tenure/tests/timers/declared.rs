//! Timers that workers declare.

use tenure::when::{at, cron, every};
use tenure::{
    Chance, Error, Failed, MemoryStore, OpenOptions, Origin, Run, SystemClock, Tenure, TimerDraft, TimerSet,
    TimerWhy, Worker,
};

use crate::common::fleet::fleet;
use crate::common::{Plain, memory, settle_down};
use crate::timers::seen::{MINUTE, Report, SECOND, Seen, begin, records, report, reporting};

#[tokio::test]
async fn a_declared_timer_fires_and_its_handler_is_told_the_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let host = fleet
        .start(1, seen.clone(), |worker| {
            reporting(worker).timer("minutely", cron("0 * * * * *"), || Report { number: 7 })
        })
        .await;
    fleet.pass(MINUTE * 3 + SECOND).await;
    assert_eq!(seen.slots(), [60, 120, 180]);
    for told in seen.told() {
        assert!(told.late < SECOND && !told.past_due, "{told:?}");
        assert_eq!((told.origin, told.attempt, told.number), (Origin::Schedule, 1, 7));
    }
    assert_eq!(records(&tenure).await.len(), 3);
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_job_that_comes_from_no_timer_has_no_slot() {
    let mut lab = tenure::testing::Lab::new(|tenure| {
        Worker::new(tenure, ()).queue("default", 1).job(|run: Run<()>, job: Plain| async move {
            assert_eq!(run.slot(), None);
            Ok::<_, Failed>(job.number)
        })
    });
    lab.tenure().enqueue(Plain { number: 1 }).await.unwrap();
    assert_eq!(lab.drain().await.unwrap()[0].failure, None);
}

/// What is wrong with a worker's timers, in the words of its refusal to start.
async fn refusal(declare: impl FnOnce(Worker<Seen>) -> Worker<Seen>) -> String {
    let worker = reporting(Worker::new(&memory().tenure, Seen::default()));
    let refused = declare(worker).run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_) | Error::Settings(_)), "{refused:?}");
    refused.to_string()
}

#[tokio::test]
async fn a_bad_declaration_keeps_the_worker_from_starting_and_names_field_and_place() {
    let told = refusal(|worker| worker.timer("nightly", cron("0 0 25 * * *"), Report::default)).await;
    assert!(told.starts_with("timer nightly: schedule.hour: ") && told.contains("column 5"), "{told}");
    let with = |say: fn(TimerDraft) -> TimerDraft| {
        refusal(move |worker| {
            worker.timer_with(say(TimerDraft::new("nightly", cron("0 0 2 * * *"), &Report::default())))
        })
    };
    for (told, begins) in [
        (with(|timer| timer.priority(1_000)).await, "timer nightly: job.priority: 1000"),
        (with(|timer| timer.queue("no queue\n")).await, "timer nightly: job.queue: "),
        (with(|timer| timer.job(|job| job.unique_key("one"))).await, "timer nightly: job.unique: "),
        (
            with(|timer| timer.job(|job| job.after(std::time::Duration::from_secs(1)))).await,
            "timer nightly: job.due: ",
        ),
        (with(|timer| timer.job(|job| job.ordered("a"))).await, "timer nightly: job.ordering_key: "),
        (
            with(|timer| timer.jitter(std::time::Duration::from_secs(90_000))).await,
            "timer nightly: schedule.jitter: ",
        ),
        (with(|timer| timer.max_lateness(std::time::Duration::MAX)).await, "timer nightly: max_lateness: "),
        (with(|timer| timer.revision(u64::MAX)).await, "timer nightly: revision: "),
    ] {
        assert!(told.starts_with(begins), "{told}");
    }
    let zone = cron("0 0 2 * * *").zone("Europe/Kopenhagen");
    let told = refusal(|worker| worker.timer("nightly", zone, Report::default)).await;
    assert!(told.contains("timer nightly: schedule.zone") && told.contains("Kopenhagen"), "{told}");
    let told = refusal(|worker| worker.timer("", every(MINUTE), Report::default)).await;
    assert!(told.starts_with("timer: "), "{told}");
    let never = at(["2026-01-01T00:00:00Z".parse().unwrap()]).times(0);
    assert!(refusal(|worker| worker.timer("once", never, Report::default)).await.contains("most_runs"));
}

#[tokio::test]
async fn a_timer_whose_jobs_nobody_here_runs_is_refused_unless_it_says_so() {
    let plain = || TimerDraft::new("plain", every(MINUTE), &Plain { number: 1 });
    let told = refusal(|worker| worker.timer_with(plain())).await;
    assert!(
        told.contains("timer plain") && told.contains("does not handle") && told.contains("kind plain"),
        "{told}"
    );
    let told = refusal(|worker| {
        worker.timer_with(TimerDraft::new("far", every(MINUTE), &Report::default()).queue("far"))
    })
    .await;
    assert!(told.contains("timer far") && told.contains("queue far"), "{told}");
    let twice = refusal(|worker| {
        worker.timer("a", every(MINUTE), Report::default).timer("a", every(SECOND), Report::default)
    })
    .await;
    assert_eq!(twice, "timer: a, twice; expected each timer once");

    let (fleet, seen) = (fleet(), Seen::default());
    let host = fleet.start(1, seen, |worker| worker.timer_with(plain().runs_elsewhere())).await;
    fleet.pass(MINUTE + SECOND).await;
    let tenure = fleet.handle(9).await.0;
    assert_eq!(records(&tenure).await, [(60, 60, "ran")], "a worker without a queue fires as well");
    let why = tenure.timers().explain("plain").await.unwrap();
    assert!(matches!(why.last(), Some(TimerWhy::Unserved { .. })), "{why:?}");
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_program_that_only_enqueues_fires_nothing_and_explain_says_so() {
    let rig = memory();
    let timer = TimerDraft::new("minutely", every(MINUTE), &Report::default());
    assert_eq!(rig.tenure.timers().set(timer).await.unwrap(), TimerSet::New);
    rig.clock.advance(MINUTE * 5);
    settle_down().await;
    assert_eq!(records(&rig.tenure).await, []);
    let why: Vec<String> =
        rig.tenure.timers().explain("minutely").await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        why,
        [
            "no worker or server is running schedules",
            "its run 2026-01-01T00:01:00.000000Z has been overdue for 240 s: no worker or server is running schedules",
        ]
    );
}

/// A program in one of its versions, with a timer that each version has otherwise.
fn version(revision: u64, every_seconds: u64) -> impl FnOnce(Worker<Seen>) -> Worker<Seen> {
    move |worker| {
        let timer = TimerDraft::new(
            "steady",
            every(std::time::Duration::from_secs(every_seconds)),
            &Report::default(),
        );
        reporting(worker).timer_with(timer.revision(revision))
    }
}

#[tokio::test]
async fn a_restart_changes_nothing_and_a_new_version_takes_effect_without_losing_or_doubling_a_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let first = fleet.start(1, seen.clone(), version(1, 20)).await;
    fleet.pass(SECOND * 50).await;
    first.stop().await.1.unwrap();
    let again = fleet.start(2, seen.clone(), version(1, 20)).await;
    fleet.pass(SECOND * 25).await;
    assert_eq!(tenure.timers().get("steady").await.unwrap().version, 1);

    let newer = fleet.start(3, seen.clone(), version(2, 30)).await;
    fleet.pass(SECOND * 50).await;
    again.stop().await.1.unwrap();
    // One host of the older version crashes and is started again while the newer is there already.
    let older = fleet.start(4, seen.clone(), version(1, 20)).await;
    fleet.pass(SECOND * 60).await;
    let timer = tenure.timers().get("steady").await.unwrap();
    assert_eq!((timer.version, timer.agreed.revision), (2, 2));
    let slots: Vec<u64> = records(&tenure).await.iter().map(|record| record.0).collect();
    assert_eq!(slots, [20, 40, 60, 90, 120, 150, 180]);
    assert_eq!(seen.slots(), slots);
    newer.stop().await.1.unwrap();
    older.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_fleet_that_starts_brings_one_job_more() {
    let (fleet, seen) = (fleet(), Seen::default());
    let declare = |worker: Worker<Seen>| {
        let timer = TimerDraft::new("hourly", cron("0 0 * * * *"), &Report::default());
        reporting(worker).timer_with(timer.run_on_start())
    };
    let mut hosts = Vec::new();
    for seed in 1..=3 {
        hosts.push(fleet.start(seed, seen.clone(), declare).await);
    }
    fleet.pass(SECOND * 5).await;
    let told = seen.told();
    assert_eq!(told.iter().map(|told| told.origin).collect::<Vec<_>>(), [Origin::Start]);
    for host in hosts {
        host.stop().await.1.unwrap();
    }
}

#[tokio::test]
async fn the_version_of_a_program_is_said_when_it_opens_its_store() {
    let tenure = OpenOptions::new().revision(7).untended().open("memory:").await.unwrap();
    let timer = || TimerDraft::new("steady", every(MINUTE), &Report::default());
    assert_eq!(tenure.timers().set(timer()).await.unwrap(), TimerSet::New);
    assert_eq!(tenure.timers().get("steady").await.unwrap().agreed.revision, 7);
    let older = tenure.clone().as_revision(6);
    assert_eq!(older.timers().set(timer()).await.unwrap(), TimerSet::Outdated { by: 7 });
    assert_eq!(tenure.timers().set(timer().revision(8)).await.unwrap(), TimerSet::Changed);
    let refused = OpenOptions::new().revision(u64::MAX).open("memory:").await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(wrong) if wrong.field == "revision"));
}

#[tokio::test]
async fn a_lab_fires_timers_while_its_clock_moves() {
    let seen = Seen::default();
    let app = seen.clone();
    let mut lab = tenure::testing::Lab::new(|tenure| {
        Worker::new(tenure, app).queue("default", 10).job(report).timer(
            "hourly",
            cron("0 0 * * * *"),
            Report::default,
        )
    });
    for _ in 0..3 {
        lab.advance(MINUTE * 60);
        assert_eq!(lab.drain().await.unwrap().len(), 1);
    }
    assert_eq!(seen.slots(), [3_600, 7_200, 10_800]);
    // Nobody takes a turn for a while: what comes meanwhile finds a job that has not ended.
    lab.advance(MINUTE * 180);
    assert_eq!(lab.drain().await.unwrap().len(), 1);
    let all = records(lab.tenure()).await;
    assert_eq!(all[3..], [(14_400, 14_400, "ran"), (18_000, 18_000, "busy"), (21_600, 21_600, "busy")]);
    assert_eq!(lab.now(), begin().after(MINUTE * 360));
}

#[tokio::test]
async fn a_worker_in_real_time_fires_within_a_second() {
    let tenure = Tenure::on(
        std::sync::Arc::new(MemoryStore::new(std::sync::Arc::new(SystemClock))),
        Chance::seeded(1),
    );
    let seen = Seen::default();
    let (watched, app) = (seen.clone(), seen.clone());
    reporting(Worker::new(&tenure, app).keeper_on_runtime())
        .timer("each-second", every(SECOND), Report::default)
        .run(async move {
            while watched.slots().len() < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    assert!(seen.told().iter().all(|told| told.late < SECOND), "{:?}", seen.told());
}
