//! `--json a,b`: some fields of a document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::value::RawValue;
use tenure_http::{Words, description};

use super::safe;
use crate::exit::Failure;
use crate::near::nearest;

/// These fields of a document, or of each that is in a page of them; null stands for one that it has not.
///
/// # Errors
/// A field that no document of its kind has.
pub(super) fn picked(document: &str, fields: &[String]) -> Result<String, Failure> {
    let Ok(all) = serde_json::from_str::<BTreeMap<String, &RawValue>>(document) else {
        return Ok(document.to_owned());
    };
    let items = all.get("items").and_then(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()).ok());
    if let Some(items) = items {
        let each = items.into_iter().map(|item| picked(item.get(), fields));
        return Ok(format!("[{}]", each.collect::<Result<Vec<_>, _>>()?.join(",")));
    }
    if let Some(odd) = fields.iter().find(|name| !all.contains_key(*name)) {
        check(odd, all.keys().map(String::as_str).collect(), fields)?;
    }
    let pairs = fields.iter().map(|name| {
        let value = all.get(name).map_or("null", |value| value.get());
        format!("{}:{value}", serde_json::Value::from(name.as_str()))
    });
    Ok(format!("{{{}}}", pairs.collect::<Vec<_>>().join(",")))
}

/// Refuses what is no field of documents like this one: those that may have all the fields that it has.
fn check(odd: &str, own: BTreeSet<&str>, fields: &[String]) -> Result<(), Failure> {
    let mut known: BTreeSet<&str> = own.clone();
    // Of those that may, the one with the fewest fields is the nearest.
    let alike = shapes().iter().filter(|shape| own.iter().all(|name| shape.contains(*name)));
    if let Some(shape) = alike.min_by_key(|shape| shape.len()) {
        known.extend(shape.iter().map(String::as_str));
    }
    let Some(odd) =
        [odd].into_iter().chain(fields.iter().map(String::as_str)).find(|name| !known.contains(name))
    else {
        return Ok(());
    };
    let near = nearest(odd, known.iter().copied());
    let near = near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean {near}?"));
    let known: Vec<&str> = known.into_iter().collect();
    Err(Failure::Invalid(safe::line(&format!(
        "--json: unknown field \"{odd}\"{near} Fields: {}",
        known.join(", ")
    ))))
}

/// The fields of every document that a server describes.
fn shapes() -> &'static [BTreeSet<String>] {
    static SHAPES: OnceLock<Vec<BTreeSet<String>>> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let described = description(Words::New);
        let schemas = described["components"]["schemas"].as_object();
        let fields = schemas.into_iter().flatten().filter_map(|(_, schema)| schema["properties"].as_object());
        fields.map(|fields| fields.keys().cloned().collect()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked_in_the_order_in_which_they_were_said() {
        let fields = ["b".to_owned(), "a".to_owned()];
        assert_eq!(picked(r#"{"a":1.10,"b":"x","d":2}"#, &fields).unwrap(), r#"{"b":"x","a":1.10}"#);
        let items = r#"{"items":[{"a":1,"b":3},{"b":2,"a":4}]}"#;
        assert_eq!(picked(items, &fields).unwrap(), r#"[{"b":3,"a":1},{"b":2,"a":4}]"#);
        assert_eq!(picked("[1]", &fields).unwrap(), "[1]");
    }

    #[test]
    fn a_field_that_no_document_has_is_refused_and_one_that_may_be_missing_is_null() {
        let job = r#"{"id":"a","kind":"k","queue":"q","state":"queued","attempt":0,"max_attempts":1,"links":{},"meta":{}}"#;
        let pick = |field: &str| picked(job, &["id".to_owned(), field.to_owned()]);
        assert_eq!(pick("progress").unwrap(), r#"{"id":"a","progress":null}"#);
        let refused = pick("stat").unwrap_err();
        assert_eq!(refused.code(), 7);
        let told = refused.to_string();
        assert!(
            told.contains("unknown field \"stat\"; did you mean state?") && told.contains("priority"),
            "{told}"
        );
    }
}
