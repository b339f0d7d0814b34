//! Firing: each slot once, whatever happens to hosts and clocks.

use std::time::Duration;

use tenure::when::{at, cron, every};
use tenure::{CatchUp, Chance, Clock, Faults, Keep, Overlap, Retention, StateName, TimerDraft, Worker};

use crate::common::fleet::{Fleet, Instance, fleet};
use crate::common::{LEASE, Plain, settle_down};
use crate::timers::seen::{
    DAY, HOUR, MINUTE, Report, SECOND, Seen, all_ran, begin, records, reporting, second,
};

fn each_second() -> TimerDraft {
    TimerDraft::new("each-second", every(SECOND), &Report::default())
        .overlap(Overlap::QueueAll)
        .catch_up(CatchUp::All { most: 1_000 })
}

fn declares(timer: TimerDraft) -> impl FnOnce(Worker<Seen>) -> Worker<Seen> {
    move |worker| reporting(worker).timer_with(timer)
}

async fn start(fleet: &Fleet, seed: u64, seen: &Seen, timer: TimerDraft) -> Instance {
    fleet.start(seed, seen.clone(), declares(timer)).await
}

#[tokio::test]
async fn three_hosts_bring_one_job_a_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let mut hosts = Vec::new();
    for seed in 1..=3 {
        hosts.push(start(&fleet, seed, &seen, each_second()).await);
    }
    fleet.pass(SECOND * 30).await;
    assert_eq!(records(&tenure).await, all_ran(1, 30));
    assert_eq!(seen.slots(), (1..=30).collect::<Vec<u64>>());
}

/// T053: the host dies at each point of a slot: before it has fired, right after that, in the middle of the run, at its
/// end, and after it. Each time another one goes on. Every slot has one record and one job, and the attempts of a job
/// are counted on, whichever host makes them.
#[tokio::test]
async fn a_host_that_dies_at_any_point_loses_and_doubles_no_slot() {
    let timer = || {
        let timer = TimerDraft::new("each-minute", cron("0 * * * * *"), &Report::default());
        timer.overlap(Overlap::QueueAll).catch_up(CatchUp::All { most: 100 })
    };
    // When it dies, in tenths of a second after the first slot, and how many attempts that slot's job needs.
    for (dies, attempts) in [(-1, 1), (0, 2), (50, 2), (99, 2), (105, 1)] {
        let (fleet, seen) = (fleet(), Seen::taking(SECOND * 10));
        let tenure = fleet.handle(9).await.0;
        let first = start(&fleet, 1, &seen, timer()).await;
        let lives = Duration::from_millis(u64::try_from(60_000 + dies * 100).unwrap());
        fleet.pass(lives).await;
        first.kill();
        fleet.pass(LEASE).await;
        let second = start(&fleet, 2, &seen, timer()).await;
        fleet.pass(MINUTE * 3).await;
        let all = records(&tenure).await;
        let slots: Vec<u64> = (1..=all.len() as u64).map(|minute| minute * 60).collect();
        assert_eq!(all, slots.iter().map(|slot| (*slot, *slot, "ran")).collect::<Vec<_>>(), "{dies}");
        let attempts_of = |slot: u64| -> Vec<u32> {
            seen.told().iter().filter(|told| told.slot == slot).map(|told| told.attempt).collect()
        };
        assert_eq!(attempts_of(60), (1..=attempts).collect::<Vec<u32>>(), "{dies}");
        assert_eq!(attempts_of(120), [1], "{dies}");
        second.stop().await.1.unwrap();
        let ended = tenure.counts().await.unwrap();
        let of =
            |state| ended.iter().filter(|count| count.state == state).map(|count| count.jobs).sum::<u64>();
        let jobs: u64 = ended.iter().map(|count| count.jobs).sum();
        assert_eq!((jobs, of(StateName::Failed)), (all.len() as u64, 0), "{dies}: {ended:?}");
    }
}

