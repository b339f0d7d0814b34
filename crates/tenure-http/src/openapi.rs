//! The description of all routes, made from the same list that serves them.

mod examples;
mod headers;
mod kinds;
mod parameters;
mod shown;

use std::sync::{Arc, OnceLock};

use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tenure::StateName;

use crate::access::{Access, Needs};
use crate::api::Api;
use crate::kinds::known::KindSchema;
use crate::plain;
use crate::problem::{Problem, ProblemType};
use crate::routes::{self, Answer, Endpoint};
use crate::wire::Submit;
use headers::headers;
use parameters::{parameters, parts};
use shown::shown;

/// Refused by any route.
const BY_ANY: [ProblemType; 6] = [
    ProblemType::Malformed,
    ProblemType::StorageUnavailable,
    ProblemType::Draining,
    ProblemType::UnreadableData,
    ProblemType::Overloaded,
    ProblemType::Internal,
];
/// Refused by any route that reads a body.
const WITH_A_BODY: [ProblemType; 3] =
    [ProblemType::Validation, ProblemType::UnsupportedMediaType, ProblemType::PayloadTooLarge];

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

    /// A job whose kind the path names.
    pub(crate) fn kind_job(&mut self) -> Value {
        self.of::<Submit>();
        let definitions = self.generator.definitions_mut();
        let mut schema = definitions.get("Submit").cloned().unwrap_or_default();
        schema["description"] = json!("A job to enqueue, of the kind in the path.");
        if let Some(fields) = schema["properties"].as_object_mut() {
            fields.remove("kind");
        }
        // Nothing else is required. OpenAPI 3.0 does not allow an empty list.
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("required");
        }
        definitions.insert("KindJob".to_owned(), schema);
        json!({ "$ref": "#/components/schemas/KindJob" })
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
pub(crate) async fn get(api: Api, headers: HeaderMap) -> Result<Response, Problem> {
    let kinds = match api.may_read() {
        true => api.kinds().schemas(api.tenure()).await?,
        false => Arc::default(),
    };
    let kinds = kinds.iter().filter(|kind| api.reach().covers_kind(&kind.kind)).cloned().collect();
    Ok(shown(&described_by(&api, kinds), &headers, Words::New))
}

/// `GET /openapi-3.0.json`
pub(crate) async fn get_3_0(api: Api, headers: HeaderMap) -> Response {
    shown(&described_by(&api, Vec::new()), &headers, Words::Old)
}

fn described_by(api: &Api, kinds: Vec<KindSchema>) -> Described {
    let url = format!("{}{}", api.site().server(), api.site().prefix());
    let url = if url.is_empty() { "/".to_owned() } else { url };
    Described { url, access: api.access(), kinds }
}

/// The server that a document describes.
pub(crate) struct Described {
    /// Its URL.
    pub(crate) url: String,
    pub(crate) access: Access,
    /// Kinds with a schema, by name. Only version 3.1 can express them.
    pub(crate) kinds: Vec<KindSchema>,
}

impl Default for Described {
    /// The server that `tenure serve` starts without settings.
    fn default() -> Self {
        Self { url: "http://localhost:8368".to_owned(), access: Access::Open, kinds: Vec::new() }
    }
}

/// Returns the description of a server.
pub(crate) fn document(words: Words, server: &Described) -> Value {
    let mut document = of_all_servers(words, server.access).clone();
    document["servers"] = json!([{ "url": server.url }]);
    if words == Words::New {
        let omitted = kinds::add(&mut document, &server.kinds);
        if let Some(fields) = document.as_object_mut().filter(|_| omitted > 0) {
            fields.insert("x-omitted-kinds".to_owned(), json!(omitted));
        }
    }
    document
}

/// Returns the part that all servers share, made once: a client without a token may request it.
fn of_all_servers(words: Words, access: Access) -> &'static Value {
    static MADE: [[OnceLock<Value>; 2]; 2] = [[const { OnceLock::new() }; 2], [const { OnceLock::new() }; 2]];
    let made = &MADE[usize::from(words == Words::Old)][usize::from(access == Access::Tokens)];
    made.get_or_init(|| described(words, access))
}

