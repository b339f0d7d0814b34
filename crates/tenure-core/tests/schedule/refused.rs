//! What is refused, and with which words.

use std::time::Duration;

use tenure_core::schedule::{At, BadSchedule, Bounds, Calendar, Jitter, Schedule};
use tenure_core::{Invalid, Timestamp};

use crate::schedule::given::{at, parse, refusal};

/// T050, T051: the words name the field and the column, and say what to write.
#[test]
fn what_silently_goes_wrong_elsewhere_is_refused_by_field_and_column() {
    for (text, words) in [
        (
            "0 10-5 * * * *",
            "minute at column 3: `10-5` runs backwards, and a range cannot wrap around; write `5-10`, or `10-59,0-5`",
        ),
        (
            "0 0 2 * * Mon-Sun",
            "weekday at column 11: `Mon-Sun` runs backwards, and a range cannot wrap around; write `Mon-Sat,Sun`",
        ),
        (
            "0 0 2 * * Fri-Mon",
            "weekday at column 11: `Fri-Mon` runs backwards, and a range cannot wrap around; write `Fri-Sat,Sun-Mon`",
        ),
        (
            "0 0 22-2 * * *",
            "hour at column 5: `22-2` runs backwards, and a range cannot wrap around; write `2-22`, or `22-23,0-2`",
        ),
        (
            "0 */0 * * * *",
            "minute at column 5: a step of 0 never advances; write 1 or more, or omit the step",
        ),
        (
            "0 */90 * * * *",
            "minute at column 5: a step of 90 is longer than the range, so only 0 would match; write `0`, or `every 90m` for a fixed interval",
        ),
        (
            "0 0 5/20 * * *",
            "hour at column 7: a step of 20 is longer than the range, so only 5 would match; write `5` if that is intended",
        ),
        ("0 0 0 * J *", "month at column 9: `J` is too short for a name; write Jan or Jun or Jul"),
        ("0 0 0 * Ju *", "month at column 9: `Ju` is too short for a name; write Jun or Jul"),
        ("0 0 0 * * M", "weekday at column 11: `M` is too short for a name; write Mon"),
        (
            "0 0 0 * * mondays",
            "weekday at column 11: \"mondays\" is not a valid weekday; write Monday or Mon",
        ),
        ("0 0 0 * * J", "weekday at column 11: \"J\" is not a valid weekday; expected 0 to 6, or Sun to Sat"),
        (
            "0 0 0 30 2 *",
            "day at column 7: this day never occurs in February; use `L` of the unix dialect for the last day of a month",
        ),
        (
            "* * 31 Feb *",
            "day at column 5: this day never occurs in February; use `L` of the unix dialect for the last day of a month",
        ),
        (
            "0 0 31 4,6,9,11 *",
            "day at column 5: this day never occurs in April, June, September, November; use `L` of the unix dialect for the last day of a month",
        ),
        (
            "0 0 0 * * 7",
            "weekday at column 11: 7 is out of range; write 0 for Sunday, or use the unix dialect for 7",
        ),
        ("0 0 0 0 * *", "day at column 7: 0 is out of range; expected 1 to 31"),
        ("0 0 24 * * *", "hour at column 5: 24 is out of range; expected 0 to 23"),
        ("60 * * * * *", "second at column 1: 60 is out of range; expected 0 to 59"),
        (
            "0 0 2 * * ?",
            "weekday at column 11: \"?\" is not a valid weekday; use the unix dialect for `?`, `L`, `W` and `#` in days and weekdays",
        ),
        (
            "0 0 2 L * *",
            "day at column 7: \"L\" is not a valid day; use the unix dialect for `?`, `L`, `W` and `#` in days and weekdays",
        ),
        (
            "H * * * *",
            "minute at column 1: \"H\" is not a valid minute; set a jitter on the schedule to spread its runs",
        ),
        (
            "@daily",
            "cron at column 1: `@daily` belongs to the unix dialect; write `0 0 * * *` or `unix @daily`",
        ),
        (
            "@reboot",
            "cron at column 1: \"@reboot\" is not supported; set `run_on_start` on the schedule to run it when the program starts",
        ),
        ("0 0 0 * * Mon,", "weekday at column 15: empty element in a list; remove the comma"),
        ("0 0 0 * * ,Mon", "weekday at column 11: empty element in a list; remove the comma"),
        ("* 1,2,456 * * *", "hour at column 7: 456 is out of range; expected 0 to 23"),
        ("* 1/Z * * *", "hour at column 5: \"Z\" is not a step; expected a number"),
        ("* 3-l2 * * *", "hour at column 5: \"l2\" is not a valid hour; expected 0 to 23"),
        ("* -5 * * *", "hour at column 3: missing value"),
        ("* 1-2-3 * * *", "hour at column 5: \"2-3\" is not a valid hour; expected 0 to 23"),
        ("* *-5 * * *", "hour at column 3: \"*\" is not a valid hour; expected 0 to 23"),
        ("* +5 * * *", "hour at column 3: \"+5\" is not a valid hour; expected 0 to 23"),
        (
            "* * * *",
            "cron: 4 fields instead of 5 to 7; write [second] minute hour day month weekday [year]; a year needs a second",
        ),
        (
            "0 0 1 1 * 2026",
            "cron at column 11: a year as the 6th field; write 7 fields, with a second before the minute",
        ),
        (
            "0 0 0 1 1 * 26",
            "year at column 13: `26` is not a year or a range of years; expected 1970 to 2199, such as 2027, 2027-2030 or 2027/2",
        ),
        (
            "0 0 0 29 2 * 2027",
            "day at column 7: this day never occurs in February of these years; use `L` of the unix dialect for the last day of a month",
        ),
        (
            "every 1h or delay 10m",
            "schedule: a delay cannot be combined with other rules; use `every` for a fixed interval",
        ),
        (
            "daily 09:30 or noon",
            "schedule: \"noon\" is not a schedule; write a cron expression such as `0 */5 * * * *`, `every 10m`, `daily 09:30`, `weekly mon-fri 09:30`, `delay 10m` or `at 2026-03-29T02:30:00Z`",
        ),
        (
            "DTSTART;TZID=Europe/Berlin:20260101T090000 RRULE:FREQ=DAILY or DTSTART;TZID=Asia/Tokyo:20260101T090000 RRULE:FREQ=DAILY",
            "zone: the rule is in Asia/Tokyo, the schedule in Europe/Berlin",
        ),
        ("   * * bad * *", "day at column 8: \"bad\" is not a valid day; expected 1 to 31"),
        ("ncrontab  * * bad * *", "day at column 15: \"bad\" is not a valid day; expected 1 to 31"),
        ("* * bad * * in Europe/Berlin", "day at column 5: \"bad\" is not a valid day; expected 1 to 31"),
        (
            "* * * * * in Berlin",
            "zone at column 14: \"Berlin\" is not a zone of the IANA database; did you mean Europe/Berlin?",
        ),
        (
            "CRON_TZ=Mars * * * * *",
            "zone at column 9: \"Mars\" is not a zone of the IANA database; write a name such as Europe/Berlin or UTC",
        ),
        (
            "every 24:00:00",
            "interval at column 7: `24:00:00` means 24 days to .NET, not 24 hours; write `1.00:00:00` for 24 hours, or `24.00:00:00` for 24 days",
        ),
        ("every 0s", "interval at column 7: an interval of 0s is too short; expected at least 1 second"),
        ("-00:10:00", "interval at column 1: `-00:10:00` is negative; expected at least 1 second"),
        ("delay -1s", "delay at column 7: `-1s` is negative; expected at least 1 second"),
        (
            "every 101y",
            "interval at column 7: unknown unit `y`; use w, d, h, m, s or ms; write a year as 365d",
        ),
        ("every 40000d", "interval at column 7: `40000d` is too long; expected at most 100 years"),
        (
            "0 0 0 1 1 * 2026 8",
            "cron: 8 fields instead of 5 to 7; write [second] minute hour day month weekday [year]; a year needs a second",
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;INTERVAL=0",
            "INTERVAL at column 43: `0` is out of range; expected 1 to 100000",
        ),
        (
            "daily 9:30, 24:00",
            "daily at column 13: \"24:00\" is not a time of day; expected 00:00 to 23:59:59",
        ),
        (
            "weekly mon-fri 09:30; sam 10:00",
            "weekday at column 23: \"sam\" is not a weekday; write mon, tue, wed, thu, fri, sat or sun",
        ),
        (
            "0 0 * * MON#1",
            "weekday at column 9: \"MON#1\" is not a valid weekday; use the unix dialect for `?`, `L`, `W` and `#` in days and weekdays",
        ),
        (
            "0 0 * * FRIL",
            "weekday at column 9: \"FRIL\" is not a valid weekday; use the unix dialect for `?`, `L`, `W` and `#` in days and weekdays",
        ),
        (
            "unix 0 0 * * MON-FRI#1",
            "weekday at column 14: `MON-FRI#1` counts more than one weekday; write each of them, such as MON#1,TUE#1 or MONL,TUEL",
        ),
        (
            "unix 0 0 L/2 * *",
            "day at column 10: \"L\" is not a valid day; write `L`, `L-3`, `LW` or `15W`, or `?` alone",
        ),
        (
            "unix 0 0 1,? * *",
            "day at column 12: \"?\" is not a valid day; write `L`, `L-3`, `LW` or `15W`, or `?` alone",
        ),
        (
            "unix 0 0 W15 * *",
            "day at column 10: \"W15\" is not a valid day; write `L`, `L-3`, `LW` or `15W`, or `?` alone",
        ),
        (
            "unix 0 ? * * *",
            "hour at column 8: \"?\" is not a valid hour; use `?`, `L`, `W` and `#` in days and weekdays only",
        ),
        ("delay 0", "delay at column 7: \"0\" is not a duration; write a duration such as `10m` or `1h30m`"),
        ("0 0 * * * # comment", "cron at column 11: a comment; remove the comment"),
        ("TZ=Asia/Tokyo 0 0 * * * in UTC", "cron at column 25: two time zones; remove the second time zone"),
        (
            "quartz 0 0 12 * * ?",
            "cron at column 1: \"quartz\" is not a dialect; use `ncrontab` or `unix` before the fields",
        ),
        ("RDATE:20260105T093000Z", "rrule: missing rule; write RRULE:FREQ=DAILY"),
        ("DTSTART:20260105T093000 FREQ=DAILY;", "rrule at column 36: empty part; remove the `;`"),
        (
            "at 2026-03-29T02:30:00",
            "at at column 4: \"2026-03-29T02:30:00\" is not a time; write it with an offset up to ±14:00, such as 2026-03-29T02:30:00Z",
        ),
    ] {
        assert_eq!(refusal(text), words, "{text}");
    }
    assert!(refusal("unix ").starts_with("schedule: nothing after `unix`; write a cron expression"));
    assert_eq!(parse("unix 0 0 Lw * *").describe(), parse("unix 0 0 LW * *").describe());
}

