//! Intervals, bounds, calendars and jitter: what people wish beside the rule.

use std::time::Duration;

use tenure_core::schedule::{Bounds, Calendar, Every, Jitter, Rule, Schedule, Zone};

use crate::schedule::given::{at, parse, slots};

#[test]
fn an_interval_stays_on_its_grid_however_late_it_is_asked() {
    let every = parse("every 10m");
    assert_eq!(slots(&every, "2026-01-01T00:00:00Z", 2), ["2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z"]);
    assert_eq!(slots(&every, "2026-01-01T00:13:37.5Z", 1), ["2026-01-01T00:20:00Z"]);
    let anchored = parse("every 7h from 2026-01-01T01:00:00Z");
    assert_eq!(slots(&anchored, "2026-01-01T00:00:00Z", 2), ["2026-01-01T01:00:00Z", "2026-01-01T08:00:00Z"]);
    // The grid goes on in both directions.
    assert_eq!(slots(&anchored, "2025-12-31T12:00:00Z", 1), ["2025-12-31T18:00:00Z"]);
    assert!(Every::new(Duration::from_micros(1_000_500)).is_err());
}

#[test]
fn a_wait_counts_from_the_end_of_the_run() {
    let delay = parse("delay 10m");
    assert!(delay.follows_runs());
    assert_eq!(slots(&delay, "2026-01-01T00:13:37Z", 1), ["2026-01-01T00:23:37Z"]);
    let bounds = Bounds { starts_at: Some(at("2026-02-01T00:00:00Z")), ..Bounds::default() };
    let delay = delay.within(bounds).unwrap();
    assert_eq!(slots(&delay, "2026-01-01T00:13:37Z", 1), ["2026-02-01T00:00:00Z"]);
    assert_eq!(slots(&delay, "2026-02-01T00:00:00Z", 1), ["2026-02-01T00:10:00Z"]);
}

