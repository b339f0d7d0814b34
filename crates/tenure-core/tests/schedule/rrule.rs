//! Recurrence rules: the examples that their RFC gives, and what is refused.

use tenure_core::schedule::{Rule, Schedule, Zone};

use crate::schedule::given::{parse, refusal, slots};

/// The local dates, or times, of the first slots of a rule in New York.
fn first(start: &str, rule: &str, most: usize, format: &str) -> Vec<String> {
    let schedule = parse(&format!("DTSTART;TZID=America/New_York:{start} RRULE:{rule}"));
    assert_eq!(schedule.zone(), &Zone::named("America/New_York").unwrap());
    let zone = jiff::tz::TimeZoneDatabase::bundled().get("America/New_York").unwrap();
    slots(&schedule, "1990-01-01T00:00:00Z", most)
        .into_iter()
        .map(|slot| {
            slot.parse::<jiff::Timestamp>().unwrap().to_zoned(zone.clone()).strftime(format).to_string()
        })
        .collect()
}

/// Dates of a row, with a year before the first of each: `1997: 9/2 9/3 1998: 1/1`.
fn dates(row: &str) -> Vec<String> {
    let mut year = "";
    let mut dates = Vec::new();
    for word in row.split_whitespace() {
        if let Some(next) = word.strip_suffix(':') {
            year = next;
        } else {
            let (month, day) = word.split_once('/').unwrap();
            dates.push(format!("{year}-{month:0>2}-{day:0>2} 09:00"));
        }
    }
    dates
}

const EXAMPLES: &[(&str, &str, &str)] = &[
    ("19970902", "FREQ=DAILY;COUNT=10", "1997: 9/2 9/3 9/4 9/5 9/6 9/7 9/8 9/9 9/10 9/11"),
    ("19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997: 9/2 9/12 9/22 10/2 10/12"),
    ("19970902", "FREQ=WEEKLY;COUNT=10", "1997: 9/2 9/9 9/16 9/23 9/30 10/7 10/14 10/21 10/28 11/4"),
    (
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        "1997: 9/2 9/9 9/16 9/23 9/30 10/7 10/14 10/21 10/28 11/4 11/11 11/18 11/25 12/2 12/9 12/16 12/23",
    ),
    (
        "19970901",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "1997: 9/1 9/3 9/5 9/15 9/17 9/19 9/29 10/1 10/3 10/13 10/15 10/17 10/27 10/29 10/31 11/10 11/12 11/14 \
         11/24 11/26 11/28 12/8 12/10 12/12 12/22",
    ),
    (
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        "1997: 9/2 9/4 9/16 9/18 9/30 10/2 10/14 10/16",
    ),
    ("19970905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR", "1997: 9/5 10/3 11/7 12/5 1998: 1/2 2/6 3/6 4/3 5/1 6/5"),
    (
        "19970907",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "1997: 9/7 9/28 11/2 11/30 1998: 1/4 1/25 3/1 3/29 5/3 5/31",
    ),
    ("19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997: 9/22 10/20 11/17 12/22 1998: 1/19 2/16"),
    (
        "19970930",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "1997: 9/30 10/1 10/31 11/1 11/30 12/1 12/31 1998: 1/1 1/31 2/1",
    ),
    (
        "19970910",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997: 9/10 9/11 9/12 9/13 9/14 9/15 1999: 3/10 3/11 3/12 3/13",
    ),
    ("19970610", "FREQ=YEARLY;COUNT=6;BYMONTH=6,7", "1997: 6/10 7/10 1998: 6/10 7/10 1999: 6/10 7/10"),
    (
        "19970310",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "1997: 3/10 1999: 1/10 2/10 3/10 2001: 1/10 2/10 3/10 2003: 1/10 2/10 3/10",
    ),
    (
        "19970101",
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "1997: 1/1 4/10 7/19 2000: 1/1 4/9 7/18 2003: 1/1 4/10 7/19 2006: 1/1",
    ),
    ("19970904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997: 9/4 10/7 11/6"),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997: 8/5 8/10 8/19 8/24"),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997: 8/5 8/17 8/19 8/31"),
    ("20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007: 1/15 1/30 2/15 3/15 3/30"),
    ("19970902", "FREQ=DAILY;UNTIL=19970905", "1997: 9/2 9/3 9/4 9/5"),
    ("19970902", "FREQ=DAILY;UNTIL=19970905T090000", "1997: 9/2 9/3 9/4 9/5"),
    ("19970902", "FREQ=DAILY;UNTIL=19970905T085959", "1997: 9/2 9/3 9/4"),
];

