//! Days on which the clocks change.

use tenure_core::schedule::{ClockChange, Zone};

use crate::schedule::given::{at, local, parse, slots};

const LOS_ANGELES: &str = "America/Los_Angeles";

/// T052: the vectors of the older systems for Los Angeles in 2018. Where they lost or doubled a slot, the row says
/// what happens here.
#[test]
fn los_angeles_in_2018() {
    for (text, after, expected) in [
        (
            "0 30 * * * *",
            "2018-03-11T00:00-08:00",
            "03-11 00:30-08, 03-11 01:30-08, 03-11 03:30-07, 03-11 04:30-07",
        ),
        ("0 30 1 * * *", "2018-03-10T00:00-08:00", "03-10 01:30-08, 03-11 01:30-08, 03-12 01:30-07"),
        (
            "0 */20 * * * *",
            "2018-11-04T00:30-07:00",
            "11-04 00:40-07, 11-04 01:00-07, 11-04 01:20-07, 11-04 01:40-07, 11-04 01:00-08, 11-04 01:20-08, \
             11-04 01:40-08, 11-04 02:00-08",
        ),
        (
            "0 30 * * * *",
            "2018-11-04T00:00-07:00",
            "11-04 00:30-07, 11-04 01:30-07, 11-04 01:30-08, 11-04 02:30-08",
        ),
        ("0 30 1 * * *", "2018-11-03T00:00-07:00", "11-03 01:30-07, 11-04 01:30-07, 11-05 01:30-08"),
        ("0 30 2 * * *", "2018-03-10T12:00-08:00", "03-11 03:30-07, 03-12 02:30-07"),
        ("0 */30 * * * *", "2018-03-11T01:00-08:00", "03-11 01:30-08, 03-11 03:00-07, 03-11 03:30-07"),
        ("0 30 2,3 * * *", "2018-03-11T00:00-08:00", "03-11 03:30-07, 03-12 02:30-07"),
        // Lost in the older system: 02:45, which is at 03:45.
        ("0 15,45 2 * * *", "2018-03-11T00:00-08:00", "03-11 03:15-07, 03-11 03:45-07, 03-12 02:15-07"),
        // Doubled in the older system: 1 o'clock, since it printed the list as a range.
        ("0 0 1,2 * * *", "2018-11-04T00:00-07:00", "11-04 01:00-07, 11-04 02:00-08, 11-05 01:00-08"),
        ("0 0 1-2 * * *", "2018-11-04T00:00-07:00", "11-04 01:00-07, 11-04 01:00-08, 11-04 02:00-08"),
        ("0 0 1,3 * * *", "2018-11-04T00:00-07:00", "11-04 01:00-07, 11-04 03:00-08"),
        ("0 0,30 1 * * *", "2018-11-04T00:00-07:00", "11-04 01:00-07, 11-04 01:30-07, 11-05 01:00-08"),
        ("daily 01:30, 02:30", "2018-11-04T00:00-07:00", "11-04 01:30-07, 11-04 02:30-08"),
        ("daily 01:30, 02:30", "2018-03-11T00:00-08:00", "03-11 01:30-08, 03-11 03:30-07"),
    ] {
        let expected: Vec<&str> = expected.split(", ").collect();
        assert_eq!(local(&parse(text), LOS_ANGELES, after, expected.len()), expected, "{text}");
    }
}

/// T052: the same as waits in hours.
#[test]
fn a_week_is_169_hours_when_the_clocks_go_back_and_167_when_they_jump() {
    let zone = Zone::named(LOS_ANGELES).unwrap();
    let wait = |text: &str, from: &str| {
        let from = at(from);
        let next = parse(text).in_zone(zone.clone()).unwrap().next_after(from).unwrap();
        next.since(from).as_secs() / 60
    };
    assert_eq!(wait("0 0 18 * * 5", "2018-11-02T18:00-07:00"), 169 * 60);
    assert_eq!(wait("0 0 18 * * 5", "2018-03-09T18:00-08:00"), 167 * 60);
    assert_eq!(wait("every 7d from 2018-03-10T02:00:00Z", "2018-03-09T18:00-08:00"), 168 * 60);
    assert_eq!(wait("every 5m", "2018-03-11T01:55-08:00"), 5);
    assert_eq!(wait("0 30 1 * * *", "2018-11-04T01:29-08:00"), 24 * 60 + 1);
    assert_eq!(wait("0 30 1 * * *", "2018-11-04T01:31-07:00"), 24 * 60 + 59);
    assert_eq!(wait("0 30 1 * * *", "2018-11-04T01:30-07:00"), 25 * 60);
    assert_eq!(wait("0 59 * * * *", "2018-03-11T01:59-08:00"), 60);
}