/// T053: the host dies between the end of a run and its settlement, and right after that. In the first case the work is
/// done again, as the next attempt of the same job; in the second it is not.
#[tokio::test]
async fn a_host_that_dies_before_it_tells_of_the_end_of_a_run_leaves_one_job_with_one_more_attempt() {
    for (is_told, attempts) in [(false, 2), (true, 1)] {
        let (fleet, seen) = (fleet(), Seen::taking(SECOND * 10));
        let tenure = fleet.handle(9).await.0;
        let timer = || {
            let timer = TimerDraft::new("hourly", cron("0 0 * * * *"), &Report::default());
            timer.overlap(Overlap::QueueAll).job(|job| job.attempts(2))
        };
        let first = start(&fleet, 1, &seen, timer()).await;
        fleet.pass(SECOND).await;
        fleet.clock.advance(HOUR - SECOND * 3);
        fleet.pass(SECOND * 7).await;
        // The run ends by itself; whether anybody hears of it depends on the way to the store.
        first.way.down(!is_told);
        fleet.pass(SECOND * 6).await;
        first.kill();
        let second = start(&fleet, 2, &seen, timer()).await;
        fleet.pass(LEASE + SECOND * 15).await;
        let runs: Vec<_> = seen.told().iter().map(|told| (told.slot, told.attempt)).collect();
        assert_eq!(runs, (1..=attempts).map(|attempt| (3_600, attempt)).collect::<Vec<_>>());
        assert_eq!(records(&tenure).await, [(3_600, 3_600, "ran")]);
        second.stop().await.1.unwrap();
        let counts = tenure.counts().await.unwrap();
        let of: Vec<_> = counts.iter().map(|count| (count.state, count.jobs)).collect();
        assert_eq!(of, [(StateName::Succeeded, 1)]);
    }
}

/// T054: a slot whose job kills its host ends as failed after its attempts, and later slots go on.
#[tokio::test]
async fn a_job_that_kills_every_host_ends_and_later_slots_go_on() {
    let (fleet, seen) = (fleet(), Seen::taking(HOUR));
    let tenure = fleet.handle(9).await.0;
    let timer =
        || TimerDraft::new("hourly", cron("0 0 * * * *"), &Report::default()).job(|job| job.attempts(3));
    for seed in 1..=3 {
        let host = start(&fleet, seed, &seen, timer()).await;
        if seed == 1 {
            fleet.pass(SECOND).await;
            fleet.clock.advance(HOUR);
        }
        fleet.until("it runs", async || seen.told().len() == usize::try_from(seed).unwrap()).await;
        host.kill();
        fleet.clock.advance(LEASE + SECOND);
    }
    let host = fleet.start(4, Seen::default(), declares(timer())).await;
    fleet.pass(MINUTE).await;
    let failed = tenure.counts().await.unwrap().into_iter().find(|count| count.state == StateName::Failed);
    assert_eq!(failed.unwrap().jobs, 1);
    assert_eq!(
        seen.told().iter().map(|told| (told.slot, told.attempt)).collect::<Vec<_>>(),
        [(3_600, 1), (3_600, 2), (3_600, 3)]
    );
    fleet.clock.advance(HOUR);
    fleet.pass(SECOND * 2).await;
    assert_eq!(records(&tenure).await, [(3_600, 3_600, "ran"), (7_200, 7_200, "ran")]);
    host.stop().await.1.unwrap();
}

/// T055: somebody calls out that something may be due, up to two seconds before the slot and again and again.
#[tokio::test]
async fn a_ticker_that_wakes_early_brings_nothing_twice() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let host = start(&fleet, 1, &seen, TimerDraft::new("minutely", every(MINUTE), &Report::default())).await;
    fleet.pass(MINUTE - SECOND * 2).await;
    for _ in 0..80 {
        tenure.enqueue(Plain { number: 1 }).queue("elsewhere").await.unwrap();
        settle_down().await;
        fleet.clock.advance(Duration::from_millis(33));
    }
    fleet.pass(SECOND).await;
    assert_eq!(records(&tenure).await, [(60, 60, "ran")]);
    assert_eq!(seen.slots(), [60]);
    host.stop().await.1.unwrap();
}

/// T060: waits that are longer than a timer of some platforms can count.
#[tokio::test]
async fn waits_of_many_days_end_at_their_slots() {
    let (fleet, seen) = (fleet(), Seen::default());
    let days = [25, 65, 125].map(|days| begin().after(DAY * days));
    let host = start(&fleet, 1, &seen, TimerDraft::new("seldom", at(days), &Report::default())).await;
    for _ in 0..126 * 24 {
        fleet.clock.advance(HOUR);
        settle_down().await;
        settle_down().await;
    }
    assert_eq!(seen.slots(), [25, 65, 125].map(|days| days * 86_400));
    assert!(
        seen.told().iter().all(|told| told.fired_late < SECOND * 20 && !told.past_due),
        "{:?}",
        seen.told()
    );
    host.stop().await.1.unwrap();
}

