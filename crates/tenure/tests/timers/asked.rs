//! What people ask of timers.

use tenure::when::{cron, delay, every};
use tenure::{
    Chance, Error, Faults, FaultyStore, Key, Origin, Overlap, Tenure, TimerDraft, TimerOutcome, TimerSet,
    TimerWhy, TimersAsk,
};

use crate::common::fleet::fleet;
use crate::timers::seen::{
    HOUR, MINUTE, Report, SECOND, Seen, begin, records, report, reporting, second, seconds_of, stores,
};

fn hourly() -> TimerDraft {
    TimerDraft::new("hourly", cron("0 0 * * * *"), &Report { number: 5 })
}

#[tokio::test]
async fn a_timer_is_set_read_listed_changed_and_removed_by_its_name() {
    for rig in stores() {
        rig.tenure.timers().set(hourly()).await.unwrap();
        let timers = rig.tenure.timers();
        assert_eq!(timers.set(hourly()).await.unwrap(), TimerSet::Same);
        let timer = timers.get("hourly").await.unwrap();
        assert_eq!((timer.next, timer.decided, timer.runs), (Some(second(3_600)), None, 0));
        timers
            .set(TimerDraft::raw("other", "every 10m", "plain", &serde_json::json!({"number": 1})))
            .await
            .unwrap();
        let page = timers.list(TimersAsk { prefix: "h".to_owned(), ..TimersAsk::default() }).await.unwrap();
        assert_eq!(page.timers, [timer]);
        assert_eq!(timers.list(TimersAsk::default()).await.unwrap().timers.len(), 2);
        assert_eq!(timers.set(hourly().overlap(Overlap::QueueOne)).await.unwrap(), TimerSet::Changed);
        assert_eq!(timers.remove("hourly").await.unwrap(), TimerOutcome::Done);
        assert_eq!(timers.remove("hourly").await.unwrap(), TimerOutcome::NotFound);
        let gone = timers.get("hourly").await.unwrap_err();
        assert!(matches!(&gone, Error::NoTimer(name) if name.as_str() == "hourly"), "{gone}");
        let refused =
            timers.set(TimerDraft::new("bad", "every 10 minutes", &Report::default())).await.unwrap_err();
        assert!(refused.to_string().starts_with("timer bad: schedule."), "{refused}");
    }
}

#[tokio::test]
async fn a_paused_timer_is_silent_says_why_and_goes_on_with_its_next_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = fleet.start(1, seen.clone(), |worker| reporting(worker).timer_with(hourly())).await;
    fleet.pass(SECOND).await;
    let timers = host.tenure.timers();
    assert_eq!(timers.pause("hourly", "the mail server moves").await.unwrap(), TimerOutcome::Done);
    fleet.clock.advance(HOUR * 2);
    fleet.pass(SECOND * 15).await;
    assert_eq!(seen.slots(), [0_u64; 0]);
    let why = timers.explain("hourly").await.unwrap();
    assert_eq!(why[0].to_string(), "paused at 2026-01-01T00:00:01.000000Z: the mail server moves");
    let next = timers.next("hourly", 2).await.unwrap();
    assert_eq!(next.iter().map(|slot| seconds_of(slot.at)).collect::<Vec<_>>(), [10_800, 14_400]);
    assert_eq!(timers.resume("hourly").await.unwrap(), TimerOutcome::Done);
    fleet.clock.advance(HOUR);
    fleet.pass(SECOND * 15).await;
    assert_eq!(records(&host.tenure).await, [(3_600, 7_200, "paused"), (10_800, 10_800, "ran")]);
    assert_eq!(timers.pause("unknown", "").await.unwrap(), TimerOutcome::NotFound);
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_trigger_brings_a_job_with_its_own_args_beside_the_schedule() {
    let seen = Seen::default();
    let app = seen.clone();
    let mut lab = tenure::testing::Lab::new(|tenure| {
        tenure::Worker::new(tenure, app).queue("default", 1).job(report).timer_with(hourly())
    });
    let tenure = lab.tenure().clone();
    let timers = tenure.timers();
    let id = tenure.new_id();
    let asked = async || timers.trigger("hourly").args(&Report { number: 6 }).id(id).await.unwrap();
    assert_eq!(asked().await, TimerOutcome::Triggered(id));
    assert_eq!(asked().await, TimerOutcome::Triggered(id), "under the same id it is the same wish");
    assert_eq!(timers.trigger("hourly").await.unwrap(), TimerOutcome::Busy(id));
    lab.drain().await.unwrap();
    let raw = timers.trigger("hourly").raw_args(&serde_json::json!({"number": 8})).await.unwrap();
    assert!(matches!(raw, TimerOutcome::Triggered(_)));
    lab.drain().await.unwrap();
    lab.advance(HOUR);
    lab.drain().await.unwrap();
    let told: Vec<(u64, Origin)> = seen.told().iter().map(|told| (told.number, told.origin)).collect();
    assert_eq!(told, [(6, Origin::Trigger), (8, Origin::Trigger), (5, Origin::Schedule)]);
    assert_eq!(timers.trigger("unknown").await.unwrap(), TimerOutcome::NotFound);
    let derived = timers.trigger("hourly").id(tenure::JobId::derived([7; 16])).await.unwrap_err();
    assert!(derived.to_string().contains("version 8 is reserved"), "{derived}");
    let unknown = timers.trigger("unknown").args(&Report { number: 6 }).await.unwrap();
    assert_eq!(unknown, TimerOutcome::NotFound);
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Other {}

impl tenure::Job for Other {
    const KIND: &'static str = "other";
    type Output = ();
}

#[tokio::test]
async fn a_trigger_with_the_args_of_another_kind_is_refused() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(hourly()).await.unwrap();
        let refused = timers.trigger("hourly").args(&Other {}).await.unwrap_err().to_string();
        assert_eq!(refused, "args: args of a job of kind other; expected kind report");
        assert_eq!(timers.last_slots("hourly", 10).await.unwrap(), []);
        // Whoever knows better says so.
        let raw = timers.trigger("hourly").args(&Other {}).raw_args(&serde_json::json!({"number": 8}));
        assert!(matches!(raw.await.unwrap(), TimerOutcome::Triggered(_)));
    }
}

