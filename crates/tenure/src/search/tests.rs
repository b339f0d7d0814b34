//! What a search means, and where it is not understood.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{Condition, StateName, Timestamp, limits};

use super::{FIELDS, search};

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn conditions(text: &str) -> Vec<Condition> {
    search(text, now()).unwrap().conditions
}

#[test]
fn an_empty_search_means_all() {
    assert!(search("", now()).unwrap().means_all());
    assert!(search("  \t ", now()).unwrap().means_all());
}

#[test]
fn what_indexes_serve_goes_into_the_lists_of_the_filter() {
    let filter = search("state:failed,cancelled queue:mail kind:a,b tag:x tag:y", now()).unwrap();
    assert_eq!(filter.states, [StateName::Failed, StateName::Cancelled]);
    assert_eq!((filter.queues.len(), filter.kinds.len(), filter.tags.len()), (1, 2, 2));
    assert!(filter.conditions.is_empty(), "{filter:?}");
}

#[test]
fn the_same_field_twice_means_both() {
    let filter = search("kind:a,b kind:b,c", now()).unwrap();
    assert_eq!(filter.kinds.len(), 2);
    assert_eq!(filter.conditions.len(), 1, "the second is looked at job by job");
}

#[test]
fn a_minus_says_that_it_does_not_hold() {
    assert!(
        matches!(&conditions("-tag:test")[..], [Condition::Not(tag)] if matches!(**tag, Condition::Tag(_)))
    );
    assert!(matches!(&conditions("-state:failed,cancelled")[..], [Condition::Not(_)]));
    assert!(search("-state:failed", now()).unwrap().states.is_empty());
}

