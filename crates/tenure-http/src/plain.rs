//! The description as programs that generate clients understand it best: operations in groups, and nothing said in a way
//! that they stumble over.

use serde_json::{Value, json};

use crate::access::{Needs, Scope};
use crate::routes::Endpoint;

/// What a generated client is divided into, and what each part is about.
pub(crate) const GROUPS: [(&str, &str); 7] = [
    ("jobs", "Jobs, from their acceptance to their end"),
    ("workers", "What workers in other languages ask and tell"),
    ("leases", "Names that one program has to itself"),
    ("queues", "What is agreed about queues, and how they stand"),
    ("schedules", "What is done again and again"),
    ("access", "Who may ask, and what was done"),
    ("server", "The server itself"),
];

/// To which of them an operation belongs.
pub(crate) fn group(endpoint: &Endpoint) -> &'static str {
    let by_workers = matches!(endpoint.needs, Needs::One([Scope::Work]));
    if by_workers && !endpoint.path.starts_with("/v1/leases") {
        return "workers";
    }
    match endpoint.path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default() {
        "jobs" | "queue" => "jobs",
        "workers" => "workers",
        "leases" => "leases",
        "queues" | "stats" | "kinds" => "queues",
        "schedules" | "calendar" => "schedules",
        "tokens" | "whoami" | "audit" => "access",
        _ => "server",
    }
}

/// Says the same in the way in which generators understand it.
pub(crate) fn say_plainly(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(say_plainly),
        Value::Object(fields) => {
            // What stands for an object that is left out is told by its fields.
            let is_of_another = fields.contains_key("$ref") || fields.contains_key("allOf");
            if is_of_another && fields.get("default").is_some_and(Value::is_object) {
                fields.remove("default");
            }
            // In the old words: a schema, or `null`. A type of which `null` is the only value is more than they grasp.
            let nothing = json!({ "enum": [null], "nullable": true });
            if let Some(one) = fields.get("anyOf").and_then(|any| or_nothing(any, &nothing)) {
                fields.remove("anyOf");
                fields.insert("allOf".to_owned(), json!([one]));
                fields.insert("nullable".to_owned(), json!(true));
            }
            fields.values_mut().for_each(say_plainly);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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
        let mut said = json!({ "lease": {
            "anyOf": [{ "$ref": "#/l" }, { "enum": [null], "nullable": true }], "description": "d",
        }, "spec": { "allOf": [{ "$ref": "#/s" }], "default": {} }, "default": {}, "other": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": [] } });
        let other = said["other"].clone();
        say_plainly(&mut said);
        assert_eq!(
            said["lease"],
            json!({ "allOf": [{ "$ref": "#/l" }], "nullable": true, "description": "d" })
        );
        assert_eq!((&said["spec"], &said["default"]), (&json!({ "allOf": [{ "$ref": "#/s" }] }), &json!({})));
        assert_eq!(said["other"], other);
    }
}
