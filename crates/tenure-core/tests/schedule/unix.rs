//! The dialect of the crontab of Unix.

use crate::schedule::given::{parse, refusal, slots};

fn days(text: &str, after: &str, most: usize) -> Vec<String> {
    slots(&parse(text), after, most).into_iter().map(|slot| slot[5..10].to_owned()).collect()
}

#[test]
fn a_date_matches_by_its_day_or_its_weekday() {
    let after = "2026-02-01T00:00:00Z";
    assert_eq!(days("unix 0 0 13 * FRI", after, 4), ["02-06", "02-13", "02-20", "02-27"]);
    assert_eq!(days("ncrontab 0 0 13 * FRI", after, 2), ["02-13", "03-13"]);
    // What is not given does not count.
    assert_eq!(days("unix 0 0 13 * *", after, 2), ["02-13", "03-13"]);
    assert_eq!(days("unix 0 0 ? * FRI", after, 2), ["02-06", "02-13"]);
    assert_eq!(days("unix 0 0 13 * ?", after, 2), ["02-13", "03-13"]);
    // The weekday saves a day that never comes.
    assert_eq!(days("unix 0 0 30 2 MON", after, 2), ["02-02", "02-09"]);
}

#[test]
fn names_for_whole_expressions() {
    for (name, fields) in [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        let after = "2026-02-03T04:05:06Z";
        let named = parse(&format!("unix {name}"));
        assert_eq!(slots(&named, after, 30), slots(&parse(&format!("unix {fields}")), after, 30), "{name}");
        assert_eq!(named.to_string(), format!("unix {}", name.to_lowercase()));
    }
    assert!(refusal("unix @sometimes").contains("@daily"));
}

#[test]
fn sunday_is_0_and_7() {
    let after = "2026-02-01T12:00:00Z";
    for text in ["7", "0", "SUN", "sunday", "7-7"] {
        assert_eq!(days(&format!("unix 0 0 * * {text}"), after, 2), ["02-08", "02-15"], "{text}");
    }
    assert_eq!(days("unix 0 0 * * 5-7", after, 4), ["02-06", "02-07", "02-08", "02-13"]);
    assert_eq!(days("unix 0 0 * * FRI-SUN", after, 4), ["02-06", "02-07", "02-08", "02-13"]);
    assert_eq!(days("unix 0 0 * * MON-SUN", after, 8).len(), 8);
    assert_eq!(days("unix 0 0 * * SUN-TUE", after, 4), ["02-02", "02-03", "02-08", "02-09"]);
    assert_eq!(days("unix 0 0 * * 0-7", after, 2), ["02-02", "02-03"]);
    assert!(refusal("unix 0 0 * * 5-0").contains("backwards"));
    assert!(refusal("unix 0 0 * * FRI-MON").contains("`Fri-Sat,Sun-Mon`"));
    assert!(refusal("unix 0 0 * * 8").contains("8 is out of range; expected 0 to 7, or Sun to Sat"));
}

#[test]
fn days_from_the_end_of_the_month() {
    let after = "2027-12-31T12:00:00Z";
    assert_eq!(days("unix 0 0 L * *", after, 4), ["01-31", "02-29", "03-31", "04-30"]);
    assert_eq!(days("unix 0 0 L-3 * *", after, 3), ["01-28", "02-26", "03-28"]);
    assert_eq!(days("unix 0 0 1,L * *", after, 4), ["01-01", "01-31", "02-01", "02-29"]);
    // April 2028 ends on a Sunday: its last working day is the 28th.
    assert_eq!(days("unix 0 0 LW * *", after, 4), ["01-31", "02-29", "03-31", "04-28"]);
    // A month of 30 days has no day 30 days before its last.
    assert_eq!(days("unix 0 0 L-30 * *", after, 3), ["01-01", "03-01", "05-01"]);
    assert!(refusal("unix 0 0 L-31 * *").contains("L-1 to L-30"));
    assert!(refusal("unix 0 0 L-30 2 *").contains("this day never occurs in February"));
}

#[test]
fn the_working_day_next_to_a_day() {
    // August 2026: the 1st is a Saturday, the 15th a Saturday, the 16th a Sunday, the 30th a Sunday.
    let after = "2026-07-31T12:00:00Z";
    for (text, expected) in
        [("1W", "08-03"), ("15W", "08-14"), ("16W", "08-17"), ("30W", "08-31"), ("12w", "08-12")]
    {
        assert_eq!(days(&format!("unix 0 0 {text} * *"), after, 1), [expected], "{text}");
    }
    // The 31st of May 2026 is a Sunday at the end of its month; a month without a 31st has none.
    assert_eq!(days("unix 0 0 31W * *", "2026-05-01T00:00:00Z", 2), ["05-29", "07-31"]);
    assert!(refusal("unix 0 0 32W * *").contains("32 is out of range; expected 1 to 31"));
    assert!(refusal("unix 0 0 W * *").contains("\"W\" is not a valid day"));
}

#[test]
fn the_nth_and_the_last_of_a_weekday() {
    let after = "2026-02-01T12:00:00Z";
    assert_eq!(days("unix 0 0 * * FRI#2", after, 2), ["02-13", "03-13"]);
    assert_eq!(days("unix 0 0 * * 5#2,1#1", after, 4), ["02-02", "02-13", "03-02", "03-13"]);
    assert_eq!(days("unix 0 0 * * 0#5", after, 2), ["03-29", "05-31"]);
    assert_eq!(days("unix 0 0 * * 7#5", after, 2), ["03-29", "05-31"]);
    assert_eq!(days("unix 0 0 * * 5L", after, 2), ["02-27", "03-27"]);
    assert_eq!(days("unix 0 0 * * FRIL", after, 2), ["02-27", "03-27"]);
    assert_eq!(days("unix 0 0 1 * MON#1", after, 3), ["02-02", "03-01", "03-02"]);
    for wrong in ["FRI#0", "FRI#6", "FRI#", "#2", "L", "8L", "5#2#3"] {
        assert!(refusal(&format!("unix 0 0 * * {wrong}")).starts_with("weekday at column 14"), "{wrong}");
    }
}

#[test]
fn what_cron_programs_disagree_on_is_refused() {
    assert_eq!(
        refusal("unix 0 0 */2 * MON"),
        "day at column 10: with both day and weekday set, cron programs disagree on `*/2`; write `1-31/2` for \"or\", or use the ncrontab dialect for \"and\""
    );
    assert!(refusal("unix 0 0 1 * */2").contains("`0-6/2`"));
    assert_eq!(days("unix 0 0 */2 * *", "2026-02-01T12:00:00Z", 2), ["02-03", "02-05"]);
}

#[test]
fn six_fields_work_as_well() {
    assert_eq!(
        slots(&parse("unix 15,45 0 0 L * ?"), "2026-02-01T00:00:00Z", 2),
        ["2026-02-28T00:00:15Z", "2026-02-28T00:00:45Z"]
    );
}