/// The reply is lost, and the caller does not hear of it: the repeated wish is the same one.
#[tokio::test]
async fn a_wish_whose_reply_is_lost_is_repeated_and_done_once() {
    for rig in stores() {
        for seed in 1..=20 {
            let way = std::sync::Arc::new(FaultyStore::new(
                std::sync::Arc::clone(&rig.store),
                Faults { drop_reply: 0.4, ..Faults::none(seed) },
            ));
            let tenure = Tenure::on(way, Chance::seeded(seed));
            let name = format!("timer-{seed}");
            let timer = || TimerDraft::new(&name, "every 1h", &Report::default()).overlap(Overlap::QueueAll);
            let lost = |error: Error| matches!(error, Error::Fault(_)).then_some(()).unwrap();
            let _ = tenure.timers().set(timer()).await.map_err(lost);
            let _ = tenure.timers().trigger(&name).await.map_err(lost);
            let ran = rig.tenure.timers().last_slots(&name, 10).await.unwrap();
            assert_eq!(ran.len(), 1, "{seed}");
        }
    }
}

#[tokio::test]
async fn slots_of_the_past_are_shown_first_and_then_brought_in_steps_once() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(TimerDraft::new("often", every(SECOND * 10), &Report::default())).await.unwrap();
        rig.clock.advance(HOUR * 6);
        let range = (begin(), second(5 * 3_600));
        let mut backfill = timers.backfill("often", range.0, range.1).await.unwrap();
        assert_eq!(backfill.slots(10_000).await.unwrap().len(), 1_801);
        let shown = backfill.slots(3).await.unwrap();
        assert_eq!(shown.iter().map(|slot| seconds_of(slot.at)).collect::<Vec<_>>(), [0, 10, 20]);
        assert!(rig.tenure.counts().await.unwrap().is_empty(), "nothing was enqueued by looking");
        let first = backfill.step().await.unwrap().unwrap();
        assert_eq!((first.jobs, first.so_far, first.next), (1_000, 1_000, Some(second(10_000))));
        assert_eq!(backfill.slots(10_000).await.unwrap().len(), 801);
        assert_eq!(backfill.step().await.unwrap().unwrap().so_far, 1_801);
        assert_eq!(backfill.step().await.unwrap(), None);
        // A program that was killed in the middle begins again.
        let again = timers.backfill("often", range.0, second(5 * 3_600 + 10)).await.unwrap();
        assert_eq!(again.run().await.unwrap(), 1);
        let future = timers.backfill("often", second(21_590), second(1_000_000)).await.unwrap();
        assert_eq!(future.run().await.unwrap(), 2, "until now, and no further");
        timers.set(TimerDraft::new("after", delay(MINUTE), &Report::default())).await.unwrap();
        let refused = timers.backfill("after", range.0, range.1).await.unwrap_err();
        assert!(refused.to_string().starts_with("timer: timer after"), "{refused}");
        assert!(
            timers.backfill("often", range.1, range.0).await.unwrap_err().to_string().starts_with("to: ")
        );
        assert!(matches!(timers.backfill("none", range.0, range.1).await, Err(Error::NoTimer(_))));
    }
}

