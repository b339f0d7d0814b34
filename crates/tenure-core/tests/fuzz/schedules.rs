//! Schedules, in every form: each prints as text that means the same, and has runs in order.

use tenure_core::Timestamp;
use tenure_core::schedule::{Cron, Dialect, Rrule, Schedule};

use super::target;

/// Runs that are looked at.
const RUNS: usize = 5;

fn from() -> Timestamp {
    "2026-03-28T12:00:00Z".parse().unwrap()
}

/// Checks a schedule, and returns a word for it.
fn check(schedule: &Schedule) -> String {
    let json = serde_json::to_string(schedule).unwrap();
    assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), *schedule, "{json}");
    let mut after = from();
    for run in &schedule.preview(from(), RUNS).next {
        assert!(run.at > after, "{} after {after}", run.at);
        assert_eq!(schedule.next_after(after), Some(run.at));
        after = run.at;
        if !schedule.follows_runs() {
            assert_eq!(schedule.latest(run.at).map(|slot| slot.at), Some(run.at));
        }
    }
    schedule.describe()
}

#[test]
fn a_schedule_prints_as_text_that_means_the_same() {
    let words = &[
        "every ",
        "@every ",
        "delay ",
        "at ",
        "daily ",
        "weekly ",
        "unix ",
        "ncrontab ",
        " from ",
        " in ",
        " or ",
        "CRON_TZ=",
        "TZ=",
        "Europe/Berlin",
        "America/New_York",
        "UTC",
        "10m",
        "1h30m",
        "09:30",
        "mon-fri",
        "sat",
        ", ",
        "; ",
        "1.00:00:00",
        "2026-03-29T02:30:00Z",
        "* * * * *",
        "@daily",
    ];
    target("schedule").words(words).check_text(|text| match text.parse::<Schedule>() {
        Ok(schedule) => {
            let printed = schedule.to_string();
            assert_eq!(printed.parse::<Schedule>().as_ref(), Ok(&schedule), "{printed}");
            check(&schedule)
        }
        Err(bad) => bad.to_string(),
    });
}

#[test]
fn a_cron_expression_prints_as_one_that_means_the_same() {
    let words = &[
        "* ", "? ", "*/", "/", "-", ",", "L", "W", "LW", "#", "JAN", "DEC", "MON", "FRI", "SUN", "7", "31",
        "59", "2099", "0 ", "@yearly", "@daily", "@hourly", "~", "H",
    ];
    target("cron").words(words).check_text(|text| {
        let mut outcome = String::new();
        for dialect in [Dialect::Unix, Dialect::Ncrontab] {
            match Cron::parse(dialect, text) {
                Ok(cron) => {
                    let word = if dialect == Dialect::Unix { "unix" } else { "ncrontab" };
                    let schedule: Schedule = format!("{word} {text}").parse().unwrap();
                    if let Some(normalized) = cron.normalized() {
                        let again = Cron::parse(Dialect::Ncrontab, &normalized).unwrap();
                        assert_eq!(again.normalized().as_deref(), Some(normalized.as_str()), "{text}");
                    }
                    outcome += &check(&schedule);
                }
                Err(bad) => outcome += &bad.to_string(),
            }
        }
        outcome
    });
}

/// A rule may have no run for centuries, or far too many: each answer takes a bounded time.
#[test]
fn a_recurrence_rule_is_answered_in_bounded_time() {
    let words = &[
        "DTSTART:20260105T093000",
        "DTSTART;TZID=Europe/Berlin:20260105T093000",
        " RRULE:",
        "FREQ=",
        "SECONDLY",
        "MINUTELY",
        "HOURLY",
        "DAILY",
        "WEEKLY",
        "MONTHLY",
        "YEARLY",
        ";INTERVAL=",
        ";COUNT=",
        ";UNTIL=20300101T000000Z",
        ";BYDAY=",
        "MO",
        "-1FR",
        "2TU",
        ";BYMONTHDAY=",
        "-31",
        ";BYMONTH=",
        ";BYSETPOS=",
        ";BYYEARDAY=",
        "366",
        ";BYWEEKNO=",
        "53",
        ";BYHOUR=",
        ";BYMINUTE=",
        ";BYSECOND=",
        ";WKST=SU",
        "\nEXDATE:",
        "\nRDATE:",
        "20260105T093000",
        ",",
        "\n ",
        " or ",
    ];
    target("rrule").words(words).check_text(|text| match Rrule::parse(text) {
        Ok((rule, _)) => {
            let printed = rule.to_string();
            let (again, _) = Rrule::parse(&printed).unwrap_or_else(|bad| panic!("{printed}: {bad}"));
            assert_eq!(again.to_string(), printed);
            match text.parse::<Schedule>() {
                Ok(schedule) => check(&schedule),
                Err(bad) => bad.to_string(),
            }
        }
        Err(bad) => bad.to_string(),
    });
}

#[test]
fn a_schedule_in_json_is_written_as_json_that_means_the_same() {
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"version\":1",
        "\"cron\":",
        "\"every\":",
        "\"delay\":",
        "\"at\":",
        "\"daily\":",
        "\"weekly\":",
        "\"rrule\":",
        "\"any_of\":",
        "\"dialect\":\"unix\"",
        "\"from\":",
        "\"zone\":\"Europe/Berlin\"",
        "\"starts_at\":",
        "\"ends_at\":",
        "\"most_runs\":3",
        "\"jitter\":\"5m\"",
        "\"except\":",
        "\"2026-03-29T02:30:00Z\"",
        "\"2026-12-24\"",
        "\"12-24\"",
        "\"sat\"",
        "\"09:30\"",
        "\"10m\"",
        "\"0 9 * * *\"",
    ];
    target("schedule_json").words(words).check_text(|text| match serde_json::from_str::<Schedule>(text) {
        Ok(schedule) => check(&schedule),
        Err(bad) => bad.to_string(),
    });
}