/// T060: the clock is set forward and back, and the host sleeps.
#[tokio::test]
async fn a_clock_that_is_set_and_a_host_that_sleeps_lose_and_double_no_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let timer = TimerDraft::new("hourly", cron("0 0 * * * *"), &Report::default())
        .overlap(Overlap::QueueAll)
        .catch_up(CatchUp::All { most: 100 });
    let host = start(&fleet, 1, &seen, timer).await;
    fleet.pass(SECOND * 5).await;
    fleet.clock.step_to(second(7_200));
    fleet.pass(SECOND * 15).await;
    assert_eq!(seen.slots(), [3_600, 7_200], "set forward: within seconds, though nobody slept so long");
    fleet.clock.step_to(second(1_800));
    for _ in 0..100 {
        fleet.clock.advance(MINUTE);
        settle_down().await;
    }
    assert_eq!(seen.slots(), [3_600, 7_200], "set back: what was decided stays so");
    // Asleep for three hours, and awake again.
    fleet.clock.advance(HOUR * 3);
    fleet.pass(SECOND * 15).await;
    assert_eq!(seen.slots(), [3_600, 7_200, 10_800, 14_400, 18_000]);
    let slots: Vec<u64> = records(&tenure).await.iter().map(|record| record.0).collect();
    assert_eq!(slots, seen.slots());
    host.stop().await.1.unwrap();
}

/// T061: there a schedule below a minute is not kept at all.
#[tokio::test]
async fn a_schedule_of_every_second_survives_restarts_without_loss_or_doubles() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    for seed in 1..=5 {
        let host = start(&fleet, seed, &seen, each_second()).await;
        fleet.pass(Duration::from_millis(3_300)).await;
        if seed % 2 == 0 {
            host.kill();
        } else {
            host.stop().await.1.unwrap();
        }
        fleet.pass(Duration::from_millis(2_900)).await;
    }
    let host = start(&fleet, 6, &seen, each_second()).await;
    fleet.pass(SECOND * 2 + LEASE).await;
    let all = records(&tenure).await;
    assert_eq!(all, all_ran(1, all.len() as u64));
    let mut slots = seen.slots();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots, (1..=all.len() as u64).collect::<Vec<u64>>());
    host.stop().await.1.unwrap();
}

/// T063: the store is away for ten minutes. Firing goes on by itself, and the gap can be seen afterwards.
#[tokio::test]
async fn firing_goes_on_after_an_outage_and_the_gap_is_seen() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = start(&fleet, 1, &seen, TimerDraft::new("minutely", every(MINUTE), &Report::default())).await;
    fleet.pass(SECOND * 90).await;
    let before = host.tenure.timers().heartbeat();
    assert!(before.last.is_some_and(|last| fleet.clock.now().since(last) <= SECOND * 10), "{before:?}");
    assert_eq!((before.faults, &before.gap), (0, &None));

    host.way.down(true);
    fleet.pass(MINUTE * 10).await;
    let during = host.tenure.timers().heartbeat();
    // The last look may have been a while before.
    assert!(during.last <= before.last.max(Some(second(90))) && during.faults > 60, "{during:?}");
    assert!(during.fault.is_some());
    assert!(during.faults < 1_000, "it does not ask without pause: {during:?}");

    host.way.down(false);
    fleet.pass(SECOND * 6).await;
    let after = host.tenure.timers().heartbeat();
    let (from, until) = after.gap.unwrap();
    assert_eq!(Some(from), during.last);
    assert!((second(690)..second(696)).contains(&until), "{until}");
    assert_eq!((after.faults, after.fault), (0, None));
    let all = records(&host.tenure).await;
    assert_eq!(all, [(60, 60, "ran"), (120, 600, "coalesced"), (660, 660, "ran")]);
    assert!(seen.told()[1].past_due);
    fleet.pass(MINUTE).await;
    assert_eq!(seen.slots(), [60, 660, 720]);
    host.stop().await.1.unwrap();
}

/// Calls that fail, hang or are done without a word of it: every slot still has one job.
#[tokio::test]
async fn faults_neither_lose_nor_double_a_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let tenure = fleet.handle(9).await.0;
    let mut hosts = Vec::new();
    for seed in 1..=3 {
        let host = start(&fleet, seed, &seen, each_second()).await;
        host.way.set(Faults { fail: 0.1, drop_request: 0.1, drop_reply: 0.2, ..Faults::none(seed) });
        hosts.push(host);
    }
    fleet.pass(MINUTE).await;
    hosts.iter().for_each(|host| host.way.heal());
    fleet.pass(SECOND * 5).await;
    let all = records(&tenure).await;
    assert_eq!(all, all_ran(1, 65));
}

