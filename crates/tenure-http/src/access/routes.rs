//! Access tokens over HTTP.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{OriginalUri, Path};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Error, limits, seconds};

use super::tokens::{AccessToken, NewAccessToken, TokenQuotas, Tokens};
use super::{Access, Reach, Scope};
use crate::answer::json;
use crate::api::Api;
use crate::audit::Detail;
use crate::body;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::wire::shape;

/// The largest body.
const BODY_BYTES: usize = 32 * 1024;
/// Lifetime of a token whose client gives none.
const USUAL_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Time for which a token that was replaced stays valid.
const USUAL_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// A name, or what names begin with.
const NAMES: &str = r"^([A-Za-z0-9._:-]{1,128}\*?|\*)$";

/// An access token to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenAsk {
    /// Owner of the token, for people.
    #[schemars(length(min = 1, max = 256))]
    name: String,
    /// Scopes that the token grants.
    #[schemars(length(min = 1))]
    scopes: Vec<Scope>,
    /// Limits the token to jobs of these queues; a trailing `*` matches any suffix. Default: all queues.
    #[serde(default)]
    #[schemars(length(max = 64), inner(regex(pattern = NAMES)))]
    queues: Vec<String>,
    /// Limits the token to jobs of these kinds; a trailing `*` matches any suffix. Default: all kinds.
    #[serde(default)]
    #[schemars(length(max = 64), inner(regex(pattern = NAMES)))]
    kinds: Vec<String>,
    /// Maximum number of requests per second to each server process; further ones get 429. Default: no limit.
    #[schemars(range(min = 1, max = u32::MAX))]
    max_requests_per_second: Option<u32>,
    /// Maximum number of waiting jobs that tokens of this name have enqueued; further jobs get 429. Default: no limit.
    #[schemars(range(min = 1, max = u32::MAX))]
    max_waiting_jobs: Option<u32>,
    /// Lifetime in seconds; default: 365 days.
    #[schemars(range(min = 1.0, max = shape::LONGEST))]
    expires_in_seconds: Option<f64>,
    /// `true` for a token without expiry.
    #[serde(default)]
    never_expires: bool,
    /// SHA-256 fingerprint of a client certificate, in hex. The certificate takes the place of the secret: clients that show
    /// it need no `Authorization` header.
    certificate_sha256: Option<String>,
}

/// A token to replace.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateAsk {
    /// Seconds for which the old token stays valid, at most 30 days; default: one day.
    #[schemars(range(min = 0.0, max = 2_592_000.0))]
    overlap_seconds: Option<f64>,
}

/// An access token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AccessToken")]
pub(crate) struct TokenDocument {
    /// Token ID; not secret.
    id: String,
    /// Owner of the token, for people.
    name: String,
    /// Scopes that the token grants.
    scopes: Vec<Scope>,
    /// Queues that the token is limited to; empty means all.
    queues: Vec<String>,
    /// Kinds that the token is limited to; empty means all.
    kinds: Vec<String>,
    /// Maximum number of requests per second to each server process; omitted if there is no limit.
    max_requests_per_second: Option<u32>,
    /// Maximum number of waiting jobs that tokens of this name have enqueued; omitted if there is no limit.
    max_waiting_jobs: Option<u32>,
    /// Creation time.
    created_at: String,
    /// Expiry time.
    expires_at: Option<String>,
    /// SHA-256 fingerprint of the client certificate that the token is bound to.
    certificate_sha256: Option<String>,
    /// Last use, rounded down to a minute and shown up to two minutes later. Only the list of tokens shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
}

/// A new access token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AccessTokenWithSecret")]
pub(crate) struct NewTokenDocument {
    /// The token itself, which is shown only once; `null` if it is bound to a client certificate.
    token: Option<String>,
    /// The token's public fields.
    #[serde(flatten)]
    known: TokenDocument,
}

/// A page of access tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokenPage {
    items: Vec<TokenDocument>,
    next_cursor: Option<String>,
}

/// The identity of the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhoAmI")]
pub(crate) struct WhoDocument {
    /// `true` if the server requires no authentication.
    open: bool,
    /// The access token of this request.
    token: Option<TokenDocument>,
    /// The client, if it has proved its identity without an access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<PrincipalDocument>,
}

/// A client without an access token.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Principal")]
pub(crate) struct PrincipalDocument {
    /// Name in the audit log, such as `unix:deploy` or `cert:spiffe://corp/worker/1`.
    name: String,
    /// Scopes that the server's grants give it.
    scopes: Vec<Scope>,
}

