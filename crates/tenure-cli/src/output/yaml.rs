//! Documents as YAML. Numbers stay sign by sign as the server says them.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A document as YAML, without a line break at its end; the document itself if it is no JSON.
pub(super) fn yaml(document: &str) -> String {
    let mut text = String::new();
    match serde_json::from_str::<&RawValue>(document) {
        Ok(raw) => put(&mut text, raw, 0),
        Err(_) => text.push_str(document),
    }
    text.trim_end().to_owned()
}

/// What stands behind a key, a dash, or at the beginning.
fn put(text: &mut String, raw: &RawValue, depth: usize) {
    let raw = raw.get();
    if let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw)
        && !fields.is_empty()
    {
        for (index, (name, value)) in fields.into_iter().enumerate() {
            begin(text, index, depth);
            text.push_str(&format!("{}:", plain(&name)));
            behind(text, value, depth);
        }
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw)
        && !items.is_empty()
    {
        for (index, item) in items.into_iter().enumerate() {
            begin(text, index, depth);
            text.push('-');
            text.push(' ');
            put(text, item, depth + 1);
            end(text);
        }
    } else if let Ok(value) = serde_json::from_str::<String>(raw) {
        text.push_str(&plain(&value));
    } else {
        text.push_str(&raw.split_whitespace().collect::<String>());
    }
}

/// A value behind its key: on the same line if it is a single one.
fn behind(text: &mut String, value: &RawValue, depth: usize) {
    let is_list = value.get().starts_with('[') && value.get() != "[]";
    let is_map = value.get().starts_with('{') && value.get() != "{}";
    if is_list || is_map {
        text.push('\n');
        text.push_str(&"  ".repeat(depth + 1));
        put(text, value, depth + 1);
    } else {
        text.push(' ');
        put(text, value, depth);
    }
    end(text);
}

/// The first line of a block stands where its owner is; the others begin so far in.
fn begin(text: &mut String, index: usize, depth: usize) {
    if index > 0 {
        text.push_str(&"  ".repeat(depth));
    }
}

fn end(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A text bare if nobody can take it for anything else, and otherwise in quotes, as JSON writes it, which is YAML too.
fn plain(text: &str) -> String {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '/')
        && text.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_./".contains(sign))
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_its_meaning() {
        let document = r#"{"a":{"n":1.10,"list":[1,{"x":"y","z":[]},[2,3]],"none":{}},"b":"no","c":"a: b","d":null,"e f":"two\nlines"}"#;
        assert_eq!(
            yaml(document),
            "a:\n  list:\n    - 1\n    - x: \"y\"\n      z: []\n    - - 2\n      - 3\n  \"n\": 1.10\n  none: {}\nb: \"no\"\n\
             c: \"a: b\"\nd: null\n\"e f\": \"two\\nlines\""
        );
        assert_eq!((yaml("[]"), yaml("7")), ("[]".to_owned(), "7".to_owned()));
    }
}
