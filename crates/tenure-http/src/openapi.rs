//! The description of all routes, made from the same list that serves them.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tenure::{StateName, limits};

use crate::access::Needs;
use crate::answer;
use crate::callbacks::event;
use crate::once;
use crate::plain;
use crate::problem::ProblemType;
use crate::routes::{self, Answer, Endpoint};
use crate::wire::shape;

/// Refused by any route.
const BY_ANY: [ProblemType; 5] = [
    ProblemType::Malformed,
    ProblemType::StorageUnavailable,
    ProblemType::Draining,
    ProblemType::UnreadableData,
    ProblemType::Internal,
];
/// Refused by any route that reads a body.
const WITH_A_BODY: [ProblemType; 4] = [
    ProblemType::Validation,
    ProblemType::UnsupportedMediaType,
    ProblemType::PayloadTooLarge,
    ProblemType::Overloaded,
];

/// The version of the OpenAPI specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// 3.1.0
    New,
    /// 3.0.3, which many client generators support better.
    Old,
}

/// The shapes of what travels, as they are met.
pub(crate) struct Schemas {
    generator: SchemaGenerator,
}

impl Schemas {
    fn new(words: Words) -> Self {
        let settings = match words {
            Words::New => SchemaSettings::draft2020_12(),
            Words::Old => SchemaSettings::openapi3(),
        };
        let settings = settings.with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { generator: settings.into_generator() }
    }

    /// The shape of a type.
    pub(crate) fn of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    /// A list of a type, under a name of its own: whoever generates a client has a type for it, too.
    pub(crate) fn items_of<T: JsonSchema>(&mut self) -> Value {
        let item = self.of::<T>();
        let name = format!("{}List", T::schema_name());
        let items = json!({ "type": "array", "items": item });
        let list = json!({ "type": "object", "required": ["items"], "properties": { "items": items } });
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        self.generator.definitions_mut().insert(name, list);
        reference
    }

    /// Any JSON.
    pub(crate) fn any(&mut self) -> Value {
        json!({})
    }

    fn all(&mut self) -> Map<String, Value> {
        self.generator.take_definitions(true).into_iter().collect()
    }
}

/// `GET /openapi.json`
pub(crate) async fn get() -> Response {
    answer::json(StatusCode::OK, &document(Words::New))
}

/// `GET /openapi-3.0.json`
pub(crate) async fn get_3_0() -> Response {
    answer::json(StatusCode::OK, &document(Words::Old))
}

/// The whole document.
pub(crate) fn document(words: Words) -> Value {
    let mut schemas = Schemas::new(words);
    let mut paths = Map::new();
    for endpoint in routes::all() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            let method = endpoint.method.as_str().to_ascii_lowercase();
            path.insert(method, operation(&endpoint, &mut schemas));
        }
    }
    let mut components = schemas.all();
    components.insert("Problem".to_owned(), problem());
    let states = StateName::ALL.map(StateName::as_str);
    components.insert("JobState".to_owned(), json!({ "type": "string", "enum": states }));
    let (mut paths, mut components) = (Value::from(paths), Value::from(components));
    for part in [&mut paths, &mut components] {
        plain::say_plainly(part);
    }
    let version = match words {
        Words::New => "3.1.0",
        Words::Old => "3.0.3",
    };
    json!({
        "openapi": version,
        "info": {
            "title": "Tenure",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Durable jobs, schedules and leases over HTTP.",
            "license": { "name": "MIT OR Apache-2.0", "url": "https://github.com/tenure-rs/tenure" },
        },
        "tags": plain::GROUPS.map(|(name, about)| json!({ "name": name, "description": about })),
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": { "access_token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(endpoint: &Endpoint, schemas: &mut Schemas) -> Value {
    let (summary, details) = endpoint.summary.split_once("; ").unwrap_or((endpoint.summary, ""));
    let mut operation = json!({
        "operationId": endpoint.name,
        "tags": [plain::group(endpoint)],
        "summary": summary,
        "parameters": parameters(endpoint),
        "responses": responses(endpoint, schemas),
        "security": security(endpoint.needs),
        "x-needs": endpoint.needs.to_string(),
        "x-within": endpoint.within.to_string(),
    });
    if let (false, Some(fields)) = (details.is_empty(), operation.as_object_mut()) {
        fields.insert("description".to_owned(), sentence(details).into());
    }
    if let (Some(body), Some(fields)) = (endpoint.takes.body, operation.as_object_mut()) {
        let content = json!({ "application/json": { "schema": body(schemas) } });
        fields.insert(
            "requestBody".to_owned(),
            json!({ "required": endpoint.takes.needs_body, "content": content }),
        );
    }
    operation
}

/// Returns a text as a sentence: with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Whoever asks a server that is not open shows an access token.
fn security(needs: Needs) -> Vec<Value> {
    if needs == Needs::Nothing { Vec::new() } else { vec![json!({ "access_token": [] })] }
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
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
fn parts(path: &str) -> impl Iterator<Item = &str> {
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
        "limit" => (json!({ "type": "integer", "minimum": 1, "maximum": limits::PAGE_JOBS }), false),
        "If-Match" => (json!({ "type": "string" }), false),
        "redirect" | "follow" | "held" => (json!({ "type": "boolean" }), false),
        "delivery" => (json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }), false),
        "tail" => (json!({ "type": "integer", "minimum": 1, "maximum": limits::LOG_LINES }), false),
        "behind" => (json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }), false),
        "state" => (json!({ "$ref": "#/components/schemas/JobState" }), true),
        "queue" | "kind" | "tag" => (json!({ "type": "string", "pattern": shape::NAME }), true),
        "order" if path == "/v1/schedules" => (json!({ "type": "string", "enum": ["name", "next"] }), false),
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
        "from" | "to" => (json!({ "type": "string", "format": "date-time", "pattern": shape::YEARS }), false),
        "window_seconds" | "step_seconds" => {
            (json!({ "type": "integer", "minimum": 60, "maximum": 604_800 }), false)
        }
        "count" => (json!({ "type": "integer", "minimum": 1, "maximum": 1000 }), false),
        "after_schedule" => (json!({ "type": "string", "pattern": shape::NAME }), false),
        "after_run" => (json!({ "type": "string", "pattern": shape::RUN }), false),
        "cursor" if path == "/v1/leases" => (json!({ "type": "string", "minLength": 1 }), false),
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

