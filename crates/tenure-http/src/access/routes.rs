//! Access tokens and the audit over HTTP.

use axum::body::Body;
use axum::extract::{OriginalUri, Path};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::records::EntriesAsk;
use tenure::{Error, Name, limits, seconds};

use super::audit::{Act, JOURNAL};
use super::tokens::{AccessToken, NewAccessToken, Tokens};
use super::{Access, Reach, Scope};
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::wire::shape;

/// The largest body.
const BODY_BYTES: usize = 32 * 1024;
/// A name, or what names begin with.
const NAMES: &str = r"^([A-Za-z0-9._:-]{1,128}\*?|\*)$";

/// An access token that somebody wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenAsk {
    /// Whose it is, for people.
    #[schemars(length(min = 1, max = 256))]
    name: String,
    /// What it allows.
    #[schemars(length(min = 1))]
    scopes: Vec<Scope>,
    /// For jobs of which queues; of all if none is said. A star at the end of a name stands for anything.
    #[serde(default)]
    #[schemars(length(max = 64), inner(regex(pattern = NAMES)))]
    queues: Vec<String>,
    /// For jobs of which kinds, likewise.
    #[serde(default)]
    #[schemars(length(max = 64), inner(regex(pattern = NAMES)))]
    kinds: Vec<String>,
    /// For how long it is good; for good if it is not said.
    #[schemars(range(min = 1.0, max = shape::LONGEST))]
    expires_in_seconds: Option<f64>,
}

/// An access token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AccessToken")]
pub(crate) struct TokenDocument {
    /// Its id, which is no secret.
    id: String,
    /// Whose it is, for people.
    name: String,
    /// What it allows.
    scopes: Vec<Scope>,
    /// For jobs of which queues; of all if there is none.
    queues: Vec<String>,
    /// For jobs of which kinds; of all if there is none.
    kinds: Vec<String>,
    /// When it was made.
    created_at: String,
    /// From when on it is good no more.
    expires_at: Option<String>,
}

/// A new access token.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "NewAccessToken")]
pub(crate) struct NewTokenDocument {
    /// Its text, which nobody is told again.
    token: String,
    /// What is known of it.
    #[serde(flatten)]
    known: TokenDocument,
}

/// A page of access tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokenPage {
    items: Vec<TokenDocument>,
    next_cursor: Option<String>,
}

/// Who asks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhoAmI")]
pub(crate) struct WhoDocument {
    /// Whether whoever asks has to say who he is.
    open: bool,
    /// The access token that was shown.
    token: Option<TokenDocument>,
}

/// What somebody did.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(crate) struct AuditDocument {
    /// Its number: later ones have greater ones.
    number: u64,
    at: String,
    /// Who did it.
    who: String,
    method: String,
    path: String,
    /// How it was answered.
    status: u16,
}

/// A page of the audit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    items: Vec<AuditDocument>,
    next_cursor: Option<String>,
}

impl TokenDocument {
    fn of(token: &AccessToken) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            scopes: token.scopes.clone(),
            queues: token.reach.queues().collect(),
            kinds: token.reach.kinds().collect(),
            created_at: token.created.to_string(),
            expires_at: token.expires.map(|expires| expires.to_string()),
        }
    }
}

/// `POST /v1/tokens`
pub(crate) async fn create(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let ask: TokenAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let keep = ask.expires_in_seconds.map(|span| seconds("expires_in_seconds", span)).transpose()?;
    let reach = Reach::new(&ask.queues, &ask.kinds)?;
    let new = NewAccessToken { name: ask.name, scopes: ask.scopes, reach, keep };
    let (made, token) = Tokens::of(api.tenure()).create(new).await.map_err(Error::from)?;
    let document = NewTokenDocument { token, known: TokenDocument::of(&made) };
    Ok(secret(json(StatusCode::CREATED, &document)))
}

/// `GET /v1/tokens`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["cursor", "limit"])?;
    let most = query.number("limit", (1, limits::PAGE_JOBS as u64), 50)?;
    let behind = query.one::<IdText>("cursor")?.map(|IdText(id)| id);
    let most = usize::try_from(most).unwrap_or(limits::PAGE_JOBS);
    let (tokens, next_cursor) =
        Tokens::of(api.tenure()).page(behind.as_deref(), most).await.map_err(Error::from)?;
    let items = tokens.iter().map(TokenDocument::of).collect();
    Ok(secret(json(StatusCode::OK, &TokenPage { items, next_cursor })))
}

/// `DELETE /v1/tokens/{token_id}`
pub(crate) async fn revoke(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let IdText(id) = id.parse()?;
    match Tokens::of(api.tenure()).revoke(&id).await.map_err(Error::from)? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Problem::new(ProblemType::NotFound, format!("there is no access token {id}"))),
    }
}

/// `GET /v1/whoami`
pub(crate) async fn whoami(api: Api) -> Response {
    let token = api.who().0.as_ref().map(|found| TokenDocument::of(&found.0));
    secret(json(StatusCode::OK, &WhoDocument { open: api.access() == Access::Open, token }))
}

/// `GET /v1/audit`
pub(crate) async fn audit(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["cursor", "limit"])?;
    let most = query.number("limit", (1, limits::PAGE_JOBS as u64), 50)?;
    let ask = EntriesAsk {
        behind: query.one::<Number>("cursor")?.map(|Number(number)| number),
        at_most: usize::try_from(most).unwrap_or(limits::PAGE_JOBS),
        ..EntriesAsk::of(Name::new("journal", JOURNAL)?)
    };
    let page = api.tenure().store().entries(ask).await?;
    let items = page.entries.iter().filter_map(|entry| {
        let Act { who, method, path, status } = serde_json::from_slice(entry.value.as_bytes()).ok()?;
        Some(AuditDocument { number: entry.number, at: entry.at.to_string(), who, method, path, status })
    });
    let next_cursor = page.next.map(|next| next.to_string());
    Ok(secret(json(StatusCode::OK, &AuditPage { items: items.collect(), next_cursor })))
}

/// What nobody on the way may keep.
fn secret(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The id of an access token.
struct IdText(String);

impl std::str::FromStr for IdText {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() == 12 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(Self(text.to_owned()));
        }
        Err(tenure::Invalid::new("token id", "another text", "12 of the characters 0-9 a-f"))
    }
}

/// The number of an entry.
struct Number(u64);

impl std::str::FromStr for Number {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || tenure::Invalid::new("cursor", "another text", "`next_cursor` of the page before");
        text.parse().map(Self).map_err(|_| wrong())
    }
}
