//! The description as programs that generate clients understand it best: operations in groups, and nothing said in a way
//! that they stumble over.

use serde_json::{Map, Value, json};

use crate::access::{Needs, Scope};
use crate::routes::Endpoint;
use crate::wire::shape;

/// What a generated client is divided into, and what each part is about.
pub(crate) const GROUPS: [(&str, &str); 8] = [
    ("jobs", "Enqueue, list, watch, cancel and retry jobs"),
    ("workers", "Claim, extend and settle jobs from workers in any language"),
    ("leases", "Hold a name exclusively, with a fencing token"),
    ("queues", "Configure, pause and inspect queues, limits and kinds"),
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
    if endpoint.path.ends_with("/jobs") {
        return "jobs";
    }
    match endpoint.path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default() {
        "jobs" | "queue" | "bulk" => "jobs",
        "workers" => "workers",
        "leases" => "leases",
        "queues" | "limits" | "stats" | "kinds" => "queues",
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
            say_formats(fields);
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

/// Names the format of IDs and whole numbers. Without one, generators take 32 bits, and do not compile if a limit needs more.
pub(crate) fn say_formats(fields: &mut Map<String, Value>) {
    if matches!(fields.get("pattern").and_then(Value::as_str), Some(shape::ID | shape::CHOSEN_ID)) {
        fields.insert("format".to_owned(), json!("uuid"));
    }
    let is_whole = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "integer"),
        Some(kind) => kind == "integer",
        None => false,
    };
    if is_whole {
        let fits =
            fields.get("maximum").and_then(Value::as_i64).is_some_and(|most| i32::try_from(most).is_ok());
        fields.insert("format".to_owned(), json!(if fits { "int32" } else { "int64" }));
    }
}

/// OpenAPI 3.0 allows `nullable` only beside a type: adds that of the schema which a part refers to.
pub(crate) fn say_types(part: &mut Value, components: &Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(|part| say_types(part, components)),
        Value::Object(fields) => {
            if fields.contains_key("nullable") && !fields.contains_key("type") {
                let path = fields.get("allOf").and_then(|all| all.get(0)?.get("$ref")?.as_str());
                let name = path.and_then(|path| path.rsplit('/').next());
                let kind = name.and_then(|name| components.get(name)?.get("type").cloned());
                fields.insert("type".to_owned(), kind.unwrap_or_else(|| json!("object")));
            }
            fields.values_mut().for_each(|field| say_types(field, components));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Names the words of an enumeration after it, if a longer one has some of them, too: Go has one namespace for all.
pub(crate) fn name_words_apart(components: &mut Value) {
    let Some(schemas) = components.as_object_mut() else { return };
    let words_of = |schema: &Value| -> Vec<String> {
        let words = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
        words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let all: Vec<Vec<String>> = schemas.values().map(words_of).collect();
    for (place, (name, schema)) in schemas.iter_mut().enumerate() {
        let own = &all[place];
        let is_met = all.iter().enumerate().any(|(other, words)| {
            let is_before = (words.len(), place) > (own.len(), other);
            other != place && is_before && words.iter().any(|word| own.contains(word))
        });
        if is_met && let Some(fields) = schema.as_object_mut() {
            let named = own.iter().map(|word| format!("{}_{}", snake(name), word).to_ascii_uppercase());
            fields.insert("x-enum-varnames".to_owned(), named.collect());
        }
    }
}

/// Returns `OneName` as `one_name`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
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
    fn whole_numbers_have_the_format_that_their_limit_needs() {
        let said = |mut said: Value| {
            say_plainly(&mut said);
            said["format"].clone()
        };
        assert_eq!(said(json!({ "type": "integer", "format": "uint32" })), "int64");
        assert_eq!(said(json!({ "type": "integer", "maximum": 4_294_967_295_u32 })), "int64");
        assert_eq!(said(json!({ "type": ["integer", "null"], "format": "uint", "maximum": 1000 })), "int32");
        for id in [shape::ID, shape::CHOSEN_ID] {
            assert_eq!(said(json!({ "type": "string", "pattern": id })), "uuid");
        }
        assert_eq!(said(json!({ "type": "number", "format": "double" })), "double");
    }

    #[test]
    fn two_enumerations_with_one_word_name_it_apart() {
        let mut all = json!({ "CatchUp": { "enum": ["skip", "all"] }, "Overlap": { "enum": ["skip", "allow", "queue"] },
            "Scope": { "enum": ["read"] }, "Job": { "type": "object" } });
        name_words_apart(&mut all);
        assert_eq!(all["CatchUp"]["x-enum-varnames"], json!(["CATCH_UP_SKIP", "CATCH_UP_ALL"]));
        for other in ["Overlap", "Scope", "Job"] {
            assert!(all[other].get("x-enum-varnames").is_none(), "{other}");
        }
    }

    #[test]
    fn what_may_be_null_has_the_type_of_what_it_refers_to() {
        let mut said = json!({ "allOf": [{ "$ref": "#/components/schemas/S" }], "nullable": true });
        say_types(&mut said, &json!({ "S": { "type": "string", "enum": ["a"] } }));
        assert_eq!(said["type"], "string");
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