#[test]
fn values_of_args_are_numbers_truths_and_nothing_unless_they_stand_in_quotes() {
    let value = |text: &str| match conditions(text).pop() {
        Some(Condition::Arg { path, value }) => {
            (path.join("/"), serde_json::from_str::<Value>(value.as_str()).unwrap())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(value("args.user.id:42"), ("user/id".into(), json!(42)));
    assert_eq!(value("args.id:\"42\""), ("id".into(), json!("42")));
    assert_eq!(value("args.on:true").1, json!(true));
    assert_eq!(value("args.on:null").1, json!(null));
    assert_eq!(value("args.name:Ann").1, json!("Ann"));
    assert_eq!(value("args.name:\"Ann \\\"A\\\" Lee\"").1, json!("Ann \"A\" Lee"));
    assert_eq!(value("args.odd:[1]").1, json!("[1]"));
}

#[test]
fn numbers_and_spans_have_bounds_that_count_or_do_not() {
    assert_eq!(conditions("attempt:>2"), [Condition::Attempt(3..=i64::MAX)]);
    assert_eq!(conditions("priority:<=0"), [Condition::Priority(i64::MIN..=0)]);
    assert_eq!(conditions("attempt:2..5"), [Condition::Attempt(2..=5)]);
    assert_eq!(conditions("attempt:3"), [Condition::Attempt(3..=3)]);
    let micro = Duration::from_micros(1);
    assert_eq!(conditions("took:>30s"), [Condition::Took(Duration::from_secs(30) + micro..=Duration::MAX)]);
    assert_eq!(
        conditions("took:<1.5h"),
        [Condition::Took(Duration::ZERO..=Duration::from_secs(5400) - micro)]
    );
}

#[test]
fn a_day_means_all_of_it_and_a_span_is_counted_from_now() {
    let created = |text: &str| {
        let filter = search(text, now()).unwrap();
        let shown = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        (shown(filter.created_from), shown(filter.created_before))
    };
    let day = ("2026-11-20T00:00:00.000000Z".to_owned(), "2026-11-21T00:00:00.000000Z".to_owned());
    assert_eq!(created("created:2026-11-20"), day);
    assert_eq!(created("created:2026-11-20..2026-11-21").1, "2026-11-22T00:00:00.000000Z");
    assert_eq!(created("created:>=2026-11-20 created:<2026-11-21"), day);
    assert_eq!(created("created:-2h").0, "2026-11-23T10:00:00.000000Z");
    assert_eq!(created("created:>-2h").0, "2026-11-23T10:00:00.000001Z");
    assert_eq!(created("created:-3h..-1h").1, "2026-11-23T11:00:00.000001Z");
    assert_eq!(created("created:<-1d").1, "2026-11-22T12:00:00.000000Z");
}

#[test]
fn a_word_alone_is_the_start_of_an_id_or_part_of_a_kind() {
    let expected = vec![Condition::IdBegins("Mail".into()), Condition::KindHolds("Mail".into())];
    assert_eq!(conditions("Mail"), [Condition::OneOf(expected)]);
    let id = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    assert_eq!(search(id, now()).unwrap().ids.len(), 1);
    assert_eq!(search(&format!("id:{id}"), now()).unwrap().ids.len(), 1);
    assert_eq!(search("id:0190f5", now()).unwrap().conditions.len(), 1);
}

#[test]
fn eight_digits_match_the_beginning_or_the_end_of_an_id() {
    let both = |text: &str| vec![Condition::IdBegins(text.into()), Condition::IdBegins(format!("…{text}"))];
    assert_eq!(conditions("id:8c4e5b10"), [Condition::OneOf(both("8c4e5b10"))]);
    assert_eq!(conditions("id:9f02-6a2d8c4e5b10"), [Condition::OneOf(both("9f02-6a2d8c4e5b10"))]);
    assert_eq!(conditions("-id:8c4e5b10"), [Condition::Not(Box::new(Condition::OneOf(both("8c4e5b10"))))]);
    let any = [both("8c4e5b10"), vec![Condition::KindHolds("8c4e5b10".into())]].concat();
    assert_eq!(conditions("8c4e5b10"), [Condition::OneOf(any)]);
    for begin in ["8c4e5b1", "0190f5c2…5b10", "8c4e-5b1", "mail-address"] {
        assert_eq!(conditions(&format!("id:{begin}")), [Condition::IdBegins(begin.into())]);
    }
}

#[test]
fn what_is_not_understood_is_told_with_its_place() {
    let told = |text: &str| {
        let bad = search(text, now()).unwrap_err();
        (bad.at, bad.to_string())
    };
    let (at, words) = told("state:failed quue:mail");
    assert_eq!(at, 14);
    assert!(words.contains("did you mean queue:?"), "{words}");
    assert_eq!(told("state:broken").0, 7);
    assert_eq!(told("queue:mail,,x").0, 12);
    assert_eq!(told("kind:").0, 6);
    assert_eq!((told("args:7").0, told("args.n:>7").0), (1, 8));
    assert!(search("args.n:\">7\"", now()).is_ok());
    assert_eq!(told("error:\"no end").0, 7);
    assert_eq!(told("error:a\"b\"").0, 8);
    for bad in
        ["attempt:x", "attempt:5..2", "created:yesterday", "took:5", "created:>-5", "priority:>", "took:..x"]
    {
        let (at, words) = told(bad);
        assert!(at == bad.find(':').unwrap() + 2 && words.contains("expected a"), "{bad}: {words}");
    }
    assert_eq!(told(&"x".repeat(2_001)).0, 2_001);
}

#[test]
fn a_search_has_a_bounded_number_of_values() {
    let ones = |count| vec!["1"; count].join(",");
    assert!(search(&format!("args.a:{}", ones(limits::SEARCH_VALUES)), now()).is_ok());
    for many in [format!("args.a:{}", ones(33)), format!("args.a:{} -error:x error:y", ones(31))] {
        let bad = search(&many, now()).unwrap_err();
        assert!(
            bad.to_string().ends_with("33 values; expected at most 32 values in all terms together"),
            "{bad}"
        );
        assert_eq!(
            many.chars().nth(bad.at - 1),
            many.chars().last(),
            "it points at the first value too many"
        );
    }
}

#[test]
fn no_text_breaks_it() {
    let signs = ['a', ':', '-', '"', '\\', ',', ' ', '.', '>', '9', 'ø', '\u{0}', 's'];
    let mut seed = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..(seed >> 60) + 2 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(signs[(seed >> 33) as usize % signs.len()]);
            if seed & (1 << 40) != 0 {
                text.push_str(FIELDS[(seed >> 45) as usize % FIELDS.len()].0);
            }
        }
        if let Err(bad) = search(&text, now()) {
            assert!((1..=text.chars().count() + 2).contains(&bad.at), "{text:?}: {bad}");
        }
    }
}
