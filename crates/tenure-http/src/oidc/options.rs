//! Settings of a sign-in with OpenID Connect.

use std::fmt;

use axum::http::Uri;
use tenure::Invalid;

use crate::callbacks::target::Target;

/// Path of the dashboard's page to which the provider sends browsers back, below the public URL of a server.
pub(super) const CALLBACK: &str = "ui/sign-in/callback";
/// Longest value of a setting, in bytes.
const TEXT_BYTES: usize = 1_024;

/// Settings of a sign-in with OpenID Connect.
#[derive(Clone)]
#[non_exhaustive]
pub struct OidcOptions {
    /// URL of the identity provider, exactly as its discovery document gives it.
    pub issuer: String,
    /// Client ID that the provider knows this server by.
    pub client_id: String,
    /// Client secret; `None` for a public client.
    pub client_secret: Option<String>,
    /// Scopes to request; `openid` is always among them.
    pub scopes: Vec<String>,
    /// Claim with the groups of a person. Dots lead into nested objects, such as `realm_access.roles`.
    pub groups_claim: String,
}

impl OidcOptions {
    /// Creates settings with the default scopes, and the groups in the claim `groups`.
    #[must_use]
    pub fn new(issuer: &str, client_id: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: None,
            scopes: ["openid", "profile", "email"].map(str::to_owned).to_vec(),
            groups_claim: "groups".to_owned(),
        }
    }

    /// Refuses settings that could not work, or that would send secrets in plain text.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        endpoint("oidc.issuer", &self.issuer, is_local(&self.issuer))?;
        if self.issuer.contains('?') {
            return Err(Invalid::new("oidc.issuer", "a URL with a query", "a URL without a query"));
        }
        for (field, text) in [("oidc.client_id", &self.client_id), ("oidc.groups_claim", &self.groups_claim)]
        {
            let is_text = (1..=TEXT_BYTES).contains(&text.len()) && !text.contains(char::is_control);
            if !is_text {
                return Err(Invalid::new(
                    field,
                    format_args!("{} bytes", text.len()),
                    "1 to 1024 bytes of text",
                ));
            }
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        };
        if !self.scopes.iter().all(is_scope) {
            return Err(Invalid::new("oidc.scopes", "an invalid scope", "scopes such as openid and email"));
        }
        Ok(())
    }

    /// Returns the scopes of a request, separated by spaces.
    pub(super) fn scope(&self) -> String {
        let more = self.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid");
        ["openid"].into_iter().chain(more).collect::<Vec<_>>().join(" ")
    }
}

// The secret never gets into a log.
impl fmt::Debug for OidcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcOptions").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Reads the URL of a provider. Plain `http` is allowed only on this machine, for tests and development.
pub(super) fn endpoint(field: &str, url: &str, may_be_plain: bool) -> Result<Target, Invalid> {
    let target = Target::read(url).map_err(|wrong| Invalid { field: field.to_owned(), ..wrong })?;
    if target.encrypted || (may_be_plain && is_local(url)) {
        return Ok(target);
    }
    let shown: String = url.chars().take(100).collect();
    Err(Invalid::new(field, format_args!("{shown:?}"), "an https:// URL"))
}

/// Returns `true` for a plain `http` URL of this machine.
pub(super) fn is_local(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http"));
    host.is_some_and(|uri| matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]")))
}
