//! The description as programs that generate clients understand it best: operations in groups, and nothing said in a way
//! that they stumble over.

use serde_json::{Map, Value, json};

use crate::access::{Needs, Scope};
use crate::routes::Endpoint;

/// What a generated client is divided into, and what each part is about.
pub(crate) const GROUPS: [(&str, &str); 8] = [
    ("jobs", "Enqueue, list, watch, cancel and retry jobs"),
    ("workers", "Claim, extend and settle jobs from workers in any language"),
    ("leases", "Hold a name exclusively, with a fencing token"),
    ("queues", "Configure, pause and inspect queues and kinds"),
    ("schedules", "Run jobs on a schedule"),
    ("events", "Events, webhooks and push endpoints"),
    ("access", "Access tokens and the audit log"),
    ("server", "Health, metrics and capabilities"),
];

/// To which of them an operation belongs.
pub(crate) fn group(endpoint: &Endpoint) -> &'static str {
    let by_workers = matches!(endpoint.needs, Needs::One([Scope::Work]));
    if by_workers && !endpoint.path.starts_with("/v1/leases") {
        return "workers";
    }
    match endpoint.path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default() {
        "jobs" | "queue" | "bulk" => "jobs",
        "workers" => "workers",
        "leases" => "leases",
        "queues" | "stats" | "kinds" => "queues",
        "schedules" | "calendar" => "schedules",
        "events" | "webhooks" | "endpoints" => "events",
        "tokens" | "whoami" | "audit" => "access",
        _ => "server",
    }
}

/// Says the same in the way in which generators understand it.
pub(crate) fn say_plainly(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(say_plainly),
        Value::Object(fields) => {
            // Of a field with a default many generators make one that has to be there. So what is meant if it is not said is
            // told in words.
            if let Some(meant) = fields.remove("default") {
                say_default(fields, &meant);
            }
            // In the old words: a schema, or `null`. A type of which `null` is the only value is more than they grasp.
            let nothing = json!({ "enum": [null], "nullable": true });
            if let Some(one) = fields.get("anyOf").and_then(|any| or_nothing(any, &nothing)) {
                fields.remove("anyOf");
                fields.insert("allOf".to_owned(), json!([one]));
                fields.insert("nullable".to_owned(), json!(true));
            }
            if let Some(words) = fields.get("oneOf").and_then(Value::as_array).and_then(|all| words(all)) {
                fields.remove("oneOf");
                fields.insert("type".to_owned(), json!("string"));
                fields.insert("enum".to_owned(), words.keys().cloned().collect());
                let about = fields.entry("description").or_insert_with(|| json!(""));
                let told =
                    words.iter().map(|(word, about)| format!("`{word}`: {}", about.as_str().unwrap_or("")));
                *about = json!(
                    format!("{} {}", about.as_str().unwrap_or(""), told.collect::<Vec<_>>().join(" ")).trim()
                );
            }
            for (name, field) in fields {
                match (name.as_str(), field) {
                    // What stands here are names that were given, whatever they sound like.
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(say_plainly);
                    }
                    (_, field) => say_plainly(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words of which a value is one, and what is told of each: told apart, many generators make a type of each word.
fn words(all: &[Value]) -> Option<Map<String, Value>> {
    let word = |one: &Value| {
        let word = one.get("const").or_else(|| one.get("enum")?.as_array()?.first())?.as_str()?;
        Some((word.to_owned(), one.get("description").cloned().unwrap_or_default()))
    };
    all.iter().map(word).collect()
}

/// What is meant if nothing is said goes without saying if it is nothing.
fn say_default(fields: &mut Map<String, Value>, meant: &Value) {
    let Some(word) = meant.as_str().filter(|word| !word.is_empty()) else { return };
    if let Some(Value::String(about)) = fields.get_mut("description") {
        about.push_str(&format!(" Default: `{word}`."));
    }
}

/// The one schema of two of which the other is `nothing`.
fn or_nothing(any: &Value, nothing: &Value) -> Option<Value> {
    let [one, other] = any.as_array()?.as_slice() else { return None };
    (other == nothing).then(|| one.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_or_null_is_an_object_that_may_be_null() {
        let nothing = json!({ "enum": [null], "nullable": true });
        let mut said = json!({ "anyOf": [{ "$ref": "#/l" }, nothing], "description": "d" });
        say_plainly(&mut said);
        assert_eq!(said, json!({ "allOf": [{ "$ref": "#/l" }], "nullable": true, "description": "d" }));
        let mut other = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        let before = other.clone();
        say_plainly(&mut other);
        assert_eq!(other, before);
    }

    #[test]
    fn what_is_meant_if_nothing_is_said_is_told_in_words_and_a_field_may_have_any_name() {
        let mut said = json!({ "properties": {
            "default": { "type": "array", "default": [] },
            "overlap": { "type": "string", "default": "skip", "description": "If one runs." },
            "spec": { "$ref": "#/s", "default": {} },
        } });
        say_plainly(&mut said);
        assert_eq!(
            said["properties"],
            json!({
                "default": { "type": "array" },
                "overlap": { "type": "string", "description": "If one runs. Default: `skip`." },
                "spec": { "$ref": "#/s" },
            })
        );
    }

    #[test]
    fn a_word_of_some_is_one_of_a_list() {
        for one in [
            json!({ "const": "skip", "description": "None." }),
            json!({ "enum": ["skip"], "description": "None." }),
        ] {
            let mut said =
                json!({ "description": "How.", "oneOf": [one, { "const": "all", "description": "Each." }] });
            say_plainly(&mut said);
            let about = "How. `all`: Each. `skip`: None.";
            assert_eq!(said, json!({ "type": "string", "enum": ["all", "skip"], "description": about }));
        }
    }
}