#[tokio::test]
async fn a_timer_says_that_its_job_has_not_ended_and_that_it_is_over() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        let twice = TimerDraft::new("twice", every(MINUTE).times(2), &Report::default());
        timers.set(twice.overlap(Overlap::QueueAll)).await.unwrap();
        let why = async || -> Vec<String> {
            timers.explain("twice").await.unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(why().await[1], "its next run is 2026-01-01T00:01:00.000000Z");
        for _ in 0..2 {
            rig.clock.advance(MINUTE);
            rig.store.fire(10).await.unwrap();
        }
        let told = why().await;
        assert_eq!(told[0], "no worker or server is running schedules");
        assert_eq!(told[1], "it has enqueued 2 jobs, its maximum");
        assert!(told[2].starts_with("2 of its jobs have not ended; the first is "), "{told:?}");
        assert_eq!(timers.next("twice", 10).await.unwrap(), []);
        // As soon as they have ended, though nobody has looked at the timer since.
        let open = timers.get("twice").await.unwrap().open;
        rig.tenure.jobs().cancel(open[0], SECOND, "").await.unwrap();
        assert_eq!(why().await[2], format!("its job {} has not ended", open[1]));
        rig.tenure.jobs().cancel(open[1], SECOND, "").await.unwrap();
        assert_eq!(why().await, told[..2]);
        assert_eq!(timers.get("twice").await.unwrap().open, open);
        let all = timers.explain("twice").await.unwrap();
        assert_eq!(all[0], TimerWhy::NoWorker);
    }
}

#[tokio::test]
async fn a_backfill_fills_the_gaps_that_its_schedule_has_left() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(hourly()).await.unwrap();
        for _ in 0..3 {
            rig.clock.advance(HOUR);
            rig.store.fire(10).await.unwrap();
        }
        let told = async |again| -> (Vec<u64>, usize) {
            let backfill = timers.backfill("hourly", begin(), second(4 * 3_600)).await.unwrap();
            let backfill = if again { backfill.again() } else { backfill };
            let shown = backfill.slots(10).await.unwrap();
            let shown = shown.iter().map(|slot| seconds_of(slot.at) / 3_600).collect();
            (shown, backfill.run().await.unwrap())
        };
        // The first hour ran, the others were skipped, since its job has not ended.
        assert_eq!(told(false).await, (vec![0, 2, 3], 3));
        assert_eq!(told(true).await, (vec![0, 1, 2, 3], 1));
    }
}

#[tokio::test]
async fn a_timer_is_listed_with_how_late_its_last_slot_was() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(hourly()).await.unwrap();
        rig.clock.advance(HOUR + SECOND * 7);
        rig.store.fire(10).await.unwrap();
        rig.tenure.jobs().cancel(timers.get("hourly").await.unwrap().open[0], SECOND, "").await.unwrap();
        rig.clock.advance(MINUTE);
        let triggered = timers.trigger("hourly").await.unwrap();
        assert!(matches!(triggered, TimerOutcome::Triggered(_)), "{triggered:?}");
        let listed = timers.list(TimersAsk::default()).await.unwrap().timers.remove(0);
        assert_eq!((listed.decided, listed.lateness), (Some(second(3_600)), Some(SECOND * 7)));
    }
}

/// The overlap policy rests on a key that all jobs of a timer share: another job cannot take it by accident.
#[tokio::test]
async fn the_jobs_of_a_timer_share_an_ordering_key() {
    for rig in stores() {
        rig.tenure.timers().set(hourly()).await.unwrap();
        rig.clock.advance(HOUR);
        rig.store.fire(10).await.unwrap();
        let reserved = rig.reserve_one(crate::common::host(1)).await;
        let ordering = reserved.job().terms.ordering.clone().unwrap();
        assert_eq!(ordering.key, Key::new("ordering_key", "timer/hourly").unwrap());
    }
}
