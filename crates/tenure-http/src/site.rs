//! The address of mounted routes: how a client reaches them, and which of them exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::OriginalUri;
use axum::http::header::{HOST, HeaderMap};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;
use tenure::JobId;

use crate::answer::OPERATION_LOCATION;
use crate::wire::JobDocument;

/// Scheme of the request that a proxy received.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The origin of a server's public URL, such as `https://jobs.example.com`. A server with a public URL adds it to the
/// extensions of each request, because the `Host` header may be that of a proxy.
#[derive(Debug, Clone)]
pub struct PublicOrigin(pub Arc<str>);

/// The fields of a job that status pages show.
pub(crate) type Fields = Arc<BTreeSet<String>>;

/// The address of mounted routes, as one request has shown it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Site {
    /// Scheme and host; empty if the client did not send the host.
    server: String,
    /// The path under which the routes are nested, without a slash at the end.
    prefix: String,
    /// Set if only the status pages are mounted: the fields that they show.
    fields: Option<Fields>,
}

impl Site {
    /// Reads the address from a request to one of the routes.
    pub(crate) fn of(parts: &Parts, fields: Option<Fields>) -> Self {
        // The route of a nested router's own path is `/` inside of it.
        let path = parts.uri.path().trim_end_matches('/');
        let original = parts.extensions.get::<OriginalUri>().map(|OriginalUri(uri)| uri.path());
        let prefix = original.and_then(|original| original.trim_end_matches('/').strip_suffix(path));
        let public = parts.extensions.get::<PublicOrigin>().map(|PublicOrigin(origin)| origin.to_string());
        let server = public.unwrap_or_else(|| server(&parts.headers));
        Self { server, prefix: trimmed(prefix.unwrap_or_default()), fields }
    }

    /// Nests these routes under a prefix.
    pub(crate) fn under(self, prefix: &str) -> Self {
        Self { prefix: trimmed(prefix), ..self }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns true if only the status pages are mounted.
    pub(crate) fn has_only_items(&self) -> bool {
        self.fields.is_some()
    }

    /// The document of a job, with the fields that are shown here.
    pub(crate) fn text(&self, document: &JobDocument) -> Vec<u8> {
        let Some(fields) = &self.fields else { return serde_json::to_vec(document).unwrap_or_default() };
        let text = serde_json::to_string(document).unwrap_or_default();
        // Args and results stay text: a tree of them could be large.
        let mut shown: BTreeMap<&str, &RawValue> = serde_json::from_str(&text).unwrap_or_default();
        shown.retain(|name, _| fields.contains(*name));
        serde_json::to_vec(&shown).unwrap_or_default()
    }

    /// Adds the URLs of a job that was accepted: its status page, and a URL that never redirects. Both are absolute if the
    /// host is known: some pollers cannot follow a relative one.
    pub(crate) fn locate(&self, headers: &mut HeaderMap, id: JobId) {
        let Self { server, prefix, .. } = self;
        let monitor = if self.has_only_items() {
            format!("{server}{prefix}/queue/{id}?redirect=false")
        } else {
            format!("{server}{prefix}/v1/jobs/{id}")
        };
        if let Ok(place) = HeaderValue::from_str(&format!("{server}{prefix}/queue/{id}")) {
            headers.insert(axum::http::header::LOCATION, place);
        }
        if let Ok(monitor) = HeaderValue::from_str(&monitor) {
            headers.insert(OPERATION_LOCATION, monitor);
        }
    }
}

/// Returns the origin in the client's URL; empty if the client did not send it.
fn server(asked: &HeaderMap) -> String {
    let said = |header: &HeaderName| asked.get(header).and_then(|said| said.to_str().ok());
    // A client that sends this header itself gets a URL that it cannot reach, and no other client does.
    let scheme = if said(&FORWARDED_PROTO) == Some("https") { "https" } else { "http" };
    said(&HOST).map(|host| format!("{scheme}://{host}")).unwrap_or_default()
}

fn trimmed(prefix: &str) -> String {
    prefix.trim_end_matches('/').to_owned()
}
