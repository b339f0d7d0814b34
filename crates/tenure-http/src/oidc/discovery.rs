//! The provider's own description: its endpoints, as OpenID Connect Discovery publishes them.

use serde::Deserialize;

use super::OidcError;
use super::options::{OidcOptions, endpoint, is_local};
use crate::callbacks::target::Target;

/// The endpoints of a provider.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    pub authorization: String,
    pub token: Target,
    pub keys: Target,
    pub user_info: Option<Target>,
    pub end_session: Option<String>,
    /// Sends the client secret in the body in place of the header.
    pub secret_in_body: bool,
    /// Every response of the authorization endpoint names the issuer.
    pub names_issuer: bool,
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Returns the URL of the description.
pub(super) fn url(options: &OidcOptions) -> String {
    format!("{}/.well-known/openid-configuration", options.issuer.trim_end_matches('/'))
}

/// Reads a description. It must name the configured issuer, so that no other provider can stand in for it.
pub(super) fn read(options: &OidcOptions, text: &[u8]) -> Result<Endpoints, OidcError> {
    let odd = |why: String| OidcError::Provider(format!("its discovery document {why}"));
    let found: Description =
        serde_json::from_slice(text).map_err(|_| odd("lacks a required field".to_owned()))?;
    if found.issuer != options.issuer {
        let named: String = found.issuer.chars().take(200).collect();
        return Err(odd(format!("names the issuer {named:?}; set oidc.issuer to exactly this text")));
    }
    let plain = is_local(&options.issuer);
    let target = |field: &str, url: &str| {
        endpoint(field, url, plain).map_err(|wrong| odd(format!("is invalid: {wrong}")))
    };
    let page = |field: &str, url: String| target(field, &url).map(|_| url);
    let methods = found.token_endpoint_auth_methods_supported.unwrap_or_default();
    let offers = |method: &str| methods.iter().any(|offered| offered == method);
    Ok(Endpoints {
        authorization: page("authorization_endpoint", found.authorization_endpoint)?,
        token: target("token_endpoint", &found.token_endpoint)?,
        keys: target("jwks_uri", &found.jwks_uri)?,
        user_info: found.userinfo_endpoint.map(|url| target("userinfo_endpoint", &url)).transpose()?,
        end_session: found.end_session_endpoint.map(|url| page("end_session_endpoint", url)).transpose()?,
        secret_in_body: offers("client_secret_post") && !offers("client_secret_basic"),
        names_issuer: found.authorization_response_iss_parameter_supported,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_configured_issuer_and_encrypted_endpoints_are_accepted() {
        let options = OidcOptions::new("https://id.example", "tenure");
        let good = json!({
            "issuer": "https://id.example",
            "authorization_endpoint": "https://id.example/authorize?tenant=a",
            "token_endpoint": "https://tokens.example/token",
            "jwks_uri": "https://id.example/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        });
        let read = |field: &str, value: &str| {
            let mut document = good.clone();
            document[field] = json!(value);
            super::read(&options, document.to_string().as_bytes())
        };
        let endpoints = read("userinfo_endpoint", "https://id.example/me").unwrap();
        assert!(endpoints.secret_in_body && endpoints.user_info.is_some() && !endpoints.names_issuer);
        assert_eq!(endpoints.token.host, "tokens.example");
        for (field, value) in [
            ("issuer", "https://id.example/"),
            ("issuer", "https://other.example"),
            ("token_endpoint", "http://tokens.example/token"),
            ("token_endpoint", "http://127.0.0.1/token"),
            ("jwks_uri", "file:///etc/passwd"),
            ("authorization_endpoint", "javascript:alert(1)"),
            ("end_session_endpoint", "http://id.example/end"),
        ] {
            assert!(read(field, value).is_err(), "{field} {value}");
        }
        assert_eq!(
            url(&OidcOptions::new("https://id.example/a/", "t")),
            "https://id.example/a/.well-known/openid-configuration"
        );
    }
}
