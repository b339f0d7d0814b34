//! The public URL of a server. Links use it, even if a proxy changes the host or the path of requests.

use std::sync::Arc;

use axum::extract::OriginalUri;
use axum::http::{Request, Uri};

use crate::site::PublicOrigin;

/// A public URL that was set, as its parts.
#[derive(Debug, Clone)]
pub(super) struct Public {
    origin: Arc<str>,
    /// The path that a proxy strips, without a slash at the end.
    path: Arc<str>,
}

impl Public {
    pub(super) fn of(url: &str) -> Self {
        let url = url.trim_end_matches('/');
        let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
        let end = url[host..].find('/').map_or(url.len(), |path| host + path);
        let (origin, path) = url.split_at(end);
        Self { origin: origin.into(), path: path.into() }
    }

    /// Has the routes see the request as the client sent it.
    pub(super) fn address<B>(&self, request: &mut Request<B>) {
        request.extensions_mut().insert(PublicOrigin(Arc::clone(&self.origin)));
        if self.path.is_empty() {
            return;
        }
        let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
        if let Ok(original) = format!("{}{asked}", self.path).parse::<Uri>() {
            request.extensions_mut().insert(OriginalUri(original));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_origin_and_a_path() {
        for (url, origin, path) in [
            ("https://jobs.example.com", "https://jobs.example.com", ""),
            ("https://jobs.example.com:8443/", "https://jobs.example.com:8443", ""),
            ("https://example.com/a/jobs/", "https://example.com", "/a/jobs"),
        ] {
            let public = Public::of(url);
            assert_eq!((&*public.origin, &*public.path), (origin, path), "{url}");
        }
    }
}
