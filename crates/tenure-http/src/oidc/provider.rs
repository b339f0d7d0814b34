//! Requests to the provider, and the endpoints and keys that are remembered of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tenure::{Clock, Moment, json_value};
use tokio::sync::Semaphore;

use super::OidcError;
use super::discovery::{self, Endpoints};
use super::form::{encoded, form};
use super::id_token::{Claims, Expected, TOKEN_BYTES, TokenFault, verify};
use super::keys::Keys;
use super::options::{OidcOptions, endpoint, is_local};
use crate::callbacks::caller::{Call, Caller};
use crate::callbacks::target::Target;

/// Longest time of one request to the provider.
const WITHIN: Duration = Duration::from_secs(10);
/// Time after which endpoints and keys are fetched again.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// Shortest time between two requests for the same document: after a failure, and for an unknown key.
const APART: Duration = Duration::from_secs(10);
/// Largest response of the token endpoint: the ID token, and an access token beside it.
const RESPONSE_BYTES: usize = 4 * TOKEN_BYTES;

/// An identity provider.
pub(super) struct Provider {
    pub options: OidcOptions,
    caller: Caller,
    clock: Arc<dyn Clock>,
    endpoints: Mutex<Fetched<Endpoints>>,
    keys: Mutex<Fetched<Keys>>,
    /// At most one request for such a document is in progress.
    fetching: Semaphore,
}

/// A document of the provider, and the last attempt to fetch it.
struct Fetched<T> {
    value: Option<(Moment, Arc<T>)>,
    tried: Option<(Moment, Option<OidcError>)>,
}

/// The tokens that a code is worth.
#[derive(Deserialize)]
pub(super) struct TokenResponse {
    pub id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
}

impl<T> Default for Fetched<T> {
    fn default() -> Self {
        Self { value: None, tried: None }
    }
}

impl<T> Fetched<T> {
    /// Returns the remembered document, or the last failure, if it is too early to ask again.
    fn remembered(&self, now: Moment, fresh: Duration) -> Option<Result<Arc<T>, OidcError>> {
        let value = self.value.as_ref();
        if let Some((_, value)) = value.filter(|(at, _)| now.since(*at) < fresh) {
            return Some(Ok(Arc::clone(value)));
        }
        let (_, failure) = self.tried.as_ref().filter(|(at, _)| now.since(*at) < APART)?;
        match (value, failure) {
            (Some((_, value)), _) => Some(Ok(Arc::clone(value))),
            (None, Some(failure)) => Some(Err(failure.clone())),
            (None, None) => None,
        }
    }

    /// Notes the result of a request. After a failure, the old document stays in use.
    fn note(&mut self, now: Moment, found: Result<T, OidcError>) -> Result<Arc<T>, OidcError> {
        match found {
            Ok(found) => {
                let found = Arc::new(found);
                (self.tried, self.value) = (Some((now, None)), Some((now, Arc::clone(&found))));
                Ok(found)
            }
            Err(failure) => {
                tracing::warn!(%failure, "failed to fetch a document of the identity provider");
                self.tried = Some((now, Some(failure.clone())));
                self.value.as_ref().map(|(_, value)| Arc::clone(value)).ok_or(failure)
            }
        }
    }
}

impl Provider {
    pub(super) fn new(options: OidcOptions, clock: Arc<dyn Clock>) -> Self {
        // An operator has named the issuer, so the egress rules for URLs of clients do not apply.
        let caller = Caller::of_operator(Arc::clone(&clock));
        let (endpoints, keys) = (Mutex::default(), Mutex::default());
        Self { options, caller, clock, endpoints, keys, fetching: Semaphore::new(1) }
    }

    /// Returns the endpoints, from memory for an hour.
    pub(super) async fn endpoints(&self) -> Result<Arc<Endpoints>, OidcError> {
        let remembered = || lock(&self.endpoints).remembered(self.clock.moment(), FRESH);
        if let Some(remembered) = remembered() {
            return remembered;
        }
        let _permit = self.fetching.acquire().await;
        if let Some(remembered) = remembered() {
            return remembered;
        }
        let plain = is_local(&self.options.issuer);
        let target = endpoint("oidc.issuer", &discovery::url(&self.options), plain)
            .map_err(|wrong| OidcError::Provider(wrong.to_string()))?;
        let found = match self.get(target, None).await {
            Ok(text) => discovery::read(&self.options, &text),
            Err(failure) => Err(failure),
        };
        lock(&self.endpoints).note(self.clock.moment(), found)
    }