#[test]
fn instants_come_once_and_in_order() {
    let instants = parse("at 2027-01-01T00:00:00Z, 2026-01-01T00:00:00Z, 2026-01-01T00:00:00Z");
    assert_eq!(slots(&instants, "2020-01-01T00:00:00Z", 9), ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"]);
    assert_eq!(instants.next_after(at("2027-01-01T00:00:00Z")), None);
}

#[test]
fn both_bounds_are_inclusive() {
    let bounds = Bounds {
        starts_at: Some(at("2026-01-01T12:00:00Z")),
        ends_at: Some(at("2026-01-03T12:00:00Z")),
        most_runs: Some(2),
    };
    for text in ["0 12 * * *", "daily 12:00", "every 1d from 2026-01-01T12:00:00Z"] {
        let schedule = parse(text).within(bounds).unwrap();
        assert_eq!(
            slots(&schedule, "2020-01-01T00:00:00Z", 9),
            ["2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z", "2026-01-03T12:00:00Z"],
            "{text}"
        );
        assert_eq!(schedule.latest(at("2030-01-01T00:00:00Z")).unwrap().at, at("2026-01-03T12:00:00Z"));
        assert_eq!(schedule.latest(at("2026-01-01T11:59:59Z")), None);
    }
    assert!(!bounds.are_spent(1) && bounds.are_spent(2) && bounds.are_spent(3));
    assert!(!Bounds::default().are_spent(u64::MAX));
}

#[test]
fn days_of_the_calendar_are_left_out_by_their_local_date() {
    let berlin = Zone::named("Europe/Berlin").unwrap();
    let weekend = Calendar::of(["sat", "sun", "2026-01-06"]).unwrap();
    let schedule = |text: &str| parse(text).in_zone(berlin.clone()).unwrap().except(weekend.clone()).unwrap();
    // Friday the 2nd at 22:59:59 UTC is the last second of that day in Berlin.
    let friday = "2026-01-02T21:59:59Z";
    assert_eq!(
        slots(&schedule("30 * * * *"), friday, 3),
        ["2026-01-02T22:30:00Z", "2026-01-04T23:30:00Z", "2026-01-05T00:30:00Z"]
    );
    assert_eq!(
        slots(&schedule("every 1h"), friday, 3),
        ["2026-01-02T22:00:00Z", "2026-01-04T23:00:00Z", "2026-01-05T00:00:00Z"]
    );
    assert_eq!(slots(&schedule("delay 1h"), "2026-01-02T22:30:00Z", 1), ["2026-01-04T23:00:00Z"]);
    assert_eq!(
        slots(&schedule("daily 12:00"), friday, 3),
        ["2026-01-05T11:00:00Z", "2026-01-07T11:00:00Z", "2026-01-08T11:00:00Z"]
    );
    assert_eq!(
        slots(&schedule("at 2026-01-03T12:00:00Z, 2026-01-05T12:00:00Z"), friday, 3),
        ["2026-01-05T12:00:00Z"]
    );
    let rule = "DTSTART:20260102T120000 RRULE:FREQ=DAILY";
    assert_eq!(slots(&schedule(rule), friday, 2), ["2026-01-05T11:00:00Z", "2026-01-07T11:00:00Z"]);
}

/// In Havana one midnight is skipped and one comes twice; a day that is left out ends all the same.
#[test]
fn a_day_that_is_left_out_ends_where_the_next_begins() {
    let havana = Zone::named("America/Havana").unwrap();
    let except = |day: &str| {
        let schedule = parse("every 30m").in_zone(havana.clone()).unwrap();
        schedule.except(Calendar::of([day]).unwrap()).unwrap()
    };
    // On 8 March 2026 the day begins at 01:00; on 2 November 2025 it begins with an hour that comes twice.
    assert_eq!(slots(&except("2026-03-07"), "2026-03-07T12:00:00Z", 1), ["2026-03-08T05:00:00Z"]);
    assert_eq!(slots(&except("2025-11-01"), "2025-11-01T12:00:00Z", 1), ["2025-11-02T04:00:00Z"]);
    assert_eq!(slots(&except("2025-11-02"), "2025-11-02T03:59:00Z", 1), ["2025-11-03T05:00:00Z"]);
}

#[test]
fn jitter_puts_off_when_a_slot_is_due_and_not_the_slot() {
    let slot = at("2026-01-01T00:00:00Z");
    let plain = parse("0 0 * * *");
    assert_eq!(plain.due("nightly", slot), slot);
    let spread = plain.with_jitter(Jitter::within(Duration::from_secs(600)).unwrap());
    assert_eq!(spread.next_after(at("2025-12-31T12:00:00Z")), Some(slot));
    let due = spread.due("nightly", slot);
    assert!(due > slot && due <= slot.after(Duration::from_secs(600)));
    assert_ne!(due, spread.due("hourly", slot));
}

/// The first and the last instants that there are, on clocks on both sides of the date line.
#[test]
fn the_ends_of_time_are_ends_in_every_zone() {
    use tenure_core::Timestamp;
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin", "UTC"] {
        for text in [
            "* * * * * *",
            "0 12 * * *",
            "0 0 29 2 *",
            "daily 00:00",
            "every 1h",
            "DTSTART:19700101T000000 RRULE:FREQ=YEARLY",
        ] {
            let schedule = parse(text).in_zone(Zone::named(zone).unwrap()).unwrap();
            let first = schedule.next_after(Timestamp::EPOCH).unwrap();
            assert!(first > Timestamp::EPOCH);
            let last = schedule.latest(Timestamp::LAST).unwrap();
            assert_eq!(schedule.next_after(last.at), None, "{text} in {zone}: {last:?}");
            assert_eq!(schedule.next(Timestamp::LAST), None);
        }
    }
}

/// The bound of each question, for rules that are rare, never come again, or are left out day by day.
#[test]
fn questions_are_bounded() {
    let rare = parse("0 0 29 2 1");
    assert_eq!(rare.between(at("1970-01-01T00:00:00Z"), at("9998-01-01T00:00:00Z"), usize::MAX).len(), 301);
    let dense = parse("* * * * * *");
    let all = dense.between(at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"), usize::MAX);
    assert_eq!(all.len(), tenure_core::limits::SLOTS_ASKED);
    let days: Vec<String> = (1..=28).map(|day| format!("02-{day:02}")).collect();
    let left_out = parse("* * * * * 0").except(Calendar::of(days).unwrap()).unwrap();
    assert!(left_out.next_after(at("2026-02-01T00:00:00Z")).is_some());
    assert_eq!(
        Schedule::new(Rule::Every(Every::new(Duration::from_secs(1)).unwrap()))
            .next_after(tenure_core::Timestamp::LAST),
        None
    );
}