fn described(words: Words, access: Access) -> Value {
    let mut schemas = Schemas::new(words);
    let mut paths = Map::new();
    for endpoint in routes::all() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            let method = endpoint.method.as_str().to_ascii_lowercase();
            path.insert(method, operation(&endpoint, access, &mut schemas));
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
    plain::name_words_apart(&mut components);
    if words == Words::Old {
        let defined = components.clone();
        [&mut paths, &mut components].into_iter().for_each(|part| plain::say_types(part, &defined));
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
            "contact": { "name": "Tenure", "url": "https://github.com/tenure-rs/tenure" },
            "license": { "name": "MIT OR Apache-2.0", "url": "https://github.com/tenure-rs/tenure" },
        },
        "servers": [],
        "tags": plain::GROUPS.map(|(name, about)| json!({ "name": name, "description": about })),
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": { "access_token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(endpoint: &Endpoint, access: Access, schemas: &mut Schemas) -> Value {
    let (summary, details) = endpoint.summary.split_once("; ").unwrap_or((endpoint.summary, ""));
    let mut operation = json!({
        "operationId": endpoint.name,
        "tags": [plain::group(endpoint)],
        "summary": summary,
        "description": format!("{}{}", sentence(details), required(endpoint.needs)),
        "parameters": parameters(endpoint),
        "responses": responses(endpoint, schemas),
        "security": security(endpoint.needs, access),
        "x-needs": endpoint.needs.to_string(),
        "x-within": endpoint.within.to_string(),
    });
    if let (Some(body), Some(fields)) = (endpoint.takes.body, operation.as_object_mut()) {
        let schema = body(schemas);
        let example = examples::of(endpoint.name);
        let mut content = Map::new();
        content.insert("application/json".to_owned(), json!({ "schema": schema, "example": example }));
        if let Some(line) = endpoint.takes.line {
            let about = "One JSON object per line";
            let schema = json!({ "allOf": [line(schemas)], "description": about });
            content.insert("application/x-ndjson".to_owned(), json!({ "schema": schema }));
        }
        fields.insert(
            "requestBody".to_owned(),
            json!({ "required": endpoint.takes.needs_body, "content": content }),
        );
    }
    operation
}

/// Returns a text as a sentence: with a capital letter, a full stop and a space.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    format!("{}{}. ", first.to_ascii_uppercase(), letters.as_str())
}

/// The access token that an operation needs.
fn required(needs: Needs) -> String {
    match needs {
        Needs::Nothing | Needs::Optional => "Needs no access token.".to_owned(),
        Needs::Anyone => "Any access token may call it.".to_owned(),
        Needs::One(scopes) => {
            let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
            format!("Access tokens need the scope {}.", scopes.join(" or "))
        }
    }
}

/// A server that is open takes requests without an access token, too.
fn security(needs: Needs, access: Access) -> Vec<Value> {
    match (needs, access) {
        (Needs::Nothing, _) => Vec::new(),
        (Needs::Optional, _) => vec![json!({}), json!({ "access_token": [] })],
        (_, Access::Tokens) => vec![json!({ "access_token": [] })],
        (_, Access::Open) => vec![json!({ "access_token": [] }), json!({})],
    }
}

fn responses(endpoint: &Endpoint, schemas: &mut Schemas) -> Map<String, Value> {
    let mut responses = Map::new();
    for Answer { status, summary, kind, body } in &endpoint.answers {
        let mut response = Map::new();
        response.insert("description".to_owned(), json!(summary));
        let mut schema = json!({ "type": "string" });
        if !kind.is_empty() {
            if let Some(body) = body {
                schema = body(schemas);
            }
            let mut content = Map::new();
            content.insert((*kind).to_owned(), json!({ "schema": schema }));
            for stream in endpoint.takes.accepts.iter().filter(|_| *status == 200) {
                content.insert((*stream).to_owned(), json!({ "schema": { "type": "string" } }));
            }
            response.insert("content".to_owned(), content.into());
        }
        let headers = headers(endpoint, *status, &schema);
        if !headers.is_empty() {
            response.insert("headers".to_owned(), headers.into());
        }
        responses.insert(status.to_string(), response.into());
    }
    let with_a_body = endpoint.takes.body.map(|_| WITH_A_BODY).into_iter().flatten();
    let guarded: &[ProblemType] = match endpoint.needs {
        Needs::Nothing => &[],
        Needs::Anyone | Needs::Optional => {
            &[ProblemType::Unauthenticated, ProblemType::RateLimited, ProblemType::QuotaExceeded]
        }
        Needs::One(_) => &[
            ProblemType::Unauthenticated,
            ProblemType::Forbidden,
            ProblemType::RateLimited,
            ProblemType::QuotaExceeded,
        ],
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
            let content = json!({ "application/problem+json": { "schema": schema } });
            let mut response = json!({ "description": kind.title(), "content": content });
            let headers = headers::of_problem(kind);
            if let (false, Some(fields)) = (headers.is_empty(), response.as_object_mut()) {
                fields.insert("headers".to_owned(), headers.into());
            }
            response
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
mod tests;