    /// Returns the keys, from memory for `fresh`.
    async fn keys(&self, endpoints: &Endpoints, fresh: Duration) -> Result<Arc<Keys>, OidcError> {
        let remembered = || lock(&self.keys).remembered(self.clock.moment(), fresh);
        if let Some(remembered) = remembered() {
            return remembered;
        }
        let _permit = self.fetching.acquire().await;
        if let Some(remembered) = remembered() {
            return remembered;
        }
        let odd = || OidcError::Provider("its key set is unreadable".to_owned());
        let found = match self.get(endpoints.keys.clone(), None).await {
            Ok(text) => Keys::read(&text).ok_or_else(odd),
            Err(failure) => Err(failure),
        };
        lock(&self.keys).note(self.clock.moment(), found)
    }

    /// Verifies an ID token. If its key is unknown, the provider may have new ones: they are fetched, at most once in ten
    /// seconds.
    pub(super) async fn verify(
        &self,
        endpoints: &Endpoints,
        token: &str,
        expected: Expected<'_>,
    ) -> Result<Claims, OidcError> {
        let keys = self.keys(endpoints, FRESH).await?;
        match verify(token, &keys, expected) {
            Err(TokenFault::UnknownKey) => {
                let keys = self.keys(endpoints, APART).await?;
                verify(token, &keys, expected).map_err(OidcError::from)
            }
            verified => verified.map_err(OidcError::from),
        }
    }

    /// Exchanges a code for tokens.
    pub(super) async fn exchange(
        &self,
        endpoints: &Endpoints,
        (code, verifier, redirect): (&str, &str, &str),
    ) -> Result<TokenResponse, OidcError> {
        let OidcOptions { client_id, client_secret, .. } = &self.options;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
        ];
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
            (ACCEPT, HeaderValue::from_static("application/json")),
        ];
        match client_secret {
            Some(secret) if !endpoints.secret_in_body => {
                let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
                headers.push((AUTHORIZATION, sensitive(&format!("Basic {pair}"))?));
            }
            Some(secret) => {
                fields.extend([("client_id", client_id.as_str()), ("client_secret", secret.as_str())])
            }
            None => fields.push(("client_id", client_id.as_str())),
        }
        let body = form(&fields).into();
        let target = endpoints.token.clone();
        let heard = self.call(Method::POST, target, (headers, body)).await?;
        if heard.0 == 200 {
            let odd = |_| OidcError::Provider("its token response has no ID token".to_owned());
            return serde_json::from_slice(&heard.1).map_err(odd);
        }
        let refusal = serde_json::from_slice::<ErrorResponse>(&heard.1).ok();
        Err(match refusal.map(|refusal| refusal.error).as_deref() {
            Some("invalid_grant") => OidcError::Denied("the code is invalid, expired or used".to_owned()),
            Some("invalid_client" | "unauthorized_client") => {
                OidcError::Provider("it refused the client ID or the client secret".to_owned())
            }
            _ => OidcError::Provider(format!("its token endpoint answered with status {}", heard.0)),
        })
    }

    /// Returns further claims about a person; `None` if the provider has no such endpoint.
    pub(super) async fn user_info(
        &self,
        endpoints: &Endpoints,
        tokens: &TokenResponse,
        subject: &str,
    ) -> Result<Option<Value>, OidcError> {
        let (Some(target), Some(token)) = (&endpoints.user_info, &tokens.access_token) else {
            return Ok(None);
        };
        let text = self.get(target.clone(), Some(sensitive(&format!("Bearer {token}"))?)).await?;
        let odd = |_| OidcError::Provider("its user info is unreadable".to_owned());
        let claims = json_value(&text).map_err(odd)?;
        if claims["sub"] != subject {
            return Err(OidcError::Provider("its user info is about another person".to_owned()));
        }
        Ok(Some(claims))
    }

    async fn get(&self, target: Target, authorization: Option<HeaderValue>) -> Result<Vec<u8>, OidcError> {
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("application/json"))];
        headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
        let path = target.path.clone();
        match self.call(Method::GET, target, (headers, Bytes::new())).await? {
            (200, text) => Ok(text),
            (status, _) => Err(OidcError::Provider(format!("{path} answered with status {status}"))),
        }
    }

    async fn call(
        &self,
        method: Method,
        target: Target,
        (headers, body): (Vec<(HeaderName, HeaderValue)>, Bytes),
    ) -> Result<(u16, Vec<u8>), OidcError> {
        let call = Call { method, target, headers, body, within: WITHIN, most: RESPONSE_BYTES, large: None };
        let heard = self.caller.call(call).await.map_err(|none| OidcError::Provider(none.to_string()))?;
        if !heard.whole {
            return Err(OidcError::Provider("its response is too large".to_owned()));
        }
        Ok((heard.status.as_u16(), heard.body))
    }
}

/// A header with a secret, which no debug output shows.
fn sensitive(text: &str) -> Result<HeaderValue, OidcError> {
    let odd = |_| OidcError::Provider("it sent a token that does not fit into a header".to_owned());
    let mut value = HeaderValue::from_str(text).map_err(odd)?;
    value.set_sensitive(true);
    Ok(value)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