fn responses(endpoint: &Endpoint, schemas: &mut Schemas) -> Map<String, Value> {
    let mut responses = Map::new();
    for Answer { status, summary, kind, body } in &endpoint.answers {
        let mut response = json!({ "description": summary });
        if let (false, Some(fields)) = (kind.is_empty(), response.as_object_mut()) {
            let schema = body.map_or_else(|| json!({ "type": "string" }), |body| body(schemas));
            let mut content = Map::new();
            content.insert((*kind).to_owned(), json!({ "schema": schema }));
            fields.insert("content".to_owned(), content.into());
        }
        responses.insert(status.to_string(), response);
    }
    let with_a_body = endpoint.takes.body.map(|_| WITH_A_BODY).into_iter().flatten();
    let guarded: &[ProblemType] = match endpoint.needs {
        Needs::Nothing => &[],
        Needs::Anyone => &[ProblemType::Unauthenticated, ProblemType::RateLimited],
        Needs::One(_) => &[ProblemType::Unauthenticated, ProblemType::Forbidden, ProblemType::RateLimited],
    };
    let with_parts = parts(endpoint.path).map(|_| ProblemType::Validation);
    for kind in endpoint
        .refuses
        .iter()
        .copied()
        .chain(with_a_body)
        .chain(with_parts)
        .chain(guarded.iter().copied())
        .chain(BY_ANY)
    {
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        responses.entry(kind.status().as_u16().to_string()).or_insert_with(|| {
            json!({ "description": kind.title(), "content": { "application/problem+json": { "schema": schema } } })
        });
    }
    responses
}

fn problem() -> Value {
    let types: Vec<String> =
        ProblemType::ALL.iter().map(|kind| format!("urn:tenure:problem:{}", kind.name())).collect();
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string", "description": types.join(", ") },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_once_under_a_name_of_its_own() {
        for words in [Words::New, Words::Old] {
            let document = document(words);
            let paths = document["paths"].as_object().unwrap();
            let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
            let names: Vec<&str> = operations.map(|one| one["operationId"].as_str().unwrap()).collect();
            assert_eq!(names.len(), routes::all().len());
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        }
    }

    #[test]
    fn summaries_are_short_and_start_with_a_verb_and_responses_are_described() {
        const VERBS: &str = "Acquire Allow Append Apply Break Cancel Check Claim Complete Count Create Delete \
            Enqueue Explain Fail List Pause Preview Quiet Read Redeliver Release Remove Renew \
            Resume Retry Revoke Rotate Run Send Set Settle Show Start Stop Stream Terminate \
            Update";
        let document = document(Words::New);
        let paths = document["paths"].as_object().unwrap();
        for operation in paths.values().flat_map(|path| path.as_object().unwrap().values()) {
            let summary = operation["summary"].as_str().unwrap();
            assert!(summary.chars().count() <= 60, "more than 60 characters: {summary}");
            let first = summary.split(' ').next().unwrap();
            assert!(VERBS.split(' ').any(|verb| verb == first), "no verb at the start: {summary}");
            for response in operation["responses"].as_object().unwrap().values() {
                let description = response["description"].as_str().unwrap();
                assert!(description.split_whitespace().count() >= 2, "{summary}: {description}");
            }
        }
    }

    /// Generated programs name their types after the schemas, and their parts after the groups.
    #[test]
    fn every_schema_and_every_group_has_one_name_that_reads_well() {
        for words in [Words::New, Words::Old] {
            let document = document(words);
            for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
                assert!(schema.get("title").is_none_or(|title| title == name.as_str()), "{name}: {schema}");
                assert!(
                    !name.ends_with("Document") && !name.ends_with(|c: char| c.is_ascii_digit()),
                    "{name}"
                );
            }
            let groups: BTreeSet<_> = plain::GROUPS.iter().map(|(name, _)| *name).collect();
            let operations = document["paths"].as_object().unwrap().values();
            let named: BTreeSet<_> = operations
                .flat_map(|path| path.as_object().unwrap().values())
                .map(|operation| operation["tags"][0].as_str().unwrap())
                .collect();
            assert_eq!(named, groups, "no group is empty, and none is missing");
        }
    }

    #[test]
    fn what_is_referred_to_is_there_and_the_old_words_know_no_null() {
        for words in [Words::New, Words::Old] {
            let document = document(words);
            let text = document.to_string();
            for reference in text.split("\"$ref\":\"#/").skip(1) {
                let path = reference.split('"').next().unwrap();
                assert!(document.pointer(&format!("/{path}")).is_some(), "{path}");
            }
            assert_eq!(text.contains("\"null\""), words == Words::New, "{words:?}");
        }
    }
}
