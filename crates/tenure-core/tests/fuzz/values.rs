//! Times, IDs, names, keys and JSON.

use serde_json::Value;
use tenure_core::{
    HostId, JobId, Key, Kind, LeaseId, LeaseName, QueueName, Timestamp, check_portable, depth_of,
};

use super::target;

/// Checks that a value prints as text that is the same value.
fn printed<T>(text: &str) -> String
where
    T: std::str::FromStr + ToString + PartialEq + std::fmt::Debug,
    T::Err: ToString,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse().ok(), Some(value), "{printed}");
            "valid".to_owned()
        }
        Err(invalid) => {
            let told = invalid.to_string();
            assert!(told.len() <= 1_000, "an error of {} bytes", told.len());
            told
        }
    }
}

#[test]
fn a_time_prints_as_the_same_time() {
    let words = &[
        "2026-03-29",
        "T02:30:00",
        ".000001",
        "Z",
        "+02:00",
        "-14:00",
        "+14:01",
        "[Europe/Berlin]",
        "9998",
        "1970",
    ];
    target("timestamp").words(words).check_text(printed::<Timestamp>);
}

#[test]
fn an_id_prints_as_the_same_id() {
    let words = &["019a20712-29aa-7000-8000-00000000451a", "-", "urn:uuid:", "{", "}", "f"];
    target("id")
        .words(words)
        .check_text(|text| printed::<JobId>(text) + &printed::<HostId>(text) + &printed::<LeaseId>(text));
}

#[test]
fn a_name_is_kept_as_it_is_or_refused() {
    let words = &["mail", "tenure.", ".", "/", ":", "_", "-", "é"];
    target("name").words(words).check_text(|text| {
        let kind = Kind::new(text).map(|kind| assert_eq!(kind.as_str(), text));
        let queue = QueueName::new(text).map(|queue| assert_eq!(queue.as_str(), text));
        let lease = LeaseName::new(text).map(|lease| assert_eq!(lease.as_str(), text));
        let key = text.parse::<Key>().map(|key| assert_eq!(key.as_str(), text));
        [kind, queue, lease, key]
            .map(|done| done.err().map_or("valid".to_owned(), |invalid| invalid.to_string()))
            .concat()
    });
}

/// Returns the depth of a parsed value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The scan does not parse; on JSON it agrees with the parser.
#[test]
fn the_scan_of_json_agrees_with_the_parser() {
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\":",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\\u0061\":",
        "1e400",
        "-0",
        "true",
        "null",
        "\"\\\\\"",
        "[[[[",
        "{\"a\":{\"a\":",
    ];
    target("json").words(words).check(|input| {
        let checked = check_portable("args", input);
        let Ok(value) = serde_json::from_slice::<Value>(input) else {
            return checked.map_or_else(|invalid| invalid.to_string(), |()| "no JSON".to_owned());
        };
        assert_eq!(depth_of(input), depth(&value));
        match checked {
            Ok(()) => {
                let written = serde_json::to_vec(&value).unwrap();
                assert_eq!(check_portable("args", &written), Ok(()));
                format!("valid {}", depth(&value))
            }
            Err(invalid) => invalid.to_string(),
        }
    });
}
