//! Sign-in to the dashboard with OpenID Connect: the authorization code flow with PKCE.
//!
//! The dashboard binds an attempt to a browser with a cookie. This module talks to the provider, verifies the ID token,
//! and finds the scopes of the person in the server's grants.

mod discovery;
mod form;
mod id_token;
mod keys;
mod options;
mod person;
mod provider;
mod used;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tenure::Invalid;
use tokio::sync::Semaphore;

use crate::access::strangers::Strangers;
use crate::access::{Needs, Principal, Remote, Scope};
use crate::api::Api;
use crate::audit::{self, ANONYMOUS, Act, Origin};
use crate::grants::Grants;
use discovery::Endpoints;
use form::with_query;
use id_token::{Expected, TokenFault};
pub use options::OidcOptions;
use person::Described;
use provider::Provider;
use used::Used;

/// Sign-ins that wait for the provider at once. Each holds a connection.
const AT_ONCE: usize = 32;
/// Longest ID token that a session keeps for signing out at the provider, in bytes.
const HINT_BYTES: usize = 8 * 1024;

/// Sign-in with an identity provider.
#[derive(Clone)]
pub struct Oidc(Arc<Inner>);

struct Inner {
    api: Api,
    provider: Provider,
    grants: Grants,
    /// URL of the dashboard, with a slash at the end.
    home: String,
    redirect: String,
    used: Used,
    /// Failed sign-ins by address. Unknown access tokens count elsewhere: a misconfigured worker must lock out no person.
    failed: Strangers,
    room: Semaphore,
}

/// The secrets of one attempt to sign in, which only the server and one browser know.
#[derive(Clone)]
pub struct OidcAttempt {
    /// Value that the provider returns with the browser.
    pub state: String,
    /// Value that the ID token contains.
    pub nonce: String,
    /// PKCE verifier: 43 to 128 letters and digits.
    pub verifier: String,
}

/// The query with which the provider sends a browser back.
#[derive(Clone, Default, Deserialize)]
pub struct OidcCallback {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// The request that brings a browser back, for limits and the audit log.
#[derive(Debug, Clone, Default)]
pub struct OidcRequest {
    /// Address of the client.
    pub remote: Option<Remote>,
    /// ID of the request.
    pub request_id: Option<HeaderValue>,
    /// Path of the request.
    pub path: String,
}

/// A person who has signed in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OidcSignIn {
    /// The person, with the scopes that the server's grants give.
    pub principal: Principal,
    /// Name for people, such as an email address.
    pub label: String,
    /// ID token, for signing out at the provider.
    pub id_token: Option<String>,
}

/// The reason for which a sign-in fails.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OidcError {
    /// The provider cannot be used; the text says what is wrong with it.
    #[error("the identity provider cannot be used: {0}")]
    Provider(String),
    /// The provider refused the sign-in.
    #[error("the identity provider refused the sign-in: {0}")]
    Denied(String),
    /// The browser did not start this sign-in, or too long ago.
    #[error("this sign-in has expired, was started in another browser, or was used before; sign in again")]
    Expired,
    /// The ID token is invalid.
    #[error("{0}")]
    Token(String),
    /// No grant gives the person a scope that opens the dashboard.
    #[error("{0} has no access: no grant gives them or their groups read, manage or admin; ask an operator")]
    NoScope(String),
    /// Too many sign-ins from this address have failed.
    #[error("too many failed sign-ins from this address; try again in {} s", .0.as_secs().max(1))]
    TooMany(Duration),
    /// Too many sign-ins are in progress.
    #[error("too many sign-ins are in progress; try again")]
    Busy,
}

impl OidcError {
    /// Returns the status of a page that shows this error.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Provider(_) => StatusCode::BAD_GATEWAY,
            Self::Denied(_) | Self::NoScope(_) => StatusCode::FORBIDDEN,
            Self::Expired => StatusCode::BAD_REQUEST,
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns `true` if the client is at fault, so that the failure is recorded and counted.
    fn is_refusal(&self) -> bool {
        !matches!(self, Self::Provider(_) | Self::Busy)
    }
}

impl From<TokenFault> for OidcError {
    fn from(fault: TokenFault) -> Self {
        Self::Token(fault.to_string())
    }
}

