//! The parameters of a request: parts of its path, its query and its headers.

use serde_json::{Value, json};
use tenure::limits;

use crate::apps::look;
use crate::callbacks::event;
use crate::once;
use crate::routes::Endpoint;
use crate::wire::shape;

/// Lists whose cursor is the name or ID of an entry.
const BY_NAME: [&str; 8] = [
    "/v1/endpoints",
    "/v1/kinds",
    "/v1/leases",
    "/v1/limits",
    "/v1/queues",
    "/v1/stats",
    "/v1/webhooks",
    "/v1/workers",
];

pub(super) fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let path = endpoint.path;
    let of_path = parts(path).map(|name| parameter(path, name, "path", "Identifier"));
    let of_query = endpoint.takes.query.iter().map(|(name, about)| parameter(path, name, "query", about));
    let wait = "Maximum wait in seconds, as `wait=N`; at most 55";
    let prefer = endpoint.takes.waits.then(|| parameter(path, "Prefer", "header", wait));
    let once = "Repeating a request with the same key within a day returns the first response";
    let once = endpoint.takes.once.then(|| parameter(path, "Idempotency-Key", "header", once));
    let seen = "ETag of the version the client has read; `*` accepts any version";
    let matches = endpoint.takes.matches.then(|| parameter(path, "If-Match", "header", seen));
    of_path.chain(of_query).chain(prefer).chain(once).chain(matches).collect()
}

/// The parts of a path that stand for something.
pub(super) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// A parameter. One name has one shape, wherever it stands; only what goes on behind a page is written as that needs it.
fn parameter(path: &str, name: &str, place: &str, about: &str) -> Value {
    let (schema, are_many) = match name {
        "token_id" => (json!({ "type": "string", "pattern": "^[0-9a-f]{12}$" }), false),
        "webhook_id" => (json!({ "type": "string", "pattern": "^[0-9a-z._-]{1,64}$" }), false),
        "id" => (json!({ "type": "string", "format": "uuid" }), false),
        // In quotation marks, which do not count, or without one at either end.
        "Idempotency-Key" => {
            let (bare, most) = (once::KEY_BYTES - 2, once::KEY_BYTES);
            let visible = format!("^(\"[ -~]{{1,{most}}}\"|[!#-~]([ -~]{{0,{bare}}}[!#-~])?)$");
            (json!({ "type": "string", "pattern": visible }), false)
        }
        "q" => (json!({ "type": "string", "maxLength": limits::SEARCH_CHARS }), false),
        "subject" => (json!({ "type": "string", "pattern": "^[^,]{1,200}$" }), true),
        "types" => (json!({ "type": "string", "pattern": event::PATTERN }), true),
        "since" => (json!({ "type": "string", "pattern": "^[0-9]{1,18}-[0-9]{1,12}$" }), false),
        "limit" if path == "/v1/events" || path.ends_with("/deliveries") => {
            (json!({ "type": "integer", "minimum": 1, "maximum": 200 }), false)
        }
        "limit" if path.ends_with("/lines") => {
            (json!({ "type": "integer", "minimum": 1, "maximum": look::MOST_LINES }), false)
        }
        "limit" => (json!({ "type": "integer", "minimum": 1, "maximum": limits::PAGE_JOBS }), false),
        "If-Match" => (json!({ "type": "string" }), false),
        "redirect" | "follow" | "held" => (json!({ "type": "boolean" }), false),
        "delivery" => (json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }), false),
        "tail" => (json!({ "type": "integer", "minimum": 1, "maximum": limits::LOG_LINES }), false),
        "behind" => (json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }), false),
        "state" => (json!({ "$ref": "#/components/schemas/JobState" }), true),
        "queue" | "kind" | "tag" => (json!({ "type": "string", "pattern": shape::NAME }), true),
        "order" if path == "/v1/schedules" => (json!({ "type": "string", "enum": ["name", "next"] }), false),
        "order" if path == "/v1/audit" => (json!({ "type": "string", "enum": ["newest", "oldest"] }), false),
        "order" => {
            (json!({ "type": "string", "enum": ["newest", "oldest", "last_ended", "first_ended"] }), false)
        }
        "created_from" | "created_before" | "ended_from" | "ended_before" => {
            (json!({ "type": "string", "format": "date-time", "pattern": shape::YEARS }), false)
        }
        "name" if path.starts_with("/v1/leases") => {
            (json!({ "type": "string", "minLength": 1, "maxLength": limits::LEASE_NAME_BYTES }), false)
        }
        "name" => (json!({ "type": "string", "pattern": shape::NAME }), false),
        "key" => (json!({ "type": "string", "minLength": 1, "maxLength": limits::KEY_BYTES }), false),
        "at" | "from" | "to" => {
            (json!({ "type": "string", "format": "date-time", "pattern": shape::YEARS }), false)
        }
        "window_seconds" | "step_seconds" => {
            (json!({ "type": "integer", "minimum": 60, "maximum": 604_800 }), false)
        }
        "count" => (json!({ "type": "integer", "minimum": 1, "maximum": 1000 }), false),
        "after_schedule" => (json!({ "type": "string", "pattern": shape::NAME }), false),
        "after_run" => (json!({ "type": "string", "pattern": shape::RUN }), false),
        "cursor" if BY_NAME.contains(&path) => (json!({ "type": "string", "minLength": 1 }), false),
        "cursor" if path == "/v1/schedules" => (json!({ "type": "string", "pattern": shape::NAME }), false),
        "cursor" if path == "/v1/tokens" => (json!({ "type": "string", "pattern": "^[0-9a-f]{12}$" }), false),
        "cursor" if path.ends_with("/history") || path == "/v1/audit" => {
            (json!({ "type": "string", "pattern": "^[0-9]{1,18}$" }), false)
        }
        "cursor" if path.ends_with("/runs") => (json!({ "type": "string", "pattern": shape::RUN }), false),
        "cursor" => (
            json!({ "type": "string", "pattern": "^(c[0-9a-f]{1,15}|e[0-9a-f]{1,14}\\.[0-9a-f]{1,15})$" }),
            false,
        ),
        "after" => (json!({ "type": "string", "pattern": "^[0-9]{1,9}\\.[0-9]{1,9}$" }), false),
        _ => (json!({ "type": "string" }), false),
    };
    // A calendar has no beginning and no end of its own.
    let required = place == "path"
        || name == "If-Match"
        || path.starts_with("/v1/calendar") && matches!(name, "from" | "to");
    let mut parameter = json!({ "name": name, "in": place, "required": required, "description": about });
    if let Some(fields) = parameter.as_object_mut() {
        match are_many {
            true => {
                let many = json!({ "type": "array", "minItems": 1, "items": schema });
                fields.extend([("schema".to_owned(), many), ("explode".to_owned(), json!(false))]);
            }
            false => {
                fields.insert("schema".to_owned(), schema);
            }
        }
    }
    parameter
}