/// T052: the same rules where summer is in January. On 4 October 2026, 02:00 becomes 03:00; on 5 April, 03:00 becomes
/// 02:00.
#[test]
fn sydney_in_2026() {
    for (text, after, expected) in [
        (
            "0 30 * * * *",
            "2026-10-04T00:00+10:00",
            "10-04 00:30+10, 10-04 01:30+10, 10-04 03:30+11, 10-04 04:30+11",
        ),
        ("0 30 2 * * *", "2026-10-03T12:00+10:00", "10-04 03:30+11, 10-05 02:30+11"),
        ("0 */30 * * * *", "2026-10-04T01:00+10:00", "10-04 01:30+10, 10-04 03:00+11, 10-04 03:30+11"),
        ("0 30 2,3 * * *", "2026-10-04T00:00+10:00", "10-04 03:30+11, 10-05 02:30+11"),
        ("0 15,45 2 * * *", "2026-10-04T00:00+10:00", "10-04 03:15+11, 10-04 03:45+11, 10-05 02:15+11"),
        (
            "0 */20 * * * *",
            "2026-04-05T01:30+11:00",
            "04-05 01:40+11, 04-05 02:00+11, 04-05 02:20+11, 04-05 02:40+11, 04-05 02:00+10, 04-05 02:20+10, \
             04-05 02:40+10, 04-05 03:00+10",
        ),
        ("0 30 2 * * *", "2026-04-04T00:00+11:00", "04-04 02:30+11, 04-05 02:30+11, 04-06 02:30+10"),
        ("0 0 2,3 * * *", "2026-04-05T00:00+11:00", "04-05 02:00+11, 04-05 03:00+10, 04-06 02:00+10"),
        ("0 0 2-3 * * *", "2026-04-05T00:00+11:00", "04-05 02:00+11, 04-05 02:00+10, 04-05 03:00+10"),
        ("0 0,30 2 * * *", "2026-04-05T00:00+11:00", "04-05 02:00+11, 04-05 02:30+11, 04-06 02:00+10"),
    ] {
        let expected: Vec<&str> = expected.split(", ").collect();
        assert_eq!(local(&parse(text), "Australia/Sydney", after, expected.len()), expected, "{text}");
    }
}

/// T052: the other hemisphere, and clocks that change by half an hour.
#[test]
fn lord_howe_changes_by_half_an_hour() {
    let zone = "Australia/Lord_Howe";
    let local = |text: &str, after: &str, most| local(&parse(text), zone, after, most);
    // On 4 October 2026, 02:00 becomes 02:30; on 5 April, 02:00 becomes 01:30.
    assert_eq!(local("0 15 2 * * *", "2026-10-03T12:00:00Z", 2), ["10-04 02:45+11", "10-05 02:15+11"]);
    assert_eq!(
        local("0 */15 * * * *", "2026-10-03T15:00:00Z", 4),
        ["10-04 01:45+10:30", "10-04 02:30+11", "10-04 02:45+11", "10-04 03:00+11"]
    );
    assert_eq!(
        local("0 0,45 1 * * *", "2026-04-04T12:00:00Z", 3),
        ["04-05 01:00+11", "04-05 01:45+11", "04-06 01:00+10:30"]
    );
    assert_eq!(
        local("0 45 * * * *", "2026-04-04T14:00:00Z", 3),
        ["04-05 01:45+11", "04-05 01:45+10:30", "04-05 02:45+10:30"]
    );
    assert_eq!(local("0 0 2 * * *", "2026-04-04T12:00:00Z", 2), ["04-05 02:00+10:30", "04-06 02:00+10:30"]);
}