#[test]
fn no_text_and_any_text_are_refused_without_a_panic() {
    for text in [
        "",
        " ",
        "soon",
        "10",
        "*",
        "@",
        "every",
        "every ",
        "delay",
        "at",
        "at ,",
        "daily",
        "weekly",
        "weekly 09:30",
        "unix",
        "in Europe/Berlin",
        "ø ø ø ø ø",
        "every ø",
        "TZ=",
        "CRON_TZ=UTC",
    ] {
        assert!(Schedule::parse(text).is_err(), "{text:?}");
    }
    assert!(refusal(&"* ".repeat(5_000)).contains("10000 bytes"));
    assert!(refusal("soon").contains("such as `0 */5 * * * *`"));
}

#[test]
fn bounds_and_calendars_that_leave_nothing_are_refused() {
    let bounds = |starts_at: &str, ends_at: &str| Bounds {
        starts_at: Some(at(starts_at)),
        ends_at: Some(at(ends_at)),
        most_runs: None,
    };
    let daily = parse("0 12 * * *");
    assert!(daily.clone().within(bounds("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")).is_err());
    assert!(daily.clone().within(bounds("2026-01-01T13:00:00Z", "2026-01-02T11:00:00Z")).is_err());
    assert!(daily.clone().within(bounds("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z")).is_ok());
    assert!(daily.clone().within(Bounds { most_runs: Some(0), ..Bounds::default() }).is_err());
    let week = Calendar::of(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]).unwrap();
    assert!(daily.clone().except(week.clone()).is_err());
    assert!(parse("every 10m").except(week.clone()).is_err());
    assert!(parse("delay 10m").except(week).is_err());
    assert!(parse("0 0 29 2 *").except(Calendar::of(["02-29"]).unwrap()).is_err());
    assert!(daily.except(Calendar::of(["02-29"]).unwrap()).is_ok());
    for wrong in ["2026-02-29", "13-01", "1-1", "someday", ""] {
        assert!(Calendar::of([wrong]).is_err(), "{wrong}");
    }
}

