//! Push endpoints over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Draft, Invalid, Kind, Name, QueueName};

use super::endpoint::{Endpoint, Endpoints, Kept};
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::callbacks::routes::{check_kinds, check_queues, check_url};
use crate::callbacks::signature::{self, Secret};
use crate::callbacks::target::URL_BYTES;
use crate::callbacks::webhook::{Disabled, KeptSecret, no_secret, rotated};
use crate::callbacks::wire::DeliveryAccepted;
use crate::id::Named;
use crate::jobs::act::Nothing;
use crate::problem::{Problem, ProblemType};
use crate::wire::{not_own, shape};

/// The largest body.
const BODY_BYTES: usize = 64 * 1024;
/// Names of one list.
const NAMES: usize = 100;
/// Jobs at once, if nothing is said, and at most.
const SLOTS: u32 = 10;
const MOST_SLOTS: u32 = 1_000;
/// How long an answer may take, if nothing is said, and at most.
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Headers of one's own, and how long each value may be.
const HEADERS: usize = 20;
const HEADER_BYTES: usize = 2_048;
/// The kind of a job that only tries an endpoint.
const TEST: &str = "endpoint.test";
/// What is said by whoever sends.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "traceparent",
    "tracestate",
];

/// A push endpoint that somebody wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointAsk {
    /// What it is called.
    #[schemars(regex(pattern = shape::NAME))]
    name: String,
    /// Where jobs are sent.
    #[schemars(length(min = 1, max = URL_BYTES))]
    url: String,
    /// From which queues, the first served first.
    #[schemars(length(min = 1, max = NAMES), inner(regex(pattern = shape::NAME)))]
    queues: Vec<String>,
    /// Of which kinds; of any if nothing is said.
    #[serde(default)]
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    kinds: Vec<String>,
    /// How many at once, from each server: 1 to 1000, usually 10.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    slots: Option<u32>,
    /// How long an answer may take: 1 to 3600, usually 30.
    #[schemars(range(min = 1.0, max = 3600.0))]
    timeout_seconds: Option<f64>,
    /// What is sent with each job as well, such as `authorization`.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// With what it is signed, `whsec_` and base64; one is drawn if it is not said.
    #[schemars(regex(pattern = signature::PATTERN))]
    secret: Option<String>,
}

/// What shall be otherwise about a push endpoint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointPatch {
    /// Where jobs are sent.
    #[schemars(length(min = 1, max = URL_BYTES))]
    url: Option<String>,
    /// From which queues.
    #[schemars(length(min = 1, max = NAMES), inner(regex(pattern = shape::NAME)))]
    queues: Option<Vec<String>>,
    /// Of which kinds.
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    kinds: Option<Vec<String>>,
    /// How many at once, from each server.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = MOST_SLOTS))]
    slots: Option<u32>,
    /// How long an answer may take.
    #[schemars(range(min = 1.0, max = 3600.0))]
    timeout_seconds: Option<f64>,
    /// What is sent with each job as well.
    headers: Option<BTreeMap<String, String>>,
    /// Whether it is sent anything.
    enabled: Option<bool>,
}

/// A push endpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Endpoint")]
pub(crate) struct EndpointDocument {
    /// What it is called.
    name: String,
    /// Where jobs are sent.
    url: String,
    /// From which queues.
    queues: Vec<String>,
    /// Of which kinds; of any if it is empty.
    kinds: Vec<String>,
    /// How many at once, from each server.
    slots: u32,
    /// How long an answer may take.
    timeout_seconds: f64,
    /// The names of what is sent with each job as well. The values may be secrets.
    header_names: Vec<String>,
    /// Whether it is sent anything.
    enabled: bool,
    /// Since when it is sent nothing.
    disabled_at: Option<String>,
    /// Why.
    disabled_because: Option<String>,
    /// When it was made.
    created_at: String,
}

/// A push endpoint with its secret, which nobody is told again.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "NewEndpoint")]
pub(crate) struct NewEndpointDocument {
    /// With what it is signed.
    secret: String,
    /// The endpoint.
    #[serde(flatten)]
    endpoint: EndpointDocument,
}

/// All push endpoints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EndpointList {
    items: Vec<EndpointDocument>,
}

