//! Cron expressions and their next two slots, from the older systems that are replaced.

use tenure_core::schedule::{Cron, Dialect, Rule};

use crate::schedule::given::{parse, slots};

const BASE: &str = "2024-02-28T23:59:59Z";

/// T050: expressions, how they print, and when they fire.
#[test]
fn expressions_of_the_older_systems_fire_when_they_did() {
    for (text, printed, first, second) in [
        ("0 0 1,2 * * *", "0 0 1-2 * * *", "2024-02-29T01:00:00Z", "2024-02-29T02:00:00Z"),
        ("0 0 1,3 * * *", "0 0 1,3 * * *", "2024-02-29T01:00:00Z", "2024-02-29T03:00:00Z"),
        ("0 5/20 * * * *", "0 5,25,45 * * * *", "2024-02-29T00:05:00Z", "2024-02-29T00:25:00Z"),
        ("0 0 0 13 * 5", "0 0 0 13 * 5", "2024-09-13T00:00:00Z", "2024-12-13T00:00:00Z"),
        ("0 0 0 31 * *", "0 0 0 31 * *", "2024-03-31T00:00:00Z", "2024-05-31T00:00:00Z"),
        ("0 0 0 29 2 *", "0 0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 30 9 * Jan Mon", "0 30 9 * 1 1", "2025-01-06T09:30:00Z", "2025-01-13T09:30:00Z"),
        ("* * * * *", "* * * * *", "2024-02-29T00:00:00Z", "2024-02-29T00:01:00Z"),
        (
            "0 1-59/5 * * * *",
            "0 1,6,11,16,21,26,31,36,41,46,51,56 * * * *",
            "2024-02-29T00:01:00Z",
            "2024-02-29T00:06:00Z",
        ),
    ] {
        let schedule = parse(text);
        assert_eq!(slots(&schedule, BASE, 2), [first, second], "{text}");
        let Rule::Cron(cron) = schedule.rule() else { panic!("{text} is no cron expression") };
        assert_eq!(cron.normalized().unwrap(), printed, "{text}");
        let again = Cron::parse(Dialect::Ncrontab, printed).unwrap();
        assert_eq!(again.normalized().unwrap(), printed, "{printed}");
    }
}

/// T050: which of them name an interval and which points of the day shows where an hour comes twice: an interval fires
/// in both. A list of two hours names points here, though it prints as a range.
#[test]
fn an_expression_with_a_star_a_range_or_a_step_is_an_interval_and_any_other_names_points() {
    // On 1 November 2026 New York has the hour from 01:00 twice.
    let zone = tenure_core::schedule::Zone::named("America/New_York").unwrap();
    let (from, to) = ("2026-11-01T04:59:59Z".parse().unwrap(), "2026-11-01T06:59:59Z".parse().unwrap());
    for (text, fired) in [
        ("0 5/20 * * * *", 6),
        ("* * * * *", 120),
        ("0 1-59/5 * * * *", 24),
        ("0 0 1-2 * * *", 2),
        ("0 0 */1 * * *", 2),
        ("0 0-1 1 * * *", 4),
        ("0 0 1,2 * * *", 1),
        ("0 0 1,3 * * *", 1),
        ("0 0 1 1 * *", 1),
        ("0 30 1 * Nov Sun", 1),
    ] {
        let schedule = parse(text).in_zone(zone.clone()).unwrap();
        assert_eq!(schedule.between(from, to, 1_000).len(), fired, "{text}");
    }
}

/// T050: a base between two seconds.
#[test]
fn a_part_of_a_second_before_a_slot_is_still_before_it() {
    let schedule = parse("* * * * * *");
    assert_eq!(slots(&schedule, "2024-02-28T23:59:59.999Z", 1), ["2024-02-29T00:00:00Z"]);
    assert_eq!(slots(&schedule, "2024-02-29T00:00:00Z", 1), ["2024-02-29T00:00:01Z"]);
    assert_eq!(slots(&schedule, "2024-02-29T00:00:00.000001Z", 1), ["2024-02-29T00:00:01Z"]);
}

#[test]
fn blanks_tabs_case_and_doubles_do_not_matter() {
    let plain = parse("0 30 9 1,15 JAN,MAR MON-FRI");
    for text in [
        "  0  30 9  1,15 jan,mar mon-fri ",
        "0\t30\t9\t1,15\tJanuary,March\tMonday-Friday",
        "0 30 9 15,1,15 Mar,janu 1-3,2-5",
        "ncrontab 0 30 9 1,15 1,3 1-5",
        "NCRONTAB: 0 30 9 1,15 1,3 1-5",
    ] {
        let schedule = parse(text);
        assert_eq!(slots(&schedule, BASE, 50), slots(&plain, BASE, 50), "{text}");
    }
}

/// Friday the 13th and the 29th of February on a Monday: months and years apart, and found at once.
#[test]
fn rare_dates_are_found_and_the_end_of_time_is_an_end() {
    assert_eq!(
        slots(&parse("0 0 29 Feb Mon"), "2017-01-01T00:00:00Z", 3),
        ["2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z", "2112-02-29T00:00:00Z"]
    );
    assert_eq!(slots(&parse("0 0 29 2 *"), "2096-02-29T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
    assert_eq!(slots(&parse("0 0 1 1 *"), "9997-06-01T00:00:00Z", 5), ["9998-01-01T00:00:00Z"]);
    assert_eq!(slots(&parse("0 0 29 Feb Mon"), "9988-03-01T00:00:00Z", 1), [""; 0]);
}
