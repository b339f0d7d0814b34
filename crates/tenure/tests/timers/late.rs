//! Being late, and jobs that take longer than until the next slot.

use std::time::Duration;
use tenure::when::{cron, every};

use tenure::{CatchUp, Overlap, TimerDraft};

use crate::common::fleet::{Fleet, fleet};
use crate::timers::seen::{MINUTE, Report, SECOND, Seen, records, reporting, second};

fn minutely() -> TimerDraft {
    TimerDraft::new("minutely", cron("0 * * * * *"), &Report::default())
}

/// A fleet whose only host was away for ten slots: from the first minute until some seconds after the eleventh.
async fn away(timer: fn() -> TimerDraft) -> (Fleet, Vec<(u64, u64, &'static str)>, Seen) {
    let (fleet, seen) = (fleet(), Seen::default());
    let declare = |worker| reporting(worker).timer_with(timer());
    let host = fleet.start(1, seen.clone(), declare).await;
    fleet.pass(SECOND * 65).await;
    host.stop().await.1.unwrap();
    fleet.clock.advance(second(670).since(tenure::Clock::now(&fleet.clock)));
    let host = fleet.start(2, seen.clone(), declare).await;
    fleet.pass(SECOND * 5).await;
    let all = records(&host.tenure).await;
    host.stop().await.1.unwrap();
    (fleet, all, seen)
}

/// T056: nobody was there over ten slots. Each policy does what the guide says, and what was skipped is on record.
#[tokio::test]
async fn missed_slots_are_brought_or_skipped_as_was_agreed() {
    let (_, all, seen) = away(minutely).await;
    assert_eq!(all, [(60, 60, "ran"), (120, 600, "coalesced"), (660, 660, "ran")]);
    assert_eq!(seen.told().iter().map(|told| told.past_due).collect::<Vec<_>>(), [false, true]);

    let (_, all, seen) = away(|| minutely().catch_up(CatchUp::Skip)).await;
    assert_eq!(all, [(60, 60, "ran"), (120, 600, "missed"), (660, 660, "ran")]);
    assert_eq!(seen.told().iter().map(|told| told.past_due).collect::<Vec<_>>(), [false, false]);

    let (_, all, seen) =
        away(|| minutely().catch_up(CatchUp::All { most: 3 }).overlap(Overlap::QueueAll)).await;
    assert_eq!(
        all,
        [(60, 60, "ran"), (120, 480, "too many"), (540, 540, "ran"), (600, 600, "ran"), (660, 660, "ran")]
    );
    assert_eq!(seen.slots(), [60, 540, 600, 660]);

    let (_, all, _) = away(|| {
        minutely()
            .catch_up(CatchUp::All { most: 1_000 })
            .overlap(Overlap::QueueAll)
            .max_lateness(Duration::from_secs(150))
    })
    .await;
    assert_eq!(
        all,
        [(60, 60, "ran"), (120, 480, "too late"), (540, 540, "ran"), (600, 600, "ran"), (660, 660, "ran")]
    );
}

/// T058: with a maximum lateness of ten minutes, as Kudu has it, a job comes at 9:59, at 10:00, and not at 10:01.
#[tokio::test]
async fn a_slot_is_skipped_when_it_is_later_than_was_agreed() {
    for (late, word) in [(599, "ran"), (600, "ran"), (601, "too late")] {
        let (fleet, seen) = (fleet(), Seen::default());
        let timer = TimerDraft::new("hourly", cron("0 0 * * * *"), &Report::default());
        fleet.handle(8).await.0.timers().set(timer.max_lateness(Duration::from_secs(600))).await.unwrap();
        fleet.clock.advance(Duration::from_secs(3_600 + late));
        let host = fleet.start(1, seen.clone(), reporting).await;
        fleet.pass(SECOND).await;
        assert_eq!(records(&host.tenure).await, [(3_600, 3_600, word)], "{late} s");
        host.stop().await.1.unwrap();
    }
}

/// T059: each job takes a minute and a half. When its run begins is what the two ancestors differ in.
#[tokio::test]
async fn a_run_that_is_longer_than_the_interval_meets_what_was_agreed() {
    let run = async |overlap: Overlap| {
        let (fleet, seen) = (fleet(), Seen::taking(SECOND * 90));
        let host = fleet
            .start(1, seen.clone(), |worker| reporting(worker).timer_with(minutely().overlap(overlap)))
            .await;
        fleet.pass(MINUTE * 7 + SECOND).await;
        let all = records(&host.tenure).await;
        host.kill();
        let told = seen.told();
        // Each slot got its job in time, however long that waited for its turn: of that its handler is told as well.
        assert!(told.iter().all(|told| !told.past_due && told.fired_late < SECOND), "{told:?}");
        assert!(told.iter().all(|told| told.late.as_secs() == told.began - told.slot), "{told:?}");
        (told.iter().map(|told| (told.slot, told.began)).collect::<Vec<_>>(), all)
    };
    let (runs, all) = run(Overlap::Skip).await;
    assert_eq!(runs, [60, 180, 300, 420].map(|slot| (slot, slot)));
    assert_eq!(all[..3], [(60, 60, "ran"), (120, 120, "busy"), (180, 180, "ran")]);
    // The next one waits for the end of the one that runs: the runs begin at 1:00, 2:30, 4:00 and 5:30.
    let (runs, all) = run(Overlap::QueueOne).await;
    assert_eq!(runs[..4], [(60, 60), (120, 150), (180, 240), (300, 330)]);
    assert!(all.contains(&(240, 240, "busy")), "{all:?}");
}

#[tokio::test]
async fn a_run_that_had_to_wait_for_its_turn_is_told_how_late_it_is() {
    let (fleet, seen) = (fleet(), Seen::taking(SECOND * 150));
    let timer = minutely().overlap(Overlap::QueueOne);
    let host = fleet.start(1, seen.clone(), |worker| reporting(worker).timer_with(timer)).await;
    fleet.pass(MINUTE * 4 + SECOND).await;
    host.kill();
    let told: Vec<_> =
        seen.told().iter().map(|told| (told.slot, told.late.as_secs(), told.run_past_due)).collect();
    assert_eq!(told, [(60, 0, false), (120, 90, true)]);
    assert!(seen.told().iter().all(|told| !told.past_due && told.fired_late < SECOND), "they came in time");
}

/// T064: the job of the slot before still runs on another host.
#[tokio::test]
async fn a_slot_is_skipped_with_its_reason_while_a_job_runs_elsewhere() {
    let (fleet, seen) = (fleet(), Seen::taking(SECOND * 90));
    let first = fleet.start(1, seen.on("first"), |worker| reporting(worker).timer_with(minutely())).await;
    fleet.pass(SECOND * 61).await;
    // A host that fires and runs no jobs of this kind.
    let timer = TimerDraft::new("far", cron("0 0 0 1 6 *"), &Report::default()).runs_elsewhere();
    let second = fleet.start(2, seen.on("second"), |worker| worker.timer_with(timer)).await;
    fleet.pass(SECOND * 60).await;
    assert_eq!(seen.told().iter().map(|told| told.host).collect::<Vec<_>>(), ["first"]);
    assert_eq!(records(&second.tenure).await, [(60, 60, "ran"), (120, 120, "busy")]);
    let why: Vec<String> =
        second.tenure.timers().explain("minutely").await.unwrap().iter().map(ToString::to_string).collect();
    assert!(why[1].starts_with("its run 2026-01-01T00:02:00.000000Z was skipped: job "), "{why:?}");
    assert!(why[1].ends_with("of an earlier run had not ended"), "{why:?}");
    first.kill();
    second.kill();
}

#[tokio::test]
async fn jobs_of_one_timer_never_overlap_and_beside_each_other_no_more_than_was_agreed() {
    for (overlap, most) in [(Overlap::QueueAll, 1), (Overlap::Allow { most: 3 }, 3)] {
        let (fleet, seen) = (fleet(), Seen::taking(SECOND * 10));
        let timer = || TimerDraft::new("often", every(SECOND * 2), &Report::default()).overlap(overlap);
        let mut hosts = Vec::new();
        for seed in 1..=2 {
            let host = fleet.start(seed, seen.clone(), |worker| reporting(worker).timer_with(timer())).await;
            hosts.push(host);
        }
        let tenure = fleet.handle(9).await.0;
        for _ in 0..60 {
            fleet.pass(SECOND).await;
            let counts = tenure.counts().await.unwrap();
            let running: u64 = counts
                .iter()
                .filter(|count| count.state == tenure::StateName::Running)
                .map(|count| count.jobs)
                .sum();
            assert!(running <= most, "{running} of {overlap:?}");
        }
        assert!(seen.slots().len() > 5 * usize::try_from(most).unwrap() / 2, "{:?}", seen.slots());
    }
}