/// Rules that go on for ever, with the beginning of what they give.
const ENDLESS: &[(&str, &str, &str)] = &[
    ("19970902", "FREQ=DAILY;INTERVAL=2", "1997: 9/2 9/4 9/6 9/8 9/10"),
    ("19970902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU", "1997: 9/2 9/16 9/30 10/14 10/28 11/11 11/25 12/9 12/23"),
    ("19970928", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997: 9/28 10/29 11/28 12/29 1998: 1/29 2/26"),
    (
        "19970902",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "1997: 9/2 9/9 9/16 9/23 9/30 11/4 11/11 11/18 11/25 1998: 1/6 1/13 1/20 1/27 3/3",
    ),
    ("19970519", "FREQ=YEARLY;BYDAY=20MO", "1997: 5/19 1998: 5/18 1999: 5/17"),
    ("19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997: 5/12 1998: 5/11 1999: 5/17"),
    // The first week of 2026 begins in 2025, and 2020 and 2026 have 53.
    ("20250101", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", "2025: 12/29 2027: 1/4 2028: 1/3 2029: 1/1"),
    ("20190101", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH", "2020: 12/31 2026: 12/31 2032: 12/30"),
    ("20250101", "FREQ=YEARLY;BYWEEKNO=-1;BYDAY=SU", "2025: 12/28 2027: 1/3 2028: 1/2 12/31"),
    ("20260101", "FREQ=YEARLY;WKST=SU;BYWEEKNO=1;BYDAY=SU", "2026: 1/4 2027: 1/3 2028: 1/2 12/31"),
    ("19970313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997: 3/13 3/20 3/27 1998: 3/5 3/12 3/19 3/26 1999: 3/4"),
    ("19970902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998: 2/13 3/13 11/13 1999: 8/13 2000: 10/13"),
    (
        "19970913",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997: 9/13 10/11 11/8 12/13 1998: 1/10 2/7 3/7",
    ),
    (
        "19961105",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996: 11/5 2000: 11/7 2004: 11/2",
    ),
    (
        "19970929",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "1997: 9/29 10/30 11/27 12/30 1998: 1/29 2/26 3/30",
    ),
    ("20240229", "FREQ=YEARLY", "2024: 2/29 2028: 2/29 2032: 2/29"),
    ("20260131", "FREQ=MONTHLY", "2026: 1/31 3/31 5/31 7/31"),
    ("20260105", "FREQ=YEARLY;BYYEARDAY=-1", "2026: 12/31 2027: 12/31"),
];

#[test]
fn the_examples_of_the_rfc_hold() {
    for (start, rule, expected) in EXAMPLES {
        let expected = dates(expected);
        assert_eq!(first(&format!("{start}T090000"), rule, 1_000, "%F %H:%M"), expected, "{rule}");
    }
    for (start, rule, expected) in ENDLESS {
        let expected = dates(expected);
        assert_eq!(first(&format!("{start}T090000"), rule, expected.len(), "%F %H:%M"), expected, "{rule}");
    }
}

#[test]
fn long_examples_of_the_rfc_have_as_many_slots() {
    let number = |start: &str, rule: &str| first(start, rule, 10_000, "%F").len();
    assert_eq!(number("19970902T090000", "FREQ=DAILY;UNTIL=19971224T000000Z"), 113);
    let january = "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA";
    assert_eq!(number("19980101T090000", january), 93);
    assert_eq!(number("19980101T090000", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1"), 93);
    assert_eq!(number("19970902T090000", "FREQ=DAILY;COUNT=10000"), 10_000);
}

#[test]
fn units_shorter_than_a_day() {
    let times = |rule: &str, most| first("19970902T090000", rule, most, "%d %H:%M:%S").join(", ");
    assert_eq!(times("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", 9), "02 09:00:00, 02 12:00:00");
    assert_eq!(
        times("FREQ=MINUTELY;INTERVAL=15;COUNT=6", 9),
        "02 09:00:00, 02 09:15:00, 02 09:30:00, 02 09:45:00, 02 10:00:00, 02 10:15:00"
    );
    assert_eq!(
        times("FREQ=MINUTELY;INTERVAL=90;COUNT=4", 9),
        "02 09:00:00, 02 10:30:00, 02 12:00:00, 02 13:30:00"
    );
    assert_eq!(times("FREQ=SECONDLY;INTERVAL=40;BYSECOND=0,20", 3), "02 09:00:00, 02 09:01:20, 02 09:02:00");
    assert_eq!(
        times("FREQ=HOURLY;INTERVAL=7;BYMINUTE=0,30;BYDAY=WE", 4),
        "03 06:00:00, 03 06:30:00, 03 13:00:00, 03 13:30:00"
    );
    let by_hour = "BYHOUR=9,10,11,12,13,14,15,16";
    let daily = first("19970902T090000", &format!("FREQ=DAILY;{by_hour};BYMINUTE=0,20,40"), 60, "%d %H:%M");
    let minutely = first("19970902T090000", &format!("FREQ=MINUTELY;INTERVAL=20;{by_hour}"), 60, "%d %H:%M");
    assert_eq!(daily, minutely);
    assert_eq!(daily[23..25], ["02 16:40", "03 09:00"]);
}

/// T052: the rule for clock changes goes by the frequency.
#[test]
fn an_hourly_rule_fires_twice_in_an_hour_that_comes_twice_and_a_daily_one_once() {
    let hourly = first("20261101T003000", "FREQ=HOURLY", 4, "%H:%M%z");
    assert_eq!(hourly, ["00:30-0400", "01:30-0400", "01:30-0500", "02:30-0500"]);
    let daily = first("20261031T013000", "FREQ=DAILY", 3, "%d %H:%M%z");
    assert_eq!(daily, ["31 01:30-0400", "01 01:30-0400", "02 01:30-0500"]);
    let gap = first("20260307T023000", "FREQ=DAILY", 3, "%d %H:%M%z");
    assert_eq!(gap, ["07 02:30-0500", "08 03:30-0400", "09 02:30-0400"]);
}

/// RFC 5545: COUNT is the number of occurrences.
#[test]
fn count_counts_occurrences_where_clocks_change() {
    let times = |start: &str, rule: &str| first(start, rule, 20, "%H:%M%z").join(" ");
    let back = times("20261101T000000", "FREQ=HOURLY;COUNT=4");
    assert_eq!(back, "00:00-0400 01:00-0400 01:00-0500 02:00-0500");
    let forward = times("20260308T000000", "FREQ=HOURLY;COUNT=4");
    assert_eq!(forward, "00:00-0500 01:00-0500 03:00-0400 04:00-0400");
    let half_hours = times("20261101T003000", "FREQ=MINUTELY;INTERVAL=30;COUNT=4");
    assert_eq!(half_hours, "00:30-0400 01:00-0400 01:30-0400 01:00-0500");
    // Two times of a day that meet are one occurrence.
    let meeting = first("20260308T023000", "FREQ=DAILY;BYHOUR=2,3;COUNT=3", 20, "%d %H:%M");
    assert_eq!(meeting, ["08 03:30", "09 02:30", "09 03:30"]);
    // The zone of a schedule counts as one of the rule.
    let berlin = parse("DTSTART:20261025T000000 RRULE:FREQ=HOURLY;COUNT=4 in Europe/Berlin");
    let found = slots(&berlin, "2026-01-01T00:00:00Z", 9);
    assert_eq!(found.last().unwrap(), "2026-10-25T01:00:00Z");
    assert_eq!(found.len(), 4);
}

#[test]
fn a_rule_that_rarely_matches_goes_on() {
    let after = |text: &str, from: &str| slots(&parse(text), from, 1);
    let seconds = "DTSTART:20260101T030000 RRULE:FREQ=SECONDLY;INTERVAL=3607;BYHOUR=3;BYMINUTE=0;BYSECOND=0";
    assert_eq!(after(seconds, "2026-01-02T00:00:00Z"), ["2035-11-17T03:00:00Z"]);
    let hours =
        "DTSTART:20260101T030000 RRULE:FREQ=HOURLY;INTERVAL=5;BYHOUR=9;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO";
    assert_eq!(after(hours, "2026-01-01T00:00:00Z"), ["2140-02-29T09:00:00Z"]);
    // Every 27 years, and then on a Friday the 13th.
    let fridays = "DTSTART:20260213T030000 RRULE:FREQ=SECONDLY;INTERVAL=9973;BYMONTHDAY=13;BYDAY=FR;BYHOUR=3;BYMINUTE=0;BYSECOND=0";
    assert_eq!(after(fridays, "2026-02-14T00:00:00Z"), ["4128-08-13T03:00:00Z"]);
}

/// Reading this took 16 times as many steps as reading one rule.
#[test]
fn rules_with_count_share_the_steps_for_reading() {
    let rule = "DTSTART:20260105T000000 RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=10000";
    let rules = |number: usize| vec![rule; number].join(" or ");
    assert!(Schedule::parse(&rules(1)).is_ok());
    let words = "the last of 10000 occurrences is too far from the start, together with those of the other rules; write UNTIL";
    for text in [rules(2), rules(16), format!("{} in Europe/Berlin", rules(16))] {
        assert!(refusal(&text).contains(words), "{}", refusal(&text));
    }
    let json = serde_json::json!({ "any_of": vec![rule; 2], "zone": "Europe/Berlin" }).to_string();
    let refused = serde_json::from_str::<Schedule>(&json).unwrap_err().to_string();
    assert!(refused.contains(words), "{refused}");
    // Rules that were read one by one are counted again, so that what is stored can be read.
    let both = Rule::any_of([parse(rule).rule().clone(), parse(rule).rule().clone()]).unwrap();
    assert!(Schedule::new(both).in_zone(Zone::utc()).is_err());
}

#[test]
fn a_rule_with_count_ends_the_same_in_json() {
    let schedule = parse("DTSTART:20260101T210000 RRULE:FREQ=DAILY;COUNT=2 in America/New_York");
    let stored: Schedule = serde_json::from_str(&serde_json::to_string(&schedule).unwrap()).unwrap();
    assert_eq!(slots(&stored, "2026-01-01T00:00:00Z", 9), ["2026-01-02T02:00:00Z", "2026-01-03T02:00:00Z"]);
}

/// Each of these took seconds to read.
#[test]
fn a_rule_costs_little_to_read() {
    let counted = |rule: &str| format!("DTSTART:20260101T000000 RRULE:{rule};COUNT=10000");
    let once_a_day = counted("FREQ=SECONDLY;INTERVAL=229;BYHOUR=0;BYMINUTE=0;BYSECOND=0");
    assert_eq!(slots(&parse(&once_a_day), "8000-01-01T00:00:00Z", 9_999).len(), 471);
    let positions = vec!["1"; 1_900].join(",");
    let leap_mondays = counted(&format!("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYSETPOS={positions}"));
    let far = "COUNT at column 3884: the last of 10000 occurrences is too far from the start; write UNTIL with the time of the end, or a smaller COUNT";
    assert_eq!(refusal(&leap_mondays), far);
    assert!(refusal(&counted("FREQ=YEARLY;BYDAY=53MO")).contains("too far from the start"));
    assert!(Schedule::parse(&counted("FREQ=YEARLY;INTERVAL=10")).is_ok(), "more than there are years");
    for (rule, words) in [
        ("FREQ=SECONDLY;INTERVAL=60;BYSECOND=1", "rrule: the interval never meets the times of BYHOUR"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4", "rrule: the rule has no occurrence in 1,000 years"),
        ("FREQ=DAILY;BYSETPOS=2", "rrule: the rule has no occurrence in 1,000 years"),
    ] {
        let found = refusal(&format!("DTSTART:20260101T000000 RRULE:{rule}"));
        assert!(found.starts_with(words), "{rule}: {found}");
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_column() {
    let start = "DTSTART:20260105T093000 ";
    for (rule, words) in [
        ("RRULE:FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO at column 43: requires BYDAY"),
        (
            "RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO",
            "BYWEEKNO at column 43: cannot be combined with a number",
        ),
        ("RRULE:FREQ=MONTHLY;BYWEEKNO=20;BYDAY=MO", "BYWEEKNO at column 44: requires FREQ=YEARLY"),
        ("RRULE:FREQ=YEARLY;BYEASTER=1", "rrule at column 43: BYEASTER is not supported"),
        (
            "RRULE:FREQ=DAILY EXDATE:soon",
            "EXDATE at column 42: \"EXDATE:soon\" is not a local time; write EXDATE",
        ),
        (
            "RRULE:FREQ=DAILY EXDATE:20260106T093000Z",
            "EXDATE at column 42: a UTC time, but DTSTART has no time zone; remove the `Z`",
        ),
        (
            "RRULE:FREQ=DAILY RDATE;TZID=Asia/Tokyo:20260106T093000",
            "RDATE at column 42: the time zone Asia/Tokyo is not the one of DTSTART; use the same TZID",
        ),
        ("RRULE:FREQ=DAILY EXRULE:FREQ=WEEKLY", "EXRULE at column 42: EXRULE is not supported; write EXDATE"),
        ("RRULE:FREQ=DAILY DTSTART:20260106T093000", "DTSTART at column 42: more than one start"),
        (
            "RRULE:FREQ=DAILY;COUNT=1 EXDATE:20260105T093000",
            "schedule: with these skipped days and bounds it never runs",
        ),
        (
            "RRULE:FREQ=FORTNIGHTLY",
            "FREQ at column 31: `FORTNIGHTLY` is not a frequency; write SECONDLY to YEARLY",
        ),
        ("RRULE:FREQ=DAILY;FREQ=DAILY", "FREQ at column 42: it occurs twice"),
        ("RRULE:INTERVAL=2", "FREQ: missing"),
        ("RRULE:FREQ=DAILY;INTERVAL=0", "INTERVAL at column 42: `0` is out of range; expected 1 to 100000"),
        ("RRULE:FREQ=DAILY;COUNT=20000", "COUNT at column 42: `20000` is out of range; expected 1 to 10000"),
        ("RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101", "COUNT at column 42: cannot be combined with UNTIL"),
        ("RRULE:FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY at column 43: cannot be combined with FREQ=WEEKLY"),
        ("RRULE:FREQ=WEEKLY;BYDAY=2MO", "BYDAY at column 43: `2MO` counts weekdays"),
        (
            "RRULE:FREQ=MONTHLY;BYDAY=6MO",
            "BYDAY at column 44: `6` is out of range; expected 1 to 5 or -1 to -5",
        ),
        ("RRULE:FREQ=MONTHLY;BYDAY=XX", "BYDAY at column 44: `XX` is not a weekday; write MO"),
        (
            "RRULE:FREQ=MONTHLY;BYMONTHDAY=0",
            "BYMONTHDAY at column 44: `0` is out of range; expected 1 to 31 or -1 to -31",
        ),
        ("RRULE:FREQ=SECONDLY;BYSETPOS=2", "rrule: the interval never meets the times"),
        ("RRULE:FREQ=DAILY;BYHOUR=24", "BYHOUR at column 42: `24` is out of range; expected 0 to 23"),
        (
            "RRULE:FREQ=DAILY;UNTIL=soon",
            "UNTIL at column 42: `SOON` is not an end; write 20261231T235959Z or 20261231",
        ),
        ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "rrule: the rule never matches"),
        ("RRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "rrule: the rule never matches"),
        (
            "RRULE:FREQ=DAILY;UNTIL=20250101T000000Z",
            "schedule: with these skipped days and bounds it never runs",
        ),
        ("RRULE:FREQ=DAILY RRULE:FREQ=DAILY", "rrule at column 42: more than one rule"),
        ("", "rrule: missing rule; write RRULE:FREQ=DAILY"),
        ("nonsense", "rrule at column 25: \"nonsense\" is not a part of a rule"),
    ] {
        let found = refusal(&format!("{start}{rule}"));
        assert!(found.starts_with(words), "{rule}: {found}");
    }
    assert!(refusal("RRULE:FREQ=DAILY").starts_with("DTSTART: missing start"));
    assert!(refusal("DTSTART:20260230T000000 RRULE:FREQ=DAILY").starts_with("DTSTART at column 1"));
    assert!(refusal("DTSTART;TZID=Mars:20260101T000000 RRULE:FREQ=DAILY").starts_with("zone at column 14"));
    let two_zones = "DTSTART;TZID=Europe/Berlin:20260101T000000 RRULE:FREQ=DAILY in Europe/Paris";
    assert_eq!(refusal(two_zones), "zone: the rule is in Europe/Berlin, the schedule in Europe/Paris");
}

#[test]
fn a_rule_is_printed_without_its_zone_and_read_again() {
    let text = "dtstart;tzid=\"Europe/Berlin\":20260105T093000\r\nrrule:freq=weekly;byday=mo,we";
    let schedule = parse(text);
    assert_eq!(
        schedule.to_string(),
        "DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO,WE in Europe/Berlin"
    );
    assert_eq!(parse(&schedule.to_string()), schedule);
    let json = serde_json::to_string(&schedule).unwrap();
    assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), schedule);
    let in_json = r#"{"rrule": "DTSTART;TZID=Europe/Berlin:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO,WE"}"#;
    assert_eq!(serde_json::from_str::<Schedule>(in_json).unwrap(), schedule);
}

#[test]
fn dates_are_taken_from_a_rule_and_added_to_it() {
    let berlin = "DTSTART;TZID=Europe/Berlin:20260105T093000 RRULE:FREQ=DAILY;COUNT=5";
    let found = |dates: &str| slots(&parse(&format!("{berlin} {dates}")), "2026-01-01T00:00:00Z", 9);
    // COUNT counts the occurrences that are taken away, too.
    assert_eq!(
        found("EXDATE:20260105T093000,20260107T093000"),
        ["2026-01-06T08:30:00Z", "2026-01-08T08:30:00Z", "2026-01-09T08:30:00Z"]
    );
    // A time in UTC, one in the zone, and a whole day.
    assert_eq!(
        found("EXDATE:20260105T083000Z EXDATE;TZID=Europe/Berlin:20260106T093000 EXDATE;VALUE=DATE:20260107"),
        ["2026-01-08T08:30:00Z", "2026-01-09T08:30:00Z"]
    );
    // A time that is added may lie before the start, after the end, or meet the rule.
    assert_eq!(
        found(
            "EXDATE;VALUE=DATE:20260106,20260107,20260108,20260109 RDATE:20260102T120000,20260105T093000,20260301T120000"
        ),
        ["2026-01-02T11:00:00Z", "2026-01-05T08:30:00Z", "2026-03-01T11:00:00Z"]
    );
    assert_eq!(found("RDATE:20260201T120000 EXDATE:20260201T120000").len(), 5, "EXDATE wins");
    // Local times that clocks jump over are shifted like those of the rule.
    let change = slots(
        &parse("DTSTART;TZID=Europe/Berlin:20260328T120000 RRULE:FREQ=DAILY;COUNT=1 RDATE:20260329T023000"),
        "2026-01-01T00:00:00Z",
        9,
    );
    assert_eq!(change, ["2026-03-28T11:00:00Z", "2026-03-29T01:30:00Z"]);
}

#[test]
fn a_rule_with_dates_is_printed_and_read_again() {
    let text = "DTSTART;VALUE=DATE;TZID=Europe/Berlin:20260105\r\nRRULE:FREQ=DAILY\r\nRDATE;VALUE=DATE:20260101\r\n\
                EXDATE;VALUE=DATE-TIME:20260107T000000\r\nEXDATE;VALUE=DATE:20260106";
    let schedule = parse(text);
    assert_eq!(
        schedule.to_string(),
        "DTSTART:20260105T000000 RRULE:FREQ=DAILY EXDATE:20260106,20260107T000000 RDATE:20260101T000000 in Europe/Berlin"
    );
    assert_eq!(parse(&schedule.to_string()), schedule);
    assert_ne!(parse("DTSTART:20260105T000000 RRULE:FREQ=DAILY in Europe/Berlin"), schedule);
    let json = serde_json::to_string(&schedule).unwrap();
    assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), schedule);
    assert_eq!(
        schedule.describe(),
        "every day at 00:00, Europe/Berlin, without 2 times of EXDATE, with 1 time of RDATE"
    );
}

#[test]
fn folded_lines_are_joined() {
    let folded = "DTSTART:20260105T093000\r\nRRULE:FREQ=WEE\r\n KLY;BYDAY=MO,\n\tWE\r\n";
    assert_eq!(parse(folded), parse("DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO,WE"));
    let indented = "DTSTART:20260105T093000\n  RRULE:FREQ=WEEKLY\n  EXDATE:20260105T093000";
    assert_eq!(parse(indented), parse("DTSTART:20260105T093000 RRULE:FREQ=WEEKLY EXDATE:20260105T093000"));
}
