//! `--json a,b`: some fields of a document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// These fields of a document, or of each that is in a page of them; null stands for one that it has not.
pub(super) fn picked(document: &str, fields: &[String]) -> String {
    let Ok(all) = serde_json::from_str::<BTreeMap<String, &RawValue>>(document) else {
        return document.to_owned();
    };
    let items = all.get("items").and_then(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()).ok());
    if let Some(items) = items {
        let each: Vec<String> = items.into_iter().map(|item| picked(item.get(), fields)).collect();
        return format!("[{}]", each.join(","));
    }
    let pairs = fields.iter().map(|name| {
        let value = all.get(name).map_or("null", |value| value.get());
        format!("{}:{value}", serde_json::Value::from(name.as_str()))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked_in_the_order_in_which_they_were_said() {
        let fields = ["b".to_owned(), "a".to_owned(), "c".to_owned()];
        assert_eq!(picked(r#"{"a":1.10,"b":"x","d":2}"#, &fields), r#"{"b":"x","a":1.10,"c":null}"#);
        assert_eq!(
            picked(r#"{"items":[{"a":1},{"b":2}]}"#, &fields[..2]),
            r#"[{"b":null,"a":1},{"b":2,"a":null}]"#
        );
    }
}