/// In Havana the clocks change at midnight, so that a day begins at 01:00 or has two midnights.
#[test]
fn midnight_can_be_skipped_and_can_come_twice() {
    let local = |text: &str, after: &str, most| local(&parse(text), "America/Havana", after, most);
    assert_eq!(local("0 0 * * *", "2026-03-07T12:00:00Z", 2), ["03-08 01:00-04", "03-09 00:00-04"]);
    assert_eq!(local("0 0 * * *", "2025-11-01T12:00:00Z", 2), ["11-02 00:00-04", "11-03 00:00-05"]);
    assert_eq!(
        local("30 * * * *", "2025-11-02T04:00:00Z", 3),
        ["11-02 00:30-04", "11-02 00:30-05", "11-02 01:30-05"]
    );
}

/// Samoa had no 30 December 2011: it went to the other side of the date line.
#[test]
fn a_whole_day_that_is_skipped_is_shifted_onto_the_next() {
    let local = |text: &str, most| local(&parse(text), "Pacific/Apia", "2011-12-29T22:00:00Z", most);
    assert_eq!(local("30 9 * * *", 2), ["12-31 09:30+14", "01-01 09:30+14"]);
    assert_eq!(local("30 9 30 * *", 2), ["12-31 09:30+14", "01-30 09:30+14"]);
    // Midnight and noon of the 30th are one with those of the 31st.
    assert_eq!(local("0 */12 * * *", 3), ["12-31 00:00+14", "12-31 12:00+14", "01-01 00:00+14"]);
}

#[test]
fn slots_tell_what_the_clocks_did() {
    let change = |text: &str, after: &str| {
        let schedule = parse(text).in_zone(Zone::named("Europe/Berlin").unwrap()).unwrap();
        schedule
            .between(at(after), at("2027-01-01T00:00:00Z"), 2)
            .iter()
            .map(|slot| slot.change)
            .collect::<Vec<_>>()
    };
    assert_eq!(change("30 2 * * *", "2026-03-28T12:00:00Z"), [Some(ClockChange::Shifted), None]);
    assert_eq!(change("30 2 * * *", "2026-10-24T12:00:00Z"), [Some(ClockChange::First), None]);
    assert_eq!(
        change("30 * * * *", "2026-10-25T00:00:00Z"),
        [Some(ClockChange::First), Some(ClockChange::Second)]
    );
    // What is merged is a slot of its own right.
    assert_eq!(change("30 2,3 * * *", "2026-03-28T12:00:00Z"), [None, None]);
    assert_eq!(change("every 1h", "2026-10-25T00:00:00Z"), [None, None]);
}

#[test]
fn the_last_slot_is_found_however_many_were_missed() {
    for (text, by, expected) in [
        ("* * * * * *", "2026-06-01T00:00:00.5Z", "2026-06-01T00:00:00Z"),
        ("0 0 29 2 *", "2031-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 1 * *", "2026-06-01T00:00:00Z", "2026-06-01T00:00:00Z"),
        ("every 1h30m", "1970-01-02T00:00:00Z", "1970-01-02T00:00:00Z"),
        ("30 2 * * * in Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29T01:30:00Z"),
        ("at 2020-01-01T00:00:00Z, 2021-01-01T00:00:00Z", "2020-12-31T00:00:00Z", "2020-01-01T00:00:00Z"),
    ] {
        let latest = parse(text).latest(at(by)).unwrap();
        assert_eq!(crate::schedule::given::show(latest.at), expected, "{text}");
    }
    assert_eq!(parse("at 2020-01-01T00:00:00Z").latest(at("2019-01-01T00:00:00Z")), None);
    assert_eq!(parse("delay 10s").latest(at("2019-01-01T00:00:00Z")), None);
}

/// All that a day in Berlin has, and that nothing in it comes twice or out of order.
#[test]
fn a_day_has_23_24_or_25_hours() {
    let hourly = parse("0 0 * * * *").in_zone(Zone::named("Europe/Berlin").unwrap()).unwrap();
    for (from, to, hours) in [
        ("2026-03-28T22:59:59Z", "2026-03-29T21:59:59Z", 23),
        ("2026-06-01T21:59:59Z", "2026-06-02T21:59:59Z", 24),
        ("2026-10-24T21:59:59Z", "2026-10-25T22:59:59Z", 25),
    ] {
        let slots = hourly.between(at(from), at(to), 100);
        assert_eq!(slots.len(), hours);
        assert!(slots.is_sorted_by(|one, next| one.at < next.at));
    }
    assert_eq!(slots(&hourly, "2026-10-25T00:00:00Z", 2), ["2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]);
}