/// Whoever sets a timer is told the field, what was found there, and the limit.
#[test]
fn the_limit_that_was_broken_is_told() {
    let told = |bad: BadSchedule| Invalid::from(bad).to_string();
    let day = Duration::from_secs(86_400);
    let jitter = told(Jitter::within(day * 2).unwrap_err());
    assert_eq!(jitter, "schedule.jitter: 2d is too long; expected at most 1d");
    let none = told(At::new([]).unwrap_err());
    assert_eq!(none, "schedule.at: no time given; expected 1 to 1000 of them");
    let many = (0..1_001).map(|n| Timestamp::EPOCH.after(day * n));
    assert_eq!(told(At::new(many).unwrap_err()), "schedule.at: too many times; expected 1 to 1000 of them");
    let days = (0..10_001).map(|_| "sat");
    let days = told(Calendar::of(days).unwrap_err());
    assert_eq!(days, "schedule.except: too many days; expected at most 10000 of them");
    let bounds = Bounds {
        starts_at: Some(at("2026-01-02T00:00:00Z")),
        ends_at: Some(at("2026-01-01T00:00:00Z")),
        most_runs: None,
    };
    assert_eq!(
        told(parse("0 12 * * *").within(bounds).unwrap_err()),
        "schedule.ends_at: 2026-01-01T00:00:00.000000Z is before the start; expected 2026-01-02T00:00:00.000000Z or later"
    );
    let empty = told(Schedule::parse("").unwrap_err());
    assert!(empty.starts_with("schedule: empty; write a cron expression"), "{empty}");
    let soon = told(Schedule::parse("soon").unwrap_err());
    assert!(soon.starts_with("schedule: \"soon\" is not a schedule; write a cron expression"), "{soon}");
}

#[test]
fn a_zone_that_does_nothing_is_warned_of_and_one_that_parts_days_is_described() {
    for text in ["every 1d in Europe/Berlin", "delay 1h in Europe/Berlin"] {
        let warnings = parse(text).warnings();
        assert_eq!(warnings.len(), 1, "{text}");
        assert!(warnings[0].starts_with("the time zone Europe/Berlin has no effect"), "{warnings:?}");
        let without_saturdays = parse(text).except(Calendar::of(["sat"]).unwrap()).unwrap();
        assert_eq!(without_saturdays.warnings(), Vec::<String>::new());
        let words = without_saturdays.describe();
        assert!(words.contains("Europe/Berlin, except on sat"), "{words}");
    }
    assert_eq!(parse("every 1d").warnings(), Vec::<String>::new());
}
