//! What a hundred thousand timers in one file cost. It measures, so it runs alone and by name:
//! `cargo test --release -p tenure-sqlite --test it -- --ignored timers_many --nocapture`.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::limits;
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Clock, Fired, ManualClock, Store, SystemClock, Timers, Views};

use crate::given::timers::timer;
use crate::given::{file, runtime};

const TIMERS: usize = 100_000;
const RIPE_TOGETHER: usize = 10_000;

/// Ten thousand are ripe in the next minute, all others much later.
fn schedule(number: usize) -> &'static str {
    match number % (TIMERS / RIPE_TOGETHER) {
        0 => "0 * * * * * in Europe/Berlin",
        1 => "30 9 * * MON-FRI in America/New_York",
        2 => "daily 09:30, 17:00 in Asia/Tokyo",
        _ => "every 1h",
    }
}

/// Time that this process has spent on a core.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
#[ignore = "it measures: in release, and alone"]
#[expect(clippy::disallowed_methods, reason = "an idle host sleeps by real time, and that is measured")]
fn a_hundred_thousand_timers_cost_next_to_nothing_while_none_is_ripe_and_ten_thousand_fire_in_three_seconds()
{
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap();
    let live = SystemClock;
    runtime().block_on(async {
        let began = live.moment();
        for first in (0..TIMERS).step_by(limits::SET_TIMERS) {
            let timers = (first..first + limits::SET_TIMERS).map(|n| timer(&format!("timer-{n:06}"), schedule(n))).collect();
            store.set_timers(timers, None).await.unwrap();
        }
        println!("{TIMERS} timers were set in {:?}", live.moment().since(began));
        println!("the file has {} MiB", std::fs::metadata(&file).unwrap().len() >> 20);

        const CALLS: u32 = 2_000;
        let began = live.moment();
        for _ in 0..CALLS {
            assert_eq!(store.fire(limits::FIRE_TIMERS).await.unwrap().timers, 0);
        }
        println!("a look in vain takes {:?}", live.moment().since(began) / CALLS);

        const SECONDS: u32 = 10;
        let before = spent();
        for _ in 0..SECONDS {
            tokio::time::sleep(Duration::from_secs(1)).await;
            store.fire(limits::FIRE_TIMERS).await.unwrap();
        }
        let idle = (spent() - before) / SECONDS;
        println!("an idle second costs {idle:?}");
        assert!(idle < Duration::from_millis(20), "two hundredths of a core");

        clock.advance(Duration::from_secs(60));
        for round in ["the first time", "the second time, behind jobs that wait"] {
            let (began, before, mut jobs, mut calls) = (live.moment(), spent(), 0, Vec::new());
            loop {
                let call = live.moment();
                let Fired { timers, jobs: new, .. } = store.fire(limits::FIRE_TIMERS).await.unwrap();
                if timers == 0 {
                    break;
                }
                jobs += new;
                calls.push(live.moment().since(call));
            }
            let (took, spent) = (live.moment().since(began), spent() - before);
            let longest = calls.iter().max().unwrap();
            println!("{jobs} fired in {took:?} ({spent:?} of a core), in {} calls, the longest {longest:?}, {round}", calls.len());
            assert_eq!(jobs, RIPE_TOGETHER);
            assert!(took < Duration::from_secs(3), "{took:?}");
            clock.advance(Duration::from_secs(60));
        }
        let counts = store.counts().await.unwrap();
        assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), 2 * RIPE_TOGETHER as u64);
        store.close().await.unwrap();
    });
}