impl TokenDocument {
    fn of(token: &AccessToken) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            scopes: token.scopes.clone(),
            queues: token.reach.queues().collect(),
            kinds: token.reach.kinds().collect(),
            max_requests_per_second: token.quotas.max_requests_per_second,
            max_waiting_jobs: token.quotas.max_waiting_jobs,
            created_at: token.created.to_string(),
            expires_at: token.expires.map(|expires| expires.to_string()),
            certificate_sha256: token.certificate_sha256.clone(),
            last_used_at: token.last_used.map(|used| used.to_string()),
        }
    }
}

/// `POST /v1/tokens`
pub(crate) async fn create(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    check_creates_tokens(&api)?;
    let ask: TokenAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let keep = match (ask.expires_in_seconds, ask.never_expires) {
        (Some(_), true) => {
            let found = "set together with never_expires";
            return Err(tenure::Invalid::new("expires_in_seconds", found, "only one of them").into());
        }
        (None, true) => None,
        (Some(span), false) => Some(seconds("expires_in_seconds", span)?),
        (None, false) => Some(USUAL_LIFETIME),
    };
    let reach = Reach::new(&ask.queues, &ask.kinds)?;
    let quotas = TokenQuotas {
        max_requests_per_second: ask.max_requests_per_second,
        max_waiting_jobs: ask.max_waiting_jobs,
    };
    let new = NewAccessToken { name: ask.name, scopes: ask.scopes, reach, keep, quotas };
    let tokens = Tokens::of(api.tenure());
    let (made, token) = match ask.certificate_sha256 {
        Some(sha256) => (tokens.bind(new, &sha256).await.map_err(Error::from)?, None),
        None => tokens.create(new).await.map(|(made, token)| (made, Some(token))).map_err(Error::from)?,
    };
    let document = NewTokenDocument { token, known: TokenDocument::of(&made) };
    Ok(secret(json(StatusCode::CREATED, &document)))
}

fn check_creates_tokens(api: &Api) -> Result<(), Problem> {
    if api.creates_tokens() {
        return Ok(());
    }
    let detail = "a server without authentication creates no access tokens; run `tenure token create --db …` on \
                  the server's machine, and start the server with --auth tokens";
    Err(Problem::new(ProblemType::Forbidden, detail))
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
        false => Err(Problem::new(ProblemType::NotFound, format!("access token {id} not found"))),
    }
}

/// `POST /v1/tokens/{token_id}/rotate`
pub(crate) async fn rotate(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_creates_tokens(&api)?;
    let IdText(id) = id.parse()?;
    let ask: RotateAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let overlap =
        ask.overlap_seconds.map_or(Ok(USUAL_OVERLAP), |overlap| seconds("overlap_seconds", overlap))?;
    let made = Tokens::of(api.tenure()).rotate(&id, overlap).await.map_err(Error::from)?;
    let Some((made, token)) = made else {
        return Err(Problem::new(ProblemType::NotFound, format!("access token {id} not found")));
    };
    let known = TokenDocument::of(&made);
    let detail = Detail(serde_json::json!(known));
    let mut response = secret(json(StatusCode::CREATED, &NewTokenDocument { token: Some(token), known }));
    response.extensions_mut().insert(detail);
    Ok(response)
}

/// Shows a token to the audit log, which needs it before and after a change. No route of the contract serves it.
pub(crate) async fn show(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let IdText(id) = id.parse()?;
    let found = Tokens::of(api.tenure()).find(&id).await.map_err(Error::from)?;
    let found =
        found.ok_or_else(|| Problem::new(ProblemType::NotFound, format!("access token {id} not found")))?;
    Ok(secret(json(StatusCode::OK, &TokenDocument::of(&found.0))))
}

/// `GET /v1/whoami`
pub(crate) async fn whoami(api: Api) -> Response {
    let token = api.who().token().map(TokenDocument::of);
    let principal = api
        .who()
        .principal()
        .map(|token| PrincipalDocument { name: token.name.clone(), scopes: token.scopes.clone() });
    secret(json(StatusCode::OK, &WhoDocument { open: api.access() == Access::Open, token, principal }))
}

/// Forbids caches on the way to keep a response.
pub(crate) fn secret(mut response: Response) -> Response {
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
        Err(tenure::Invalid::new("token id", "invalid value", "12 characters of 0-9 a-f"))
    }
}