/// T062, on a small scale; the simulation does it at large. Three hosts are killed, stopped and cut off at random while
/// five timers fire every second.
#[tokio::test]
async fn hosts_that_come_and_go_at_random_leave_each_slot_with_one_record() {
    for seed in 0..5 {
        let (fleet, seen, chance) = (fleet(), Seen::default(), Chance::seeded(seed));
        let tenure = fleet.handle(9).await.0;
        let declare = |worker: Worker<Seen>| {
            (0..5).fold(reporting(worker), |worker, number| {
                let timer = TimerDraft::new(&format!("timer-{number}"), every(SECOND), &Report { number });
                worker.timer_with(timer.overlap(Overlap::QueueAll).catch_up(CatchUp::All { most: 1_000 }))
            })
        };
        let mut hosts: Vec<Option<Instance>> = vec![None, None, None];
        for round in 0..60 {
            let place = usize::try_from(chance.below(3)).unwrap();
            match (hosts[place].take(), chance.below(4)) {
                (None, _) => {
                    let number = 100 * seed + round + 10;
                    hosts[place] = Some(fleet.start(number, seen.clone(), declare).await);
                }
                (Some(host), 0) => host.kill(),
                (Some(host), 1) => host.stop().await.1.map(drop).unwrap(),
                (Some(host), _) => {
                    host.way.down(chance.below(2) == 0);
                    hosts[place] = Some(host);
                }
            }
            fleet.pass(Duration::from_millis(100 * (1 + chance.below(40)))).await;
        }
        let last = fleet.start(100 * seed + 99, seen.clone(), declare).await;
        fleet.pass(LEASE + SECOND * 5).await;
        let (mut all, timers) = (records(&tenure).await, 5);
        let last_slot = all.iter().map(|record| record.1).max().unwrap();
        all.sort_unstable();
        let first_slot = all[0].0;
        assert!(last_slot - first_slot > 60, "{seed}");
        let expected: Vec<_> =
            all_ran(first_slot, last_slot).into_iter().flat_map(|record| [record; 5]).collect();
        assert_eq!(all.len(), timers * usize::try_from(last_slot - first_slot + 1).unwrap(), "{seed}");
        assert_eq!(all, expected, "{seed}");
        last.kill();
    }
}

#[tokio::test]
async fn a_timer_that_another_program_sets_fires_at_its_first_slot() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = fleet.start(1, seen.clone(), reporting).await;
    fleet.pass(SECOND * 2).await;
    let tenure = fleet.handle(9).await.0;
    tenure.timers().set(TimerDraft::new("soon", every(SECOND * 5), &Report::default())).await.unwrap();
    fleet.pass(SECOND * 9).await;
    assert_eq!(seen.slots(), [5, 10]);
    assert!(seen.told().iter().all(|told| told.late < SECOND), "{:?}", seen.told());
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn an_idle_ticker_asks_seldom_and_a_busy_store_does_not_make_it_ask_more() {
    let (fleet, seen) = (fleet(), Seen::default());
    // No queue: all calls are the ticker's but the announcements, each with a look at what the worker is told to do.
    let timer = TimerDraft::new("far", cron("0 0 0 1 6 *"), &Report::default()).runs_elsewhere();
    let host = fleet.start(1, seen, |worker| worker.timer_with(timer)).await;
    fleet.pass(SECOND * 10).await;
    let calls = || host.way.tally().calls;
    let before = calls();
    fleet.pass(MINUTE).await;
    assert!(calls() - before <= 21, "{} calls in an idle minute", calls() - before);
    let (before, tenure) = (calls(), fleet.handle(9).await.0);
    for _ in 0..100 {
        for _ in 0..20 {
            tenure.enqueue(Plain { number: 1 }).queue("elsewhere").await.unwrap();
        }
        fleet.pass(Duration::from_millis(100)).await;
    }
    assert!(calls() - before <= 50, "{} calls in ten seconds", calls() - before);
    host.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_worker_whose_store_is_away_stops_at_once() {
    let (fleet, seen) = (fleet(), Seen::default());
    let host = start(&fleet, 1, &seen, each_second()).await;
    fleet.pass(SECOND * 2).await;
    host.way.down(true);
    fleet.pass(SECOND * 5).await;
    let (took, ended) = host.stop().await;
    ended.unwrap();
    assert!(took < SECOND * 3, "{took:?}");
}

#[tokio::test]
async fn records_are_kept_for_as_long_as_was_said() {
    let clock = tenure::ManualClock::new();
    let tenure = tenure::OpenOptions::new()
        .clock(std::sync::Arc::new(clock.clone()))
        .keep_slots(HOUR * 2)
        .open("memory:")
        .await
        .unwrap();
    let timer = TimerDraft::new("hourly", every(HOUR), &Report::default()).overlap(Overlap::QueueAll);
    tenure.timers().set(timer.job(|job| job.retain(Retention::always(Keep::Forever)))).await.unwrap();
    for _ in 0..5 {
        clock.advance(HOUR);
        tenure.store().fire(10).await.unwrap();
    }
    for _ in 0..100 {
        settle_down().await;
        clock.advance(SECOND * 6);
    }
    let left: Vec<u64> = records(&tenure).await.iter().map(|record| record.0).collect();
    assert_eq!(left, [14_400, 18_000]);
    let refused = tenure::OpenOptions::new().keep_slots(SECOND).open("memory:").await.unwrap_err();
    assert!(refused.to_string().starts_with("keep_slots: 1 s"), "{refused}");
}
