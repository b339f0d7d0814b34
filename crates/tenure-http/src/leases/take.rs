//! Taking a lease, holding it for longer, and giving it back.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{Holder, Invalid, LeaseGrant, LeaseName, Ttl};

use super::refused::{held, lost};
use super::token::{self, Shown};
use crate::answer::{PREFERENCE_APPLIED, json};
use crate::api::Api;
use crate::body;
use crate::id::Named;
use crate::prefer::Prefer;
use crate::problem::{Problem, ProblemType};
use crate::wire::{AcquireAsk, GiveBackAsk, LeaseGranted, LeaseRenewed, RenewAsk};

/// The largest body: what may be noted about a holder.
const BODY_BYTES: usize = 256 * 1024;
/// For how long a lease is taken at a time, unless its holder says otherwise.
const TTL_SECONDS: f64 = 15.0;

/// `POST /v1/leases/{name}/acquire`
pub(crate) async fn acquire(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let ask: AcquireAsk = body::json(&headers, &text)?;
    // The request may wait, and keeps the metadata meanwhile.
    let _loan = text.into_loan();
    // What cannot be told to its holder is not granted.
    let key = api.key().await?.clone();
    let name = LeaseName::in_field("name", &name)?;
    let seconds = ask.ttl_seconds.unwrap_or(TTL_SECONDS);
    let ttl = Ttl::of_seconds(seconds).map_err(in_words_of_the_wire)?;
    let by = Holder { host: None, who: ask.owner, meta: ask.metadata };
    by.check().map_err(in_words_of_the_wire)?;
    if api.is_draining() {
        return Err(ending());
    }
    api.admit_lease_name(&name).await?;
    let prefer = Prefer::of(&headers);
    let wait = prefer.wait.filter(|wait| !wait.is_zero()).map(|wait| {
        let api = api.clone();
        async move { api.over(wait).await }
    });
    let taken = api.tenure().remote().acquire(name.as_str(), by, ttl, wait).await.map_err(named)?;
    let now = api.tenure().now();
    let grant = match taken {
        Ok(grant) => grant,
        Err(_) if api.is_draining() => return Err(ending()),
        Err(refusal) => return Err(held(&api, &name, &refusal)),
    };
    let until = grant.until.unwrap_or(now);
    let granted = LeaseGranted {
        name: name.to_string(),
        token: token::of(&key, &grant),
        fence: grant.fence.to_string(),
        ttl_seconds: seconds,
        expires_at: until.to_string(),
        expires_in_seconds: until.since(now).as_secs_f64(),
    };
    let mut response = json(StatusCode::OK, &granted);
    // The token is a secret.
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(applied) = prefer.applied(false).and_then(|applied| HeaderValue::from_str(&applied).ok()) {
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    Ok(response)
}

/// `POST /v1/leases/{name}/renew`
pub(crate) async fn renew(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: RenewAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let ttl = ask.ttl_seconds.map(Ttl::of_seconds).transpose().map_err(in_words_of_the_wire)?;
    let grant = granted(&api, &name, &ask.token).await?;
    let until = match api.tenure().remote().renew_lease(&grant, ttl).await? {
        Ok(until) => until,
        Err(refusal) => return Err(lost(&api, &grant.name, &refusal.to_string()).await),
    };
    let now = api.tenure().now();
    let renewed = LeaseRenewed {
        fence: grant.fence.to_string(),
        expires_at: until.map(|until| until.to_string()),
        expires_in_seconds: until.map(|until| until.since(now).as_secs_f64()),
    };
    Ok(json(StatusCode::OK, &renewed))
}

/// `POST /v1/leases/{name}/release`
pub(crate) async fn release(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: GiveBackAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let grant = granted(&api, &name, &ask.token).await?;
    match api.tenure().remote().release_lease(&grant).await? {
        Ok(()) => {
            api.lease_watchers().tell(&grant.name);
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(refusal) => Err(lost(&api, &grant.name, &refusal.to_string()).await),
    }
}

/// What was granted under a token.
async fn granted(api: &Api, name: &str, token: &str) -> Result<LeaseGrant, Problem> {
    let name = LeaseName::in_field("name", name)?;
    match token::shown(api.key().await?, &name, token)? {
        Shown::Grant(grant) => Ok(grant),
        Shown::Foreign => Err(lost(api, &name, "the token was not issued for this lease").await),
    }
}

fn ending() -> Problem {
    let detail = "the server is shutting down and grants no leases; use another server";
    Problem::new(ProblemType::Draining, detail).retry_after(std::time::Duration::from_secs(1))
}

/// A name that is refused is called as clients call it.
fn named(error: tenure::Error) -> Problem {
    let tenure::Error::Invalid(wrong) = error else { return error.into() };
    let field = if wrong.field == "lease name" { "name".to_owned() } else { wrong.field };
    Invalid { field, ..wrong }.into()
}

fn in_words_of_the_wire(wrong: Invalid) -> Invalid {
    let field = match wrong.field.as_str() {
        "ttl" => "ttl_seconds",
        "holder" => "owner",
        "meta" => "metadata",
        _ => return wrong,
    };
    Invalid { field: field.to_owned(), ..wrong }
}
