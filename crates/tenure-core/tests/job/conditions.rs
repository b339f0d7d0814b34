//! What holds for a job, one by one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{Args, Cause, Condition, End, Failure, Job, State, StateName, Terms};

use super::common::{at, host, new_job, seconds};

fn job(args: &Value) -> Job {
    let mut new = new_job(Terms {
        meta: [("tenant".to_owned(), "Acme Inc".to_owned())].into(),
        tags: vec![tenure_core::Name::new("tag", "vip").unwrap()],
        ..Terms::default()
    });
    new.args = Args::new(args.to_string().into_bytes()).unwrap();
    let mut job = new.accepted(1, at(100));
    job.state = State::Finished { at: at(160), end: End::Failed };
    (job.attempt, job.started, job.holder) = (3, Some(at(130)), Some(host()));
    job.failure = Some(Failure { cause: Cause::Error, message: "Timed Out at smtp".to_owned() });
    job
}

fn holds(condition: Condition) -> bool {
    let holds = condition.holds(&job(&json!({})), at(1_000));
    assert_eq!(Condition::Not(Box::new(condition)).holds(&job(&json!({})), at(1_000)), !holds);
    holds
}

fn arg(args: Value, path: &str, value: Value) -> bool {
    let path = path.split('.').map(str::to_owned).collect();
    Condition::Arg { path, value: value.to_string().into() }.holds(&job(&args), at(1_000))
}

/// SQL can store such args: the check of depth there does not look into strings.
#[test]
fn a_name_that_serde_json_reserves_is_an_ordinary_name_of_stored_args() {
    let mut text = "1".to_owned();
    while text.len() < 200_000 {
        let inner = text.replace('\\', "\\u005c").replace('"', "\\u0022");
        let (open, close) = ("[".repeat(62), "]".repeat(62));
        text = format!(r#"{open}{{"$serde_json::private::RawValue":"{inner}"}}{close}"#);
    }
    let mut job = job(&json!({}));
    job.args = Args::stored(text.as_bytes());
    let value = |path: &[String]| Condition::Arg { path: path.to_vec(), value: "1".into() };
    let mut path = vec!["0".to_owned(); 62];
    assert!(!value(&path).holds(&job, at(1_000)));
    path.push("$serde_json::private::RawValue".to_owned());
    assert!(!value(&path).holds(&job, at(1_000)));
    job.args = Args::stored(br#"{"$serde_json::private::RawValue":"1"}"#);
    let is_text = Condition::Arg { path: path.split_off(62), value: "\"1\"".into() };
    assert!(is_text.holds(&job, at(1_000)), "a text, and not the number in it");
}

#[test]
fn each_condition_looks_at_its_own_part_of_the_job() {
    assert!(holds(Condition::State(StateName::Failed)) && !holds(Condition::State(StateName::Queued)));
    assert!(holds(Condition::KindHolds("AI".into())) && !holds(Condition::KindHolds("sms".into())));
    assert!(holds(Condition::KindBegins("mai".into())) && !holds(Condition::KindBegins("ail".into())));
    assert!(holds(Condition::QueueBegins("ou".into())) && !holds(Condition::QueueBegins("Ou".into())));
    assert!(holds(Condition::Meta { key: "tenant".into(), value: "Acme Inc".into() }));
    assert!(!holds(Condition::Meta { key: "tenant".into(), value: "acme inc".into() }));
    assert!(
        holds(Condition::FailureHolds("timed out".into()))
            && !holds(Condition::FailureHolds("refused".into()))
    );
    assert!(holds(Condition::Attempt(3..=9)) && !holds(Condition::Attempt(4..=9)));
    assert!(holds(Condition::Created(at(100)..=at(100))) && !holds(Condition::Created(at(101)..=at(200))));
    assert!(holds(Condition::Ended(at(160)..=at(160))) && !holds(Condition::Ended(at(0)..=at(159))));
    assert!(
        holds(Condition::Took(seconds(30)..=Duration::MAX))
            && !holds(Condition::Took(seconds(31)..=Duration::MAX))
    );
    let holder = host().to_string();
    assert!(holds(Condition::HolderBegins(holder[..9].to_uppercase())));
    assert!(!holds(Condition::Owner("shop".into())) && !holds(Condition::Timer("nightly".into())));
    let one_of = vec![Condition::Attempt(9..=9), Condition::State(StateName::Failed)];
    assert!(holds(Condition::OneOf(one_of)) && !holds(Condition::OneOf(vec![])));
}

#[test]
fn a_job_that_has_not_ended_did_not_end_at_any_time() {
    let mut job = job(&json!({}));
    job.state = State::Waiting { due: at(5), why: tenure_core::Why::Retry };
    assert!(!Condition::Ended(at(0)..=at(9_999)).holds(&job, at(200)));
    assert!(!Condition::Took(Duration::ZERO..=Duration::MAX).holds(&job, at(200)));
    job.state = State::Running { holder: host(), until: at(300), due: at(5) };
    assert!(Condition::Took(seconds(70)..=seconds(70)).holds(&job, at(200)), "it has run for 70 s by now");
}

#[test]
fn args_are_found_by_path_and_are_of_one_type() {
    let args =
        || json!({"user": {"id": 42, "tags": ["a", 7]}, "id": "42", "list": [{"x": 1.0}], "none": null});
    assert!(arg(args(), "user.id", json!(42)) && arg(args(), "user.id", json!(42.0)));
    assert!(!arg(args(), "user.id", json!("42")), "a number is no text");
    assert!(arg(args(), "id", json!("42")) && !arg(args(), "id", json!(42)));
    assert!(arg(args(), "user.tags", json!("a")) && arg(args(), "user.tags", json!(7)));
    assert!(arg(args(), "user.tags.1", json!(7)) && !arg(args(), "user.tags.0", json!(7)));
    assert!(arg(args(), "list.0.x", json!(1)));
    assert!(arg(args(), "none", json!(null)) && !arg(args(), "missing", json!(null)));
    assert!(!arg(json!([1, 2]), "user", json!(1)) && arg(json!([1, 2]), "1", json!(2)));
    let big = 9_007_199_254_740_993_u64;
    assert!(arg(json!({"n": big}), "n", json!(big)) && !arg(json!({"n": big}), "n", json!(big - 1)));
}

/// A search may name many values, and a job may have a quarter of a megabyte of args.
#[test]
#[allow(clippy::disallowed_methods, reason = "the work of the processor is measured in real time")]
fn many_conditions_on_args_take_little_longer_than_one() {
    let job = job(&json!({"to": 0, "list": vec![1; 60_000]}));
    let took = |count| {
        let arg = Condition::Arg { path: vec!["to".into()], value: "1".into() };
        let any = Condition::OneOf(vec![arg; count]);
        let began = std::time::Instant::now();
        assert!(!any.holds(&job, at(1_000)));
        began.elapsed()
    };
    let (one, many) = (took(1), took(1_000));
    assert!(many < 20 * one + Duration::from_millis(20), "{many:?} for 1,000 values, {one:?} for one");
}

#[test]
fn a_condition_is_the_same_after_a_way_through_text() {
    let condition = Condition::Not(Box::new(Condition::OneOf(vec![
        Condition::Took(seconds(1)..=seconds(2)),
        Condition::Created(at(1)..=at(2)),
        Condition::Arg { path: vec!["a".into()], value: "7".into() },
    ])));
    let text = serde_json::to_string(&condition).unwrap();
    assert_eq!(serde_json::from_str::<Condition>(&text).unwrap(), condition);
}