impl EndpointDocument {
    fn of(endpoint: &Endpoint) -> Self {
        let Kept { url, queues, kinds, slots, timeout, headers, created, disabled, .. } =
            endpoint.kept.clone();
        Self {
            name: endpoint.name.clone(),
            url,
            queues,
            kinds,
            slots,
            timeout_seconds: timeout.as_secs_f64(),
            header_names: headers.into_keys().collect(),
            enabled: disabled.is_none(),
            disabled_at: disabled.as_ref().map(|disabled| disabled.at.to_string()),
            disabled_because: disabled.map(|disabled| disabled.why),
            created_at: created.to_string(),
        }
    }
}

/// `POST /v1/endpoints`
pub(crate) async fn create(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let ask: EndpointAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let name = Name::new("name", &ask.name)?;
    check_url(&api, &ask.url)?;
    check_served(&ask.queues, &ask.kinds)?;
    check_headers(&ask.headers)?;
    let (slots, timeout) = (slots(ask.slots.unwrap_or(SLOTS))?, timeout(ask.timeout_seconds)?);
    let secret = ask.secret.as_deref().map(Secret::read).transpose()?;
    let secret = secret.map_or_else(|| Secret::draw().map_err(no_secret), Ok)?;
    let EndpointAsk { url, queues, kinds, headers, .. } = ask;
    let (secrets, created) = (vec![KeptSecret::of(&secret)], api.tenure().now());
    let kept = Kept { url, queues, kinds, slots, timeout, headers, secrets, created, disabled: None };
    let Some(made) = Endpoints::of(api.tenure()).create(&name, kept).await? else {
        let detail = format!("there is an endpoint {name} already; change it with PATCH");
        return Err(Problem::new(ProblemType::StateConflict, detail));
    };
    api.pushing().look();
    Ok(told_once(StatusCode::CREATED, &made, &secret))
}

/// `GET /v1/endpoints`
pub(crate) async fn list(api: Api) -> Result<Response, Problem> {
    let all = Endpoints::of(api.tenure()).all().await?;
    Ok(json(StatusCode::OK, &EndpointList { items: all.iter().map(EndpointDocument::of).collect() }))
}

/// `GET /v1/endpoints/{name}`
pub(crate) async fn get(api: Api, Named(name): Named) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &EndpointDocument::of(&find(&api, &name).await?)))
}

/// `PATCH /v1/endpoints/{name}`
pub(crate) async fn patch(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let patch: EndpointPatch = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let there = find(&api, &name).await?;
    patch.url.as_deref().map_or(Ok(()), |url| check_url(&api, url))?;
    check_served(
        patch.queues.as_ref().unwrap_or(&there.kept.queues),
        patch.kinds.as_ref().unwrap_or(&there.kept.kinds),
    )?;
    patch.headers.as_ref().map_or(Ok(()), check_headers)?;
    let slots = patch.slots.map(slots).transpose()?;
    let timeout = patch.timeout_seconds.map(|said| timeout(Some(said))).transpose()?;
    let now = api.tenure().now();
    let change = |kept: &mut Kept| {
        kept.url = patch.url.clone().unwrap_or_else(|| kept.url.clone());
        kept.queues = patch.queues.clone().unwrap_or_else(|| kept.queues.clone());
        kept.kinds = patch.kinds.clone().unwrap_or_else(|| kept.kinds.clone());
        kept.headers = patch.headers.clone().unwrap_or_else(|| kept.headers.clone());
        kept.slots = slots.unwrap_or(kept.slots);
        kept.timeout = timeout.unwrap_or(kept.timeout);
        match patch.enabled {
            Some(true) => kept.disabled = None,
            Some(false) if kept.disabled.is_none() => {
                kept.disabled = Some(Disabled { at: now, why: "somebody wanted it so".to_owned() });
            }
            Some(false) | None => {}
        }
    };
    let changed = Endpoints::of(api.tenure()).change(&name, change).await?;
    api.pushing().look();
    Ok(json(StatusCode::OK, &EndpointDocument::of(&changed.ok_or_else(|| none(&name))?)))
}

