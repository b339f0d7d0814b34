//! Several rules in one schedule, and years in a cron expression.

use tenure_core::schedule::{ClockChange, Rule, Schedule, Steps, Zone};

use crate::schedule::given::{at, parse, refusal, slots};

#[test]
fn several_rules_fire_in_turn_and_once_where_they_meet() {
    let schedule =
        parse("daily 09:30 or weekly sat 09:30, 12:00 or at 2026-01-02T23:00:00Z in Europe/Berlin");
    assert_eq!(
        slots(&schedule, "2026-01-02T00:00:00Z", 5),
        [
            "2026-01-02T08:30:00Z",
            "2026-01-02T23:00:00Z",
            "2026-01-03T08:30:00Z",
            "2026-01-03T11:00:00Z",
            "2026-01-04T08:30:00Z"
        ]
    );
    assert_eq!(schedule.latest(at("2026-01-03T10:00:00Z")).unwrap().at, at("2026-01-03T08:30:00Z"));
    let hours = schedule.hourly(at("2026-01-03T08:00:00Z"), 4, (&mut 100, &Steps::default()));
    assert_eq!(hours, [Some(1), Some(0), Some(0), Some(1)]);
}

#[test]
fn each_rule_keeps_its_own_end_and_its_own_way_with_clocks() {
    let counted = parse(
        "DTSTART:20260101T090000 RRULE:FREQ=DAILY;COUNT=1 or DTSTART:20260101T100000 RRULE:FREQ=DAILY;COUNT=2",
    );
    assert_eq!(
        slots(&counted, "2026-01-01T00:00:00Z", 9),
        ["2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"]
    );
    // The first rule names a point of the day, the second an interval.
    let both = parse("30 2 * * * or 45 * * * * in Europe/Berlin");
    let found = both.between(at("2026-10-25T00:00:00Z"), at("2026-10-25T01:59:00Z"), 9);
    let found: Vec<_> = found.iter().map(|slot| (slot.at.to_string(), slot.change)).collect();
    let expected = [
        ("2026-10-25T00:30:00.000000Z", ClockChange::First),
        ("2026-10-25T00:45:00.000000Z", ClockChange::First),
        ("2026-10-25T01:45:00.000000Z", ClockChange::Second),
    ];
    assert_eq!(found, expected.map(|(at, change)| (at.to_owned(), Some(change))));
}

#[test]
fn several_rules_are_printed_and_read_again() {
    let text = "daily 09:30 or unix 0 18 LW * * in Europe/Berlin";
    let schedule = parse(text);
    assert_eq!(schedule.to_string(), text);
    let json = serde_json::to_string(&schedule).unwrap();
    assert_eq!(json, r#"{"version":1,"any_of":["daily 09:30","unix 0 18 LW * *"],"zone":"Europe/Berlin"}"#);
    assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), schedule);
    // The zone of a rule is that of all.
    let own = r#"{"any_of": ["daily 09:30", "DTSTART;TZID=Asia/Tokyo:20260101T090000 RRULE:FREQ=DAILY"]}"#;
    assert_eq!(serde_json::from_str::<Schedule>(own).unwrap().zone(), &Zone::named("Asia/Tokyo").unwrap());
    // A list with one rule is that rule.
    assert_eq!(
        serde_json::from_str::<Schedule>(r#"{"any_of": ["daily 09:30"]}"#).unwrap(),
        parse("daily 09:30")
    );
    let rules = |number: usize| vec!["every 1h"; number].join(" or ");
    assert!(matches!(parse(&rules(16)).rule(), Rule::AnyOf(rules) if rules.len() == 16));
    assert_eq!(refusal(&rules(17)), "schedule: too many rules; expected 1 to 16 rules");
    let none = serde_json::from_str::<Schedule>(r#"{"any_of": []}"#).unwrap_err();
    assert!(none.to_string().starts_with("schedule: no rule given"), "{none}");
}

#[test]
fn a_cron_expression_fires_in_its_years_only() {
    let found = |text: &str| slots(&parse(text), "2026-06-01T00:00:00Z", 4);
    assert_eq!(found("0 0 9 1 1 * 2027,2029"), ["2027-01-01T09:00:00Z", "2029-01-01T09:00:00Z"]);
    assert_eq!(found("0 0 9 1 6 * 2026-2027"), ["2026-06-01T09:00:00Z", "2027-06-01T09:00:00Z"]);
    assert_eq!(found("unix 0 0 0 29 2 ? 2026/2")[..2], ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    assert_eq!(found("0 0 9 1 1 * *"), found("0 9 1 1 *"));
    // A year that is over has no run left.
    assert_eq!(found("0 0 9 1 1 * 2025"), [] as [&str; 0]);
    let hours = parse("0 0 * * * * 2027").hourly(at("2026-12-31T22:00:00Z"), 3, (&mut 0, &Steps::default()));
    assert_eq!(hours, [Some(0), Some(0), Some(1)]);
    let normalized = |text: &str| {
        let Rule::Cron(cron) = parse(text).rule().clone() else { panic!("{text}") };
        cron.normalized()
    };
    assert_eq!(normalized("0 0 9 1 1 * 2027"), None, "this form has no years");
    assert_eq!(parse("0 0 9 1 1 * 2100").describe(), "on the 1st of January at 09:00 in 2100, UTC");
    for wrong in ["1969", "2200", "2027-2026", "2027/0", "2027-", "later", "2027,"] {
        assert!(refusal(&format!("0 0 9 1 1 * {wrong}")).starts_with("year at column 13"), "{wrong}");
    }
}
