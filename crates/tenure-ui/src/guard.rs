//! Forms are taken from pages of our own only.

use std::collections::BTreeMap;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};

use crate::asking::Trouble;
use crate::secret::same;
use crate::visit::Visit;

/// What was filled in.
pub(crate) type Filled = BTreeMap<String, String>;

/// Refuses a form that a page of somebody else's has sent: the browser says where it came from, and it lacks what stands in
/// ours.
pub(crate) fn check(visit: &Visit, headers: &HeaderMap, filled: &Filled) -> Result<(), Trouble> {
    let ours = is_ours(headers, &visit.server);
    let given = filled.get("token").map(String::as_str).unwrap_or_default();
    let known = visit.form_token().is_some_and(|token| same(&token, given));
    if ours && known {
        return Ok(());
    }
    let detail = if ours {
        "The form has expired: the server restarted, or your session ended. Go back, reload the page and submit it again."
    } else {
        "The form was not submitted from this dashboard."
    };
    Err(Trouble::new(StatusCode::FORBIDDEN, "Form rejected", detail))
}

/// Returns true if a page of this server has sent the form. Behind a proxy the server may have a public URL.
fn is_ours(headers: &HeaderMap, server: &str) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (text(ORIGIN.as_str()), text(HOST.as_str())) else { return false };
    let is_public = server.strip_prefix(origin).is_some_and(|path| path.is_empty() || path.starts_with('/'));
    is_public || origin.split_once("://").is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_from_the_host_and_port_of_the_request_or_from_the_public_url() {
        let ours = |host: &str, origin: &str, server: &str| {
            let headers =
                [(HOST, host), (ORIGIN, origin)].map(|(name, value)| (name, value.parse().unwrap()));
            is_ours(&HeaderMap::from_iter(headers), server)
        };
        let public = "https://jobs.example/tenure";
        assert!(ours("localhost:8368", "http://localhost:8368", "http://localhost:8368"));
        assert!(ours("127.0.0.1:8368", "https://jobs.example", public), "the proxy names itself");
        for origin in
            ["https://jobs.example:8443", "https://jobs.exampl", "http://jobs.example", "https://evil"]
        {
            assert!(!ours("127.0.0.1:8368", origin, public), "{origin}");
        }
        assert!(!ours("localhost:8368", "http://localhost:3000", "http://localhost:8368"));
    }
}