/// `DELETE /v1/endpoints/{name}`
pub(crate) async fn delete(api: Api, Named(name): Named) -> Result<Response, Problem> {
    let name = Name::new("name", &name)?;
    if !Endpoints::of(api.tenure()).remove(name.as_str()).await? {
        return Err(none(name.as_str()));
    }
    api.pushing().look();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/endpoints/{name}/rotate-secret`
pub(crate) async fn rotate(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    find(&api, &name).await?;
    let (secret, now) = (Secret::draw().map_err(no_secret)?, api.tenure().now());
    let change = |kept: &mut Kept| rotated(&mut kept.secrets, &secret, now);
    let changed = Endpoints::of(api.tenure()).change(&name, change).await?;
    api.pushing().look();
    Ok(told_once(StatusCode::OK, &changed.ok_or_else(|| none(&name))?, &secret))
}

/// `POST /v1/endpoints/{name}/test`
pub(crate) async fn test(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let endpoint = find(&api, &name).await?;
    // One of the kinds that it takes: it is sent as all others are.
    let kind = endpoint.kept.kinds.first().map_or(TEST, String::as_str);
    let args = serde_json::json!({ "test": true, "endpoint": endpoint.name });
    let draft = Draft::raw(kind, &args).queue(endpoint.kept.queues.first().map_or("default", String::as_str));
    let id = api.tenure().enqueue_draft(draft.attempts(1).tag("endpoint.test")).await?.id();
    Ok(DeliveryAccepted::of(id).told(&headers, id))
}

fn told_once(status: StatusCode, endpoint: &Endpoint, secret: &Secret) -> Response {
    let document = NewEndpointDocument { secret: secret.text(), endpoint: EndpointDocument::of(endpoint) };
    let mut response = json(status, &document);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn find(api: &Api, name: &str) -> Result<Endpoint, Problem> {
    let name = Name::new("name", name)?;
    Endpoints::of(api.tenure()).find(name.as_str()).await?.ok_or_else(|| none(name.as_str()))
}

fn none(name: &str) -> Problem {
    Problem::new(ProblemType::NotFound, format!("there is no endpoint {name}"))
}

fn check_served(queues: &[String], kinds: &[String]) -> Result<(), Invalid> {
    if queues.is_empty() {
        return Err(Invalid::new("queues", "none", "one at least"));
    }
    check_queues(queues)?;
    check_kinds(kinds)?;
    queues.iter().try_for_each(|queue| QueueName::new(queue).and(not_own("queues", queue)))?;
    kinds.iter().try_for_each(|kind| Kind::new(kind).and(not_own("kinds", kind)))?;
    let mut seen = std::collections::BTreeSet::new();
    match queues.iter().find(|queue| !seen.insert(queue.as_str())) {
        Some(twice) => Err(Invalid::new("queues", format_args!("{twice}, twice"), "each of them once")),
        None => Ok(()),
    }
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if headers.len() > HEADERS {
        let found = format!("{} of them", headers.len());
        return Err(Invalid::new("headers", found, format_args!("at most {HEADERS}")));
    }
    for (name, value) in headers {
        let shown: String = name.chars().take(64).collect();
        let wrong = |allowed: &str| Invalid::new("headers", format_args!("{shown:?}"), allowed);
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| wrong("the name of a header"))?;
        let own = OWN_HEADERS.contains(&parsed.as_str())
            || ["job-", "webhook-"].iter().any(|prefix| parsed.as_str().starts_with(prefix));
        if own {
            return Err(wrong("headers that are not said anyway"));
        }
        if value.len() > HEADER_BYTES || HeaderValue::from_str(value).is_err() {
            return Err(wrong("a value of at most 2048 visible characters"));
        }
    }
    Ok(())
}

fn slots(said: u32) -> Result<u32, Invalid> {
    if (1..=MOST_SLOTS).contains(&said) {
        return Ok(said);
    }
    Err(Invalid::new("slots", said, format_args!("1 to {MOST_SLOTS}")))
}

fn timeout(said: Option<f64>) -> Result<Duration, Invalid> {
    let Some(said) = said else { return Ok(TIMEOUT) };
    let span = tenure::seconds("timeout_seconds", said)?;
    if (Duration::from_secs(1)..=LONGEST_TIMEOUT).contains(&span) {
        return Ok(span);
    }
    Err(Invalid::new("timeout_seconds", said, format_args!("1 to {}", LONGEST_TIMEOUT.as_secs())))
}