impl Oidc {
    /// Creates a sign-in for a server. Browsers come back to a page below its public URL.
    pub(crate) fn new(api: Api, options: OidcOptions, grants: Grants) -> Result<Self, Invalid> {
        options.check()?;
        let home = format!("{}/ui/", api.public_url());
        let redirect = format!("{}/{}", api.public_url(), options::CALLBACK);
        let provider = Provider::new(options, api.tenure().store().clock());
        let (used, failed) = (Used::default(), Strangers::default());
        let room = Semaphore::new(AT_ONCE);
        Ok(Self(Arc::new(Inner { api, provider, grants, home, redirect, used, failed, room })))
    }

    /// Returns the URL of the provider's page for an attempt.
    ///
    /// # Errors
    /// The provider cannot be reached, or its discovery document is invalid.
    pub async fn start(&self, attempt: &OidcAttempt) -> Result<String, OidcError> {
        let endpoints = self.0.provider.endpoints().await?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(attempt.verifier.as_bytes()));
        let options = &self.0.provider.options;
        let fields: [(&str, &str); 8] = [
            ("response_type", "code"),
            ("client_id", &options.client_id),
            ("redirect_uri", &self.0.redirect),
            ("scope", &options.scope()),
            ("state", &attempt.state),
            ("nonce", &attempt.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        Ok(with_query(&endpoints.authorization, &fields))
    }

    /// Finishes an attempt: exchanges the code, verifies the ID token and finds the scopes of the person. Without an
    /// attempt the browser has lost its cookie, or never had one. The audit log records success and refusal.
    ///
    /// # Errors
    /// The sign-in is refused, or the provider cannot be used.
    pub async fn finish(
        &self,
        attempt: Option<&OidcAttempt>,
        callback: &OidcCallback,
        request: &OidcRequest,
    ) -> Result<OidcSignIn, OidcError> {
        // Anyone can send a response without the cookie. Counting it would lock out the people behind the same address.
        let Some(attempt) = attempt.filter(|attempt| Some(&attempt.state) == callback.state.as_ref()) else {
            self.refuse(ANONYMOUS, &OidcError::Expired, request);
            return Err(OidcError::Expired);
        };
        let (this, attempt, callback, request) =
            (self.clone(), attempt.clone(), callback.clone(), request.clone());
        // In a task: a client that hangs up neither escapes the limit and the audit log nor stops a request for keys.
        let finished = tokio::spawn(async move { this.finish_matched(&attempt, &callback, &request).await });
        finished
            .await
            .unwrap_or_else(|_| Err(OidcError::Provider("internal error; see the server log".to_owned())))
    }

    /// Finishes the attempt of this browser. Counts and records the result.
    async fn finish_matched(
        &self,
        attempt: &OidcAttempt,
        callback: &OidcCallback,
        request: &OidcRequest,
    ) -> Result<OidcSignIn, OidcError> {
        let finished = self.finished(attempt, callback, request.remote).await;
        let (actor, error) = match finished {
            Ok((signed_in, described)) if Needs::One(&[Scope::Read]).are_met(&signed_in.principal.scopes) => {
                self.record(&signed_in, &described, request).await;
                return Ok(signed_in);
            }
            Ok((signed_in, _)) => (signed_in.principal.name, OidcError::NoScope(signed_in.label)),
            Err(error) => (ANONYMOUS.to_owned(), error),
        };
        if error.is_refusal() {
            self.count(&error, request);
            self.refuse(&actor, &error, request);
        }
        Err(error)
    }

    /// Returns the person, with or without a scope that opens the dashboard.
    async fn finished(
        &self,
        attempt: &OidcAttempt,
        callback: &OidcCallback,
        remote: Option<Remote>,
    ) -> Result<(OidcSignIn, Described), OidcError> {
        let Inner { api, provider, grants, used, failed, room, redirect, .. } = &*self.0;
        let clock = api.tenure().store().clock();
        let most = api.unknown_tokens_per_minute();
        if let Some(wait) = remote.and_then(|remote| failed.wait(remote, most, clock.moment())) {
            return Err(OidcError::TooMany(wait));
        }
        let _permit = room.try_acquire().map_err(|_| OidcError::Busy)?;
        let endpoints = provider.endpoints().await?;
        let code = self.code(&endpoints, callback)?;
        // A second request with the same state and cookie ends here, before it reaches the provider.
        if !used.take(&attempt.state, clock.moment()) {
            return Err(OidcError::Expired);
        }
        let tokens = provider.exchange(&endpoints, (code, &attempt.verifier, redirect)).await?;
        let OidcOptions { issuer, client_id, groups_claim, .. } = &provider.options;
        let expected = Expected { issuer, client_id, nonce: &attempt.nonce, now: api.tenure().now() };
        let claims = provider.verify(&endpoints, &tokens.id_token, expected).await?;
        let mut sources = vec![claims.all];
        if person::groups(&sources[0], groups_claim).is_none() {
            sources.extend(provider.user_info(&endpoints, &tokens, &claims.subject).await?);
        }
        let sources: Vec<_> = sources.iter().collect();
        let described = Described::read(claims.subject, &sources, groups_claim)?;
        let scopes = grants.of_person(&described.names(), &described.groups);
        let principal = Principal { name: format!("oidc:{}", described.subject), scopes };
        let id_token = Some(tokens.id_token).filter(|token| token.len() <= HINT_BYTES);
        let label = described.label().to_owned();
        Ok((OidcSignIn { principal, label, id_token }, described))
    }

    /// Returns the code of a response that is from this provider.
    fn code<'a>(&self, endpoints: &Endpoints, callback: &'a OidcCallback) -> Result<&'a str, OidcError> {
        // With several providers, one of them could pass off its code as another's (RFC 9207).
        let issuer = &self.0.provider.options.issuer;
        if callback.iss.as_ref().map_or(endpoints.names_issuer, |iss| iss != issuer) {
            return Err(OidcError::Denied("the response is from another issuer".to_owned()));
        }
        if let Some(error) = &callback.error {
            // The text is the provider's, but anyone can write a link: only a code of the standard is shown.
            let is_code =
                error.len() <= 64 && error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            return Err(OidcError::Denied(if is_code { error.as_str() } else { "unknown error" }.to_owned()));
        }
        callback.code.as_deref().ok_or_else(|| OidcError::Denied("the response has no code".to_owned()))
    }

    /// Returns the URL at which a person signs out of the provider; `None` if it has none or cannot be reached.
    pub async fn end_session(&self, id_token: Option<&str>) -> Option<String> {
        let url = self.0.provider.endpoints().await.ok()?.end_session.clone()?;
        let back = format!("{}sign-in", self.0.home);
        let mut fields = vec![
            ("client_id", self.0.provider.options.client_id.as_str()),
            ("post_logout_redirect_uri", back.as_str()),
        ];
        fields.extend(id_token.map(|token| ("id_token_hint", token)));
        Some(with_query(&url, &fields))
    }

    async fn record(&self, signed_in: &OidcSignIn, described: &Described, request: &OidcRequest) {
        let Described { name, email, groups, .. } = described;
        let scopes = &signed_in.principal.scopes;
        let after = json!({ "name": name, "email": email, "groups": groups, "scopes": scopes });
        let mut act = self.act(&signed_in.principal.name, request).answered(StatusCode::OK);
        act.change(self.0.api.hiding(), None, Some(after));
        self.0.api.audit(act).await;
    }

    fn count(&self, error: &OidcError, request: &OidcRequest) {
        if let (Some(remote), false) = (request.remote, matches!(error, OidcError::TooMany(_))) {
            self.0.failed.note(remote, self.0.api.tenure().store().clock().moment());
        }
    }

    fn refuse(&self, who: &str, error: &OidcError, request: &OidcRequest) {
        tracing::debug!(%error, address = ?request.remote, "sign-in refused");
        let act = self.act(who, request).answered(error.status());
        audit::record_refusal(&self.0.api, Origin::of_address(request.remote), act);
    }

    fn act(&self, who: &str, request: &OidcRequest) -> Act {
        Act::sign_in(who, request, &self.0.provider.options.issuer)
    }
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Oidc").field(&self.0.provider.options).finish()
    }
}
