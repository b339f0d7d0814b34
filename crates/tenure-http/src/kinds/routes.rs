//! Saying what a kind is for, and what its args have to be like.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure::{Invalid, Kind, QueueName};

use super::kept::{Described, Descriptions, Kept};
use super::known::compiled;
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::wire::{check_queue, not_own, shape};

/// The largest body.
const BODY_BYTES: usize = 64 * 1024;
/// Characters of a description, and of the other words.
const DESCRIPTION_CHARS: usize = 4_000;
const WORD_CHARS: usize = 500;

/// Description and args schema of a kind. Omitted fields are cleared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindAsk {
    /// Purpose of the kind.
    #[schemars(length(max = DESCRIPTION_CHARS))]
    description: Option<String>,
    /// Owner of the kind.
    #[schemars(length(max = WORD_CHARS))]
    owner: Option<String>,
    /// Link to documentation.
    #[schemars(length(max = WORD_CHARS), regex(pattern = "^https?://"))]
    docs_url: Option<String>,
    /// Queue of jobs that name none.
    #[schemars(regex(pattern = shape::NAME))]
    default_queue: Option<String>,
    /// JSON Schema (2020-12 or draft 7) for args; may refer only to its own `$defs`.
    #[schemars(with = "Option<Map<String, Value>>")]
    schema: Option<Box<RawValue>>,
}

/// Description and args schema of a kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub(crate) struct KindDocument {
    /// Name of the kind.
    kind: String,
    /// Purpose of the kind.
    description: Option<String>,
    /// Owner of the kind.
    owner: Option<String>,
    /// Link to documentation.
    docs_url: Option<String>,
    /// Queue of jobs that name none.
    default_queue: Option<String>,
    /// JSON Schema for args.
    #[schemars(with = "Option<Map<String, Value>>")]
    schema: Option<Box<RawValue>>,
    /// Time of the last change.
    changed_at: String,
}

impl KindDocument {
    fn of(Described { kind, kept, .. }: Described) -> Self {
        let Kept { description, owner, docs_url, default_queue, schema, changed } = kept;
        Self { kind, description, owner, docs_url, default_queue, schema, changed_at: changed.to_string() }
    }
}

/// `PUT /v1/kinds/{name}`
pub(crate) async fn put(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (ask, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    let kind = Kind::new(&name)?;
    not_own("kind", &name)?;
    finish(loan, set(api, kind, ask)).await
}

async fn set(api: Api, kind: Kind, ask: KindAsk) -> Result<Response, Problem> {
    let KindAsk { description, owner, docs_url, default_queue, schema } = ask;
    check_words("description", description.as_deref(), DESCRIPTION_CHARS)?;
    check_words("owner", owner.as_deref(), WORD_CHARS)?;
    check_words("docs_url", docs_url.as_deref(), WORD_CHARS)?;
    // It is shown as a link: one that runs a script is none.
    let is_link = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    if docs_url.as_deref().is_some_and(|url| !is_link(url)) {
        return Err(
            Invalid::new("docs_url", "invalid value", "a URL that begins with http:// or https://").into()
        );
    }
    if let Some(queue) = &default_queue {
        let within = |wrong: Invalid| Invalid { field: "default_queue".to_owned(), ..wrong };
        QueueName::new(queue).map_err(within)?;
        check_queue("default_queue", queue)?;
    }
    let schema = match schema {
        Some(schema) => Some(compiled(api.client(), schema).await?),
        None => None,
    };
    let changed = api.tenure().now();
    let kept = Kept { description, owner, docs_url, default_queue, schema, changed };
    let set = Descriptions(api.tenure()).set(&kind, kept).await;
    api.kinds().forget(&kind);
    let (described, is_new) = set?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &KindDocument::of(described)))
}

/// `GET /v1/kinds/{name}`
pub(crate) async fn get(api: Api, Named(name): Named) -> Result<Response, Problem> {
    let kind = Kind::new(&name)?;
    let found = match api.reach().covers_kind(kind.as_str()) {
        true => Descriptions(api.tenure()).find(&kind).await?,
        false => None,
    };
    Ok(json(StatusCode::OK, &KindDocument::of(found.ok_or_else(|| none(&kind))?)))
}

/// `DELETE /v1/kinds/{name}`
pub(crate) async fn delete(api: Api, Named(name): Named) -> Result<Response, Problem> {
    let kind = Kind::new(&name)?;
    let removed = Descriptions(api.tenure()).remove(&kind).await;
    api.kinds().forget(&kind);
    if removed? { Ok(StatusCode::NO_CONTENT.into_response()) } else { Err(none(&kind)) }
}

fn none(kind: &Kind) -> Problem {
    Problem::new(ProblemType::NotFound, format!("kind {kind} has no description"))
}

fn check_words(field: &str, said: Option<&str>, most: usize) -> Result<(), Invalid> {
    let count = said.map_or(0, |said| said.chars().count());
    if count > most {
        let found = format!("{count} characters");
        return Err(Invalid::new(field, found, format_args!("at most {most}")));
    }
    Ok(())
}
