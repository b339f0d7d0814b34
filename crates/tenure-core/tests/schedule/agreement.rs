//! Both implementations agree: over all zones, and around all changes of their clocks from 2000 to 2037.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use tenure_core::Timestamp;
use tenure_core::schedule::{Calendar, Schedule, Zone};

use crate::schedule::dice::Dice;
use crate::schedule::oracle::{Oracle, Rule, at};

/// Schedules to choose from.
const SCHEDULES: usize = 1_500;
/// Questions around each change of a clock.
const QUESTIONS: usize = 2;
/// Questions around each change in `--long`.
const MORE_QUESTIONS: usize = 16;
/// Minimum number of clock changes and other moments over all zones. With fewer, the test shows too little.
const MOMENTS: usize = 12_500;

/// Draws schedules.
impl Dice {
    fn field(&mut self, low: i64, high: i64) -> String {
        match self.roll(8) {
            0 => "*".to_owned(),
            1 => format!("*/{}", self.between(1, high - low)),
            2 => {
                let from = self.between(low, high - 1);
                format!("{from}-{}", self.between(from, high))
            }
            3 => {
                let from = self.between(low, high - 2);
                format!("{from}/{}", self.between(1, high - from))
            }
            4 => {
                let from = self.between(low, high - 3);
                let to = self.between(from + 1, high);
                format!("{from}-{to}/{}", self.between(1, to - from))
            }
            5 | 6 => self.between(low, high).to_string(),
            _ => self.list(|dice| dice.between(low, high).to_string()),
        }
    }

    /// A cron expression, oftener of the hours in which clocks change than of others.
    fn cron(&mut self, unix: bool) -> String {
        let second = match self.roll(6) {
            0 => format!("{} ", self.field(0, 59)),
            1 | 2 => format!("{} ", self.roll(60)),
            _ => String::new(),
        };
        let minute = self.field(0, 59);
        let hour = match self.roll(3) {
            0 => self.field(0, 23),
            1 => "*".to_owned(),
            _ => self.field(0, 4),
        };
        let day = match self.roll(10) {
            0 => self.field(1, 31),
            1 if unix => self.of(&["L", "L-2", "LW", "15W", "1W,20", "31W", "?", "30W,L"]).to_owned(),
            _ => "*".to_owned(),
        };
        let month = match self.roll(8) {
            0 => self.field(1, 12),
            1 => self.of(&["MAR,OCT", "3-4,10-11", "FEB", "2"]).to_owned(),
            _ => "*".to_owned(),
        };
        let weekday = match self.roll(6) {
            0 => self.field(0, 6),
            1 => self.of(&["SUN", "SAT,SUN", "MON-FRI", "0,6"]).to_owned(),
            2 if unix => self.of(&["7", "5-7", "0L", "SUNL", "SUN#2", "7#1,SAT#5", "?"]).to_owned(),
            _ => "*".to_owned(),
        };
        format!("{second}{minute} {hour} {day} {month} {weekday}")
    }

    /// A schedule and the oracle for it; what is refused is drawn again.
    fn schedule(&mut self) -> (Schedule, Oracle) {
        loop {
            let drawn = if self.roll(8) == 0 { Some(self.times()) } else { self.drawn_cron() };
            let Some((schedule, mut oracle)) = drawn else {
                continue;
            };
            if self.roll(8) > 0 {
                return (schedule, oracle);
            }
            let left_out = self.of(&[vec!["sat", "sun"], vec!["mon"], vec!["sun"]]);
            oracle.left_out = ["sun", "mon", "", "", "", "", "sat"].map(|day| left_out.contains(&day));
            if let Ok(schedule) = schedule.except(Calendar::of(left_out).unwrap()) {
                return (schedule, oracle);
            }
        }
    }

    fn drawn_cron(&mut self) -> Option<(Schedule, Oracle)> {
        let unix = self.roll(2) == 0;
        let text = self.cron(unix);
        let dialect = if unix { "unix" } else { "ncrontab" };
        let schedule = Schedule::parse(&format!("{dialect} {text}")).ok()?;
        Some((schedule, Oracle::cron(&text, unix)))
    }

