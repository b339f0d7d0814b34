//! The names of singletons' leases, their scopes and options.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tenure::{AppId, Invalid, Lock, Mode, Scope, Singleton, SingletonOptions};

const METHOD: &str = "N.T.TestJob";

fn host() -> AppId {
    AppId::new("test-host-id").unwrap()
}

fn settings(name: &str) -> Option<String> {
    let known = BTreeMap::from([("var1", "Value1"), ("var2", "Value2"), ("braced", "{P1}")]);
    known.get(name).map(|value| (*value).to_owned())
}

fn lock(singleton: &Singleton, mode: Mode, args: &Value) -> Result<Lock, Invalid> {
    singleton.lock(&host(), METHOD, mode, settings, args)
}

fn alias(singleton: &Singleton, mode: Mode) -> String {
    lock(singleton, mode, &Value::Null).unwrap().alias().to_owned()
}

fn scope(template: &str, args: &Value) -> Result<String, Invalid> {
    let lock = lock(&Singleton::host(template), Mode::Function, args)?;
    Ok(lock.alias().strip_prefix("test-host-id/").unwrap().to_owned())
}

/// T030: every row of the table of lock ids.
#[test]
fn locks_are_printed_as_of_old() {
    assert_eq!(alias(&Singleton::function(), Mode::Function), "test-host-id/N.T.TestJob");
    assert_eq!(alias(&Singleton::function().scope(""), Mode::Function), "test-host-id/N.T.TestJob");
    let scoped = Singleton::function().scope("testscope");
    assert_eq!(alias(&scoped, Mode::Function), "test-host-id/N.T.TestJob.testscope");
    assert_eq!(alias(&Singleton::host("testscope"), Mode::Function), "test-host-id/testscope");
    assert_eq!(alias(&Singleton::function(), Mode::Listener), "test-host-id/N.T.TestJob.Listener");
    assert_eq!(alias(&scoped, Mode::Listener), "test-host-id/N.T.TestJob.testscope.Listener");
}

/// T030: the rows of scope templates.
#[test]
fn scopes_are_filled_in_from_args_and_settings() {
    let args = json!({ "P1": "Test1", "P2": "Test2", "n": 7, "is": true });
    let rows = [
        ("scope{P1}", "scopeTest1"),
        ("scope:{P1}-{P2}", "scope:Test1-Test2"),
        ("{P1}%var2%{P2}%var1%", "Test1Value2Test2Value1"),
        ("{p1}", "Test1"),
        ("{{{P1}}}", "{Test1}"),
        ("a{{b}}c", "a{b}c"),
        ("{ P1 }", "Test1"),
        ("%braced%", "Test1"),
        ("{n}/{is}", "7/true"),
    ];
    for (template, filled) in rows {
        assert_eq!(scope(template, &args).unwrap(), filled, "{template}");
    }
}

/// T030: dotted paths reach into args; an exact name comes before one that differs in its letters.
#[test]
fn a_parameter_is_found_whatever_its_letters_and_inside_of_others() {
    let args = json!({ "Order": { "Customer": 7, "a.b": "inner" }, "a.b": "whole", "x": 1, "X": 2 });
    assert_eq!(scope("{order.customer}", &args).unwrap(), "7");
    assert_eq!(scope("{a.b}", &args).unwrap(), "whole");
    assert_eq!((scope("{x}", &args).unwrap(), scope("{X}", &args).unwrap()), ("1".into(), "2".into()));
    let told = scope("{p}", &json!({ "P": 1 })).unwrap();
    assert_eq!(told, "1");
    let told = scope("{ab}", &json!({ "AB": 1, "Ab": 2 })).unwrap_err().to_string();
    assert!(told.contains("'AB' and 'Ab'"), "{told}");
}

/// T030: what cannot be filled in is an error that says what.
#[test]
fn a_scope_that_cannot_be_filled_in_is_refused() {
    let args = json!({ "list": [1], "none": null, "deep": { "er": {} } });
    let rows = [
        ("{x}", "No value for named parameter 'x'."),
        ("{none}", "No value for named parameter 'none'."),
        ("{deep.other}", "No value for named parameter 'deep.other'."),
        ("{list}", "a list or an object"),
        ("{deep.er}", "a list or an object"),
        ("a%var1", "an unclosed % at 1"),
        ("%unknown%", "%unknown%"),
        ("%%", "%%"),
        ("ab{x", "unclosed { at 2"),
        ("a}b", "unmatched } at 1"),
        ("{}", "empty parameter name at 0"),
        ("{a{b}}", "unclosed { at 0"),
    ];
    for (template, part) in rows {
        let told = scope(template, &args).unwrap_err();
        assert_eq!(told.field, "singleton.scope", "{template}");
        assert!(told.found.contains(part), "{template}: {told}");
    }
}

/// T030: a listener, which no job triggers, has no args: its braces stay.
#[test]
fn a_listener_has_no_args() {
    let braced = Singleton::function().scope("{P1}{{%var1%");
    let alias = lock(&braced, Mode::Listener, &json!({ "P1": "Test1" })).unwrap().alias().to_owned();
    assert_eq!(alias, "test-host-id/N.T.TestJob.{P1}{{Value1.Listener");
}

/// T030: what the attribute of old refused.
#[test]
fn a_host_scope_needs_a_name_and_has_no_listener() {
    let told = |singleton: &Singleton, mode| lock(singleton, mode, &Value::Null).unwrap_err().to_string();
    assert!(told(&Singleton::host(""), Mode::Function).contains("without a name"));
    assert!(told(&Singleton::host("x"), Mode::Listener).contains("listener with a host scope"));
    let nameless = Singleton::function().lock(&host(), "", Mode::Function, settings, &Value::Null);
    assert!(nameless.unwrap_err().to_string().contains("a function without a name"));
}

