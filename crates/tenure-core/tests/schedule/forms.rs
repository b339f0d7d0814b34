//! The forms in which a schedule is written: a line of text, and JSON.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::Timestamp;
use tenure_core::schedule::{Bounds, Calendar, Cron, Dialect, Every, Jitter, Rule, Schedule, Times, Zone};

use crate::schedule::given::{at, parse};

fn json(text: &str) -> Result<Schedule, String> {
    serde_json::from_str(text).map_err(|bad| bad.to_string())
}

#[test]
fn a_line_of_text_is_printed_as_it_is_read() {
    for text in [
        "0 */5 * * * *",
        "30 9 * * MON-FRI in Europe/Berlin",
        "unix 0 0 L * ? in America/New_York",
        "unix @daily",
        "every 10m",
        "every 1h30m from 2026-01-05T09:30:00.000000Z",
        "delay 1d",
        "at 2026-03-29T02:30:00.000000Z, 2027-03-29T02:30:00.000000Z",
        "daily 09:30, 17:00:05 in Asia/Tokyo",
        "weekly mon,tue,wed,thu,fri 09:30; sat 10:00, 11:00",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn other_ways_to_write_a_line() {
    for (text, printed) in [
        ("  Every 90s ", "every 1m30s"),
        ("@every 10m", "every 10m"),
        ("00:10:00", "every 10m"),
        ("1.00:00:00", "every 1d"),
        ("every 1.00:00:00", "every 1d"),
        ("CRON_TZ=europe/berlin 30 9 * * *", "30 9 * * * in Europe/Berlin"),
        ("TZ=Asia/Tokyo daily 9:30", "daily 09:30 in Asia/Tokyo"),
        ("unix:  0 9 * * 7", "unix 0 9 * * 7"),
        ("weekly fri-mon 09:30", "weekly mon,fri,sat,sun 09:30"),
        ("weekly sat,sunday 9:30; tue 10:00; sat 08:00", "weekly tue 10:00; sat 08:00, 09:30; sun 09:30"),
        ("weekly mon-sun 09:30", "daily 09:30"),
        ("at 2026-03-29T02:30+02:00,2026-03-29T00:30Z", "at 2026-03-29T00:30:00.000000Z"),
        ("30 9 * * * in utc", "30 9 * * *"),
    ] {
        assert_eq!(parse(text).to_string(), printed, "{text}");
    }
}

#[test]
fn json_names_exactly_one_rule_and_what_bounds_it() {
    for (text, line) in [
        (r#""0 */5 * * * *""#, "0 */5 * * * *"),
        (r#"{"cron": "0 9 * * 1-5"}"#, "0 9 * * 1-5"),
        (
            r#"{"version": 1, "cron": "0 9 * * 7", "dialect": "unix", "zone": "Asia/Tokyo"}"#,
            "unix 0 9 * * 7 in Asia/Tokyo",
        ),
        (r#"{"every": "10m"}"#, "every 10m"),
        (r#"{"every": "10m", "from": "2026-01-05T09:30:00Z"}"#, "every 10m from 2026-01-05T09:30:00Z"),
        (r#"{"delay": "00:10:00"}"#, "delay 10m"),
        (r#"{"at": "2026-03-29T02:30:00Z"}"#, "at 2026-03-29T02:30:00Z"),
        (r#"{"at": ["2026-03-29T02:30:00Z"]}"#, "at 2026-03-29T02:30:00Z"),
        (r#"{"daily": ["09:30"], "zone": "Asia/Tokyo"}"#, "daily 09:30 in Asia/Tokyo"),
        (r#"{"weekly": {"mon-fri": ["09:30"], "sat": ["10:00"]}}"#, "weekly mon-fri 09:30; sat 10:00"),
    ] {
        assert_eq!(json(text).unwrap(), parse(line), "{text}");
    }
    for (text, words) in [
        ("{}", "schedule: 0 rules; expected exactly one of cron, every"),
        (r#"{"cron": "* * * * *", "every": "1m"}"#, "schedule: 2 rules"),
        (
            r#"{"cron": "* * * * 8"}"#,
            "weekday at column 9: 8 is out of range; expected 0 to 6, or Sun to Sat",
        ),
        (r#"{"every": "24:00:00"}"#, "every at column 1: `24:00:00` means 24 days"),
        (r#"{"every": "1m", "dialect": "unix"}"#, "dialect: this kind of rule has none"),
        (r#"{"cron": "* * * * *", "from": "2026-01-05T09:30:00Z"}"#, "from: this kind of rule has none"),
        (r#"{"version": 2, "every": "1m"}"#, "version: 2 is not supported by this version; write 1"),
        (r#"{"every": "1m", "color": "red"}"#, "unknown field `color`"),
        (r#"{"every": "1m", "zone": "Mars"}"#, "zone: \"Mars\" is not a zone"),
        (r#"{"every": "1m", "jitter": "2d"}"#, "jitter: 2d is too long"),
        (r#"{"every": "1m", "except": ["someday"]}"#, "except: \"someday\" is not a day"),
        (r#"{"every": "1m", "most_runs": 0}"#, "most_runs: 0 runs"),
        (r#"{"every": 60}"#, "invalid type: integer `60`, expected a string"),
        ("60", "invalid type: integer `60`, expected a schedule as text or as an object"),
        (r#""soon""#, "schedule: \"soon\" is not a schedule"),
    ] {
        let found = json(text).unwrap_err();
        assert!(found.starts_with(words), "{text}: {found}");
    }
}

/// The JSON is stored: what is written today has to be read for ever.
#[test]
fn the_stored_form_does_not_change() {
    let bounds = Bounds {
        starts_at: Some(at("2026-01-01T00:00:00Z")),
        ends_at: Some(at("2027-01-01T00:00:00Z")),
        most_runs: Some(9),
    };
    let schedule = parse("unix 0 9 L * ? in Europe/Berlin").within(bounds).unwrap();
    let schedule = schedule.except(Calendar::of(["2026-12-31", "sun", "01-31"]).unwrap()).unwrap();
    let schedule = schedule.with_jitter(Jitter::within(Duration::from_secs(30)).unwrap());
    let stored = r#"{"version":1,"cron":"0 9 L * ?","dialect":"unix","zone":"Europe/Berlin","starts_at":"2026-01-01T00:00:00.000000Z","ends_at":"2027-01-01T00:00:00.000000Z","most_runs":9,"jitter":"30s","except":["sun","01-31","2026-12-31"]}"#;
    assert_eq!(serde_json::to_string(&schedule).unwrap(), stored);
    assert_eq!(json(stored).unwrap(), schedule);
    for (text, stored) in [
        (
            "every 90s from 2026-01-05T09:30:00Z",
            r#"{"version":1,"every":"1m30s","from":"2026-01-05T09:30:00.000000Z"}"#,
        ),
        ("delay 1h", r#"{"version":1,"delay":"1h"}"#),
        ("at 2026-01-05T09:30:00Z", r#"{"version":1,"at":["2026-01-05T09:30:00.000000Z"]}"#),
        ("daily 09:30, 17:00", r#"{"version":1,"daily":["09:30","17:00"]}"#),
        (
            "weekly mon,wed 09:30; sun 10:00",
            r#"{"version":1,"weekly":{"mon,wed":["09:30"],"sun":["10:00"]}}"#,
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=DAILY",
            r#"{"version":1,"rrule":"DTSTART:20260105T093000 RRULE:FREQ=DAILY"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&parse(text)).unwrap(), stored);
    }
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let instant = (0_i64..4_000_000_000_000_000).prop_map(|micros| Timestamp::from_micros(micros).unwrap());
    let every = (1_000_u64..1_000_000_000, proptest::option::of(instant)).prop_map(|(millis, from)| {
        let every = Every::new(Duration::from_millis(millis)).unwrap();
        Rule::Every(from.map_or(every, |from| every.anchored_at(from)))
    });
    let times =
        proptest::collection::vec((0_usize..7, 0_u32..24, 0_u32..60, 0_u32..60), 1..20).prop_map(|list| {
            let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
            let entry = |(day, hour, minute, second): (usize, u32, u32, u32)| {
                (days[day], vec![format!("{hour:02}:{minute:02}:{second:02}")])
            };
            Rule::Times(Times::weekly(list.into_iter().map(entry)).unwrap())
        });
    let cron = (0..60, 0..24, 1..29, 1..13, 0..7, any::<bool>()).prop_map(
        |(minute, hour, day, month, weekday, unix)| {
            let dialect = if unix { Dialect::Unix } else { Dialect::Ncrontab };
            Rule::Cron(Cron::parse(dialect, &format!("{minute} {hour} {day} {month} {weekday}")).unwrap())
        },
    );
    prop_oneof![every, times, cron]
}

proptest! {
    #[test]
    fn text_and_json_bring_a_schedule_back(rule in any_rule(), zone in prop_oneof![Just("UTC"), Just("Asia/Tokyo")]) {
        let schedule = Schedule::new(rule).in_zone(Zone::named(zone).unwrap()).unwrap();
        prop_assert_eq!(&parse(&schedule.to_string()), &schedule);
        let stored = serde_json::to_string(&schedule).unwrap();
        prop_assert_eq!(&json(&stored).unwrap(), &schedule);
        prop_assert!(!schedule.describe().is_empty());
    }

    #[test]
    fn no_text_makes_a_panic(text in r"[ -~]{0,40}") {
        let _ = Schedule::parse(&text);
        let _ = Schedule::parse(&format!("unix {text}"));
        let _ = Schedule::parse(&format!("every {text}"));
        let _ = Schedule::parse(&format!("weekly {text}"));
        let _ = Schedule::parse(&format!("DTSTART:20260105T093000 RRULE:{text}"));
    }

    #[test]
    fn what_nearly_is_cron_makes_no_panic(fields in proptest::collection::vec(r"[0-9*,/LW#?A-Z-]{1,6}", 5..7)) {
        let text = fields.join(" ");
        for dialect in [Dialect::Unix, Dialect::Ncrontab] {
            if let Ok(cron) = Cron::parse(dialect, &text) {
                let schedule = Schedule::new(Rule::Cron(cron));
                prop_assert!(schedule.next_after(at("2026-01-01T00:00:00Z")).is_some());
                prop_assert!(!schedule.describe().is_empty());
            }
        }
    }

    /// Slots are strictly after what was asked for, in order, and the same however they are asked for.
    #[test]
    fn slots_are_in_order_and_none_is_between(
        rule in any_rule(),
        after in 0_i64..4_000_000_000_000_000,
        within in 0.0_f64..1.0,
    ) {
        let schedule = Schedule::new(rule).in_zone(Zone::named("Europe/Berlin").unwrap()).unwrap();
        let after = Timestamp::from_micros(after).unwrap();
        let first = schedule.next_after(after).unwrap();
        prop_assert!(first > after);
        let somewhere = after.after(first.since(after).mul_f64(within * 0.999));
        prop_assert_eq!(schedule.next_after(somewhere.max(after)), Some(first));
        prop_assert_eq!(schedule.latest(first).map(|slot| slot.at), Some(first));
        let second = schedule.next_after(first).unwrap();
        prop_assert!(second > first);
        let before_second = second.before(Duration::from_micros(1));
        prop_assert_eq!(schedule.latest(before_second).map(|slot| slot.at), Some(first));
    }
}