    fn times(&mut self) -> (Schedule, Oracle) {
        let mut seconds: Vec<i64> = (0..=self.roll(3)).map(|_| self.roll(5 * 12) * 300).collect();
        seconds.sort_unstable();
        seconds.dedup();
        let show: Vec<_> = seconds.iter().map(|at| format!("{:02}:{:02}", at / 3600, at / 60 % 60)).collect();
        let weekly = self.roll(2) == 0;
        let text = format!("{} {}", if weekly { "weekly sat-mon" } else { "daily" }, show.join(","));
        let days = std::array::from_fn(|day| {
            if weekly && !matches!(day, 6 | 0 | 1) { Vec::new() } else { seconds.clone() }
        });
        let oracle = Oracle { rule: Rule::Times(days), twice: false, left_out: [false; 7] };
        (Schedule::parse(&text).unwrap(), oracle)
    }
}

/// The changes of a zone's clocks from 2000 to 2037, and the widest of them.
fn changes(zone: &TimeZone) -> (Vec<i64>, i64) {
    let (from, to) = ("2000-01-01T00:00:00Z".parse().unwrap(), "2038-01-01T00:00:00Z".parse().unwrap());
    let mut changes = Vec::new();
    let mut widest = 0;
    for change in zone.following(from).take_while(|change| change.timestamp() < to) {
        let second = change.timestamp().as_second();
        let before = zone.to_offset(at(second - 1)).seconds();
        widest = widest.max(i64::from((change.offset().seconds() - before).abs()));
        changes.push(second);
    }
    (changes, widest)
}

/// How many questions about one zone both answered alike.
fn agree_in(name: &str, dice: &mut Dice, schedules: &[(Schedule, Oracle)], questions: usize) -> usize {
    let zone = TimeZoneDatabase::bundled().get(name).unwrap();
    let ours = Zone::named(name).unwrap();
    let (mut around, widest) = changes(&zone);
    // A few questions far from any change too; they are all that a zone gets whose clocks never change.
    around.extend((0..5).map(|_| 946_684_800 + dice.roll(38 * 31_557_600)));
    let mut asked = 0;
    for change in around {
        for _ in 0..questions {
            let (schedule, oracle) = &schedules[usize::try_from(dice.roll(schedules.len() as i64)).unwrap()];
            let near = dice.of(&[1, 60, 3_600, 3 * 3_600, 86_400, 200_000]);
            let after = change - near + dice.roll(2 * near + 1);
            let micros = after * 1_000_000 + dice.of(&[0, 0, 0, 1, 999_999]);
            let schedule = schedule.clone().in_zone(ours.clone()).unwrap();
            let found = schedule.next_after(Timestamp::from_micros(micros).unwrap());
            let found = found.map(|slot| slot.as_micros() / 1_000_000);
            let expected = oracle.next(&zone, widest, after);
            assert_eq!(
                found.map(at),
                expected.map(at),
                "{schedule}, without {:?}, after {}",
                schedule.calendar(),
                at(after)
            );
            asked += 1;
        }
    }
    asked
}

/// T052: a walk over local times by the zone database finds the same slots.
#[test]
fn two_implementations_agree_around_every_change_of_every_clock() {
    agree_in_all_zones(QUESTIONS);
}

#[test]
#[ignore = "takes half a minute: `cargo xtask test --long`"]
fn two_implementations_agree_around_every_change_in_more_questions() {
    agree_in_all_zones(MORE_QUESTIONS);
}

fn agree_in_all_zones(questions: usize) {
    let names = Zone::names();
    let next = AtomicUsize::new(0);
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut dice = Dice(7);
                let schedules: Vec<_> = (0..SCHEDULES).map(|_| dice.schedule()).collect();
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Each zone has its own dice, so that the order of the threads changes nothing.
                    let mut dice = Dice(
                        name.bytes().fold(11, |seed: u64, byte| seed.wrapping_mul(31) ^ u64::from(byte)),
                    );
                    asked.fetch_add(agree_in(name, &mut dice, &schedules, questions), Ordering::Relaxed);
                }
            });
        }
    });
    let asked = asked.into_inner();
    assert!(asked >= questions * MOMENTS, "only {asked} questions in {} zones", names.len());
    println!("{asked} questions in {} zones", names.len());
}