/// T030: the options of old, their defaults and their ranges.
#[test]
fn options_are_those_of_old_in_the_ranges_of_old() {
    let seconds = Duration::from_secs;
    let good = SingletonOptions::default;
    assert_eq!((good().lock_period, good().listener_lock_period), (seconds(15), seconds(60)));
    assert_eq!(good().lock_acquisition_timeout, None);
    assert_eq!(good().lock_acquisition_polling_interval, seconds(5));
    assert_eq!(good().listener_lock_recovery_polling_interval, Some(seconds(60)));
    good().check().unwrap();
    let none = SingletonOptions { listener_lock_recovery_polling_interval: None, ..good() };
    none.check().unwrap();
    for edge in [15, 60].map(seconds) {
        SingletonOptions { lock_period: edge, listener_lock_period: edge, ..good() }.check().unwrap();
    }

    let wrong = |options: SingletonOptions| options.check().unwrap_err().field;
    let thousandth = Duration::from_millis(1);
    for lock_period in [seconds(15) - thousandth, seconds(60) + thousandth, Duration::ZERO, Duration::MAX] {
        assert_eq!(wrong(SingletonOptions { lock_period, ..good() }), "lock_period");
        let listener = SingletonOptions { listener_lock_period: lock_period, ..good() };
        assert_eq!(wrong(listener), "listener_lock_period");
    }
    let zero = SingletonOptions { lock_acquisition_timeout: Some(Duration::ZERO), ..good() };
    assert_eq!(wrong(zero), "lock_acquisition_timeout");
    let quick = SingletonOptions { lock_acquisition_polling_interval: thousandth * 499, ..good() };
    assert_eq!(wrong(quick), "lock_acquisition_polling_interval");
    let quick = Some(seconds(15) - thousandth);
    let quick = SingletonOptions { listener_lock_recovery_polling_interval: quick, ..good() };
    assert_eq!(wrong(quick), "listener_lock_recovery_polling_interval");
}

/// T030: one singleton may ask for more than the options of old allow, and says so itself.
#[test]
fn a_singleton_may_ask_for_a_lease_of_one_second_to_a_day() {
    let told = |singleton: Singleton| lock(&singleton, Mode::Function, &Value::Null).map(drop);
    for span in [1, 5, 61, 86_400].map(Duration::from_secs) {
        told(Singleton::function().lease(span)).unwrap();
    }
    for span in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(86_401)] {
        assert_eq!(told(Singleton::function().lease(span)).unwrap_err().field, "singleton.lease");
    }
    let zero = Singleton::function().acquire_within(Duration::ZERO);
    assert_eq!(told(zero).unwrap_err().field, "singleton.acquire_within");
}

/// T031: the confusions of old are none any more.
#[test]
fn locks_that_were_printed_alike_are_different_leases() {
    let function = |function: &str, part: &str, mode| {
        let scope = Scope::Function { function: function.to_owned(), part: part.to_owned() };
        Lock::new(host(), scope, mode).unwrap()
    };
    let of_host =
        |name: &str| Lock::new(host(), Scope::Host { name: name.to_owned() }, Mode::Function).unwrap();
    let alike = [
        (function("N.T.A", "B", Mode::Function), function("N.T.A.B", "", Mode::Function)),
        (function("N.T.A", "X.Listener", Mode::Function), function("N.T.A", "X", Mode::Listener)),
        (of_host("N.T.A"), function("N.T.A", "", Mode::Function)),
    ];
    for (one, other) in alike {
        assert_eq!(one.alias(), other.alias());
        assert_ne!(one.name(), other.name());
    }
    let step = of_host("../other/locks");
    assert_eq!(step.name().as_str(), "singleton/test-host-id/host/..%2Fother%2Flocks");
    assert_eq!(of_host("..").name().as_str(), "singleton/test-host-id/host/%2E%2E");
    assert_ne!(of_host("a").name(), of_host("A").name());
}

/// T031: a scope that would make a name too long is refused, not cut.
#[test]
fn a_lock_that_is_too_long_is_refused() {
    let long = Scope::Host { name: "x".repeat(1024) };
    let told = Lock::new(host(), long, Mode::Function).unwrap_err();
    assert!(told.field == "singleton" && told.allowed.contains("1024"), "{told}");
    assert!(told.found.contains("lease name of 1052 bytes"), "{told}");
}

type Parts = (String, bool, String, String, bool);

fn of(parts: &Parts) -> Result<Lock, Invalid> {
    let (app, is_host, function, part, listens) = parts;
    let scope = if *is_host {
        Scope::Host { name: part.clone() }
    } else {
        Scope::Function { function: function.clone(), part: part.clone() }
    };
    Lock::new(AppId::new(app)?, scope, if *listens { Mode::Listener } else { Mode::Function })
}

/// What makes two tuples mean the same: of a host scope the function does not count.
fn meant(parts: &Parts) -> Parts {
    let (app, is_host, function, part, listens) = parts.clone();
    (app, is_host, if is_host { String::new() } else { function }, part, listens)
}

fn parts() -> impl Strategy<Value = Parts> {
    // Few letters, so that two of them often almost meet.
    let text = "[./%A{}\u{e9}\\\\\u{0}2F:Listener]{0,6}|[a-b.]{0,3}|function|listener|host";
    ("a|b|a-b", any::<bool>(), text, text, any::<bool>())
}

proptest! {
    /// T031: two different tuples never give one lease, and the same always does.
    #[test]
    fn different_locks_never_have_one_name(one in parts(), other in parts()) {
        let (Ok(first), Ok(second)) = (of(&one), of(&other)) else { return Ok(()) };
        prop_assert_eq!(first.name() == second.name(), meant(&one) == meant(&other), "{:?} {:?}", one, other);
    }
}
